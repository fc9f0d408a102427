"""Two small models, fitted by gradient descent: which sentence is the best, is it enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Gradient: TypeAlias = Callable[[Array], Array]

_STEPS = 1500
_RATE = 0.15
_MOMENTUM = 0.9


@dataclass(frozen=True, slots=True)
class Group:
    """The sentences one claim chooses among: a row of features each, and which are right."""

    rows: Array
    right: npt.NDArray[np.bool_]
    weight: float = 1.0


def fit_ranking(groups: Sequence[Group], *, penalty: float) -> Array:
    """Weights that give the right sentences of each group the greatest probability."""
    rows = np.concatenate([group.rows for group in groups])
    scale = rows.std(axis=0) + 1e-9
    total = sum(group.weight for group in groups)

    def gradient(weights: Array) -> Array:
        slope: Array = np.zeros_like(weights)
        for group in groups:
            scaled = group.rows / scale
            scores = scaled @ weights
            every = np.exp(scores - scores.max())
            right = every * group.right
            slope += group.weight * (scaled.T @ (every / every.sum() - right / right.sum()))
        slope /= total
        slope += 2 * penalty * weights
        return slope

    weights: Array = _descend(gradient, rows.shape[1], steps=_STEPS // 5)
    unscaled: Array = weights / scale
    return unscaled


def fit_logistic(
    rows: Array, right: Array, weights: Array, *, penalty: float
) -> tuple[Array, float]:
    """Coefficients and bias of the probability that a row is right."""
    centre, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = np.column_stack([(rows - centre) / scale, np.ones(len(rows))])
    free = np.ones(scaled.shape[1])
    free[-1] = 0

    def gradient(coefficients: Array) -> Array:
        probability = 1 / (1 + np.exp(-(scaled @ coefficients)))
        slope = scaled.T @ (weights * (probability - right)) / weights.sum()
        full: Array = slope + 2 * penalty * free * coefficients
        return full

    fitted = _descend(gradient, scaled.shape[1], steps=_STEPS)
    coefficients = fitted[:-1] / scale
    return coefficients, float(fitted[-1] - coefficients @ centre)


def _descend(gradient: Gradient, size: int, *, steps: int) -> Array:
    weights, velocity = np.zeros(size), np.zeros(size)
    for _ in range(steps):
        velocity = _MOMENTUM * velocity - _RATE * gradient(weights)
        weights = weights + velocity
    return weights
