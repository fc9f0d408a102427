"""Fits the weights of the support score and chooses the thresholds, on half 0 of the claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals.support.cases import Candidate, Case
from evals.support.fitting import Array, Group, fit_logistic, fit_ranking
from evals.support.measures import (
    Judged,
    ScifactFigures,
    judge,
    scifact_figures,
    wice_figures,
)
from privategpt.grounding.attribution import Evidence

RANKING_FEATURES = (
    "cosine", "cosine around", "recall", "recall around", "numbers", "names", "length",
    "direction reversed", "asks", "reports",
)  # fmt: skip
SUPPORT_FEATURES = (
    "cosine", "recall", "recall of three", "recall around", "recall of passage", "pairs", "numbers",
    "names", "asks", "figures denied", "denied in the same words",
)  # fmt: skip
_NEVER_FOR = frozenset({"asks", "figures denied", "denied in the same words"})
"""What may count against a claim but never for it, whatever a small sample says."""

_AT_MOST = {"figures denied": -1.0, "denied in the same words": -12.0}
"""The gate's say is a rule, not a finding: the sets have too few sentences that differ in nothing
but a "not" to teach it."""
_WEIGHT_OF_CONTRADICTED = 4.0  # they are few, and the worst to cite
_WITHOUT_EVIDENCE_UNCITED = 0.80
_CONTRADICTED_UNCITED = 0.56


@dataclass(frozen=True, slots=True)
class Weights:
    """What `grounding/weights.py` holds."""

    ranking: Mapping[str, float]
    support: Mapping[str, float]
    bias: float
    floor: float
    threshold: float


def fit(wice: Sequence[Case], scifact: Sequence[Case]) -> Weights:
    """The weights, from these cases alone."""
    ranking = _fit_ranking(wice, scifact)
    support, bias = _fit_support(wice, scifact, ranking)
    floor = _choose_floor(judge(wice, ranking=ranking, support=support, bias=bias))
    threshold = _choose_threshold(judge(scifact, ranking=ranking, support=support, bias=bias))
    return Weights(ranking, support, bias, floor, threshold)


def _fit_ranking(wice: Sequence[Case], scifact: Sequence[Case]) -> Mapping[str, float]:
    groups = [
        _group(case, candidate, weight)
        for cases, weight in ((wice, 3.0), (scifact, 0.7))
        for case in cases
        for candidate in case.candidates
        if candidate.gold
    ]
    fitted = fit_ranking(groups, penalty=0.01)
    return dict(zip(RANKING_FEATURES, map(float, fitted), strict=True))


def _group(case: Case, candidate: Candidate, weight: float) -> Group:
    evidence = Evidence(candidate.passage, candidate.vectors, case.rarity)
    features = evidence.sentence_features(case.claim)
    rows = np.column_stack([features[name] for name in RANKING_FEATURES])
    right = np.array([at in candidate.gold for at in range(len(rows))])
    return Group(rows, right, weight)


def _fit_support(
    wice: Sequence[Case], scifact: Sequence[Case], ranking: Mapping[str, float]
) -> tuple[Mapping[str, float], float]:
    rows: list[list[float]] = []
    right: list[float] = []
    weights: list[float] = []
    for cases in (wice, scifact):
        examples = list(_examples(cases, ranking))
        totals = {
            truth: sum(one.weight for one in examples if one.right is truth)
            for truth in (True, False)
        }
        for one in examples:
            rows.append([one.features[name] for name in SUPPORT_FEATURES])
            right.append(float(one.right))
            weights.append(one.weight / totals[one.right])
    names = list(SUPPORT_FEATURES)
    while True:
        kept = [SUPPORT_FEATURES.index(name) for name in names]
        matrix: Array = np.asarray(rows)[:, kept]
        fitted, bias = fit_logistic(matrix, np.asarray(right), np.asarray(weights), penalty=0.003)
        found = dict(zip(names, map(float, fitted), strict=True))
        wrong = [name for name, weight in found.items() if (weight > 0) == (name in _NEVER_FOR)]
        if not wrong:
            weights_found = {name: found.get(name, 0.0) for name in SUPPORT_FEATURES}
            return weights_found | {
                name: min(weights_found[name], most) for name, most in _AT_MOST.items()
            }, bias
        names = [name for name in names if name not in wrong]


@dataclass(frozen=True, slots=True)
class _Example:
    features: Mapping[str, float]
    right: bool
    weight: float


def _examples(cases: Sequence[Case], ranking: Mapping[str, float]) -> Iterable[_Example]:
    """Each pair of claim and source whose truth the labels tell."""
    for case in cases:
        if case.label == "partially_supported":
            continue
        supported = case.label in ("supported", "SUPPORT")
        for candidate in case.candidates:
            if not candidate.passage.spans:
                continue
            evidence = Evidence(candidate.passage, candidate.vectors, case.rarity, ranking=ranking)
            denied = case.label == "CONTRADICT" and bool(candidate.gold)
            yield _Example(
                features=evidence.examine(case.claim).features,
                right=supported and bool(candidate.gold),
                weight=_WEIGHT_OF_CONTRADICTED if denied else 1.0,
            )


def _choose_floor(judged: Judged) -> float:
    """Where the shares of supported kept and of unsupported rejected are most alike and high."""
    candidates = _thresholds(judged)
    return max(candidates, key=lambda at: _balance(judged, at))


def _balance(judged: Judged, floor: float) -> float:
    figures = wice_figures(judged, floor=floor)
    return min(figures.supported_kept, figures.unsupported_rejected)


def _choose_threshold(judged: Judged) -> float:
    """The best F1 among those that leave enough of the unsupported claims uncited."""
    figures = {at: scifact_figures(judged, threshold=at) for at in _thresholds(judged)}
    careful = [at for at, found in figures.items() if _is_careful(found)]
    return max(careful or figures, key=lambda at: figures[at].f1)


def _is_careful(figures: ScifactFigures) -> bool:
    return (
        figures.without_evidence_uncited >= _WITHOUT_EVIDENCE_UNCITED
        and figures.contradicted_uncited >= _CONTRADICTED_UNCITED
    )


def _thresholds(judged: Judged) -> list[float]:
    return sorted({round(one.score, 3) for _, one in judged})


_TEMPLATE = '''"""The fitted numbers of the support score, and the thresholds.

Written by `python -m evals.support fit`, from one half of the claims of WiCE (development set) and
SciFact (training set); what they do on the other half is in evals/results. Do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RANKING: Final[Mapping[str, float]] = {{
{ranking}
}}
"""What makes a sentence the best support of a claim."""

SUPPORT: Final[Mapping[str, float]] = {{
{support}
}}
"""What makes the support enough: log odds."""

SUPPORT_BIAS: Final = {bias:.3f}

FLOOR: Final = {floor:.3f}
"""Below this a marker that the model wrote is removed."""

ATTRIBUTION_THRESHOLD: Final = {threshold:.3f}
"""From this on a sentence without a marker gets one."""
'''


def write_weights(weights: Weights, path: Path) -> None:
    """As the module that the product imports."""
    path.write_text(
        _TEMPLATE.format(
            ranking=_lines(weights.ranking),
            support=_lines(weights.support),
            bias=weights.bias,
            floor=weights.floor,
            threshold=weights.threshold,
        ),
        encoding="utf-8",
    )


def _lines(weights: Mapping[str, float]) -> str:
    return "\n".join(f'    "{name}": {weight:.3f},' for name, weight in weights.items())
