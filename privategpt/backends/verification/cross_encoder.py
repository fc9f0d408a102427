"""A cross-encoder as verifier: any NLI or MiniCheck-like model that sentence-transformers runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from anyio import CapacityLimiter, to_thread

from privategpt.domain.errors import InvalidSettings
from privategpt.domain.verification import Pair

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

BATCH = 16
"""Pairs per forward pass."""


class CrossEncoderVerifier:
    """Reads evidence and claim together. One call at a time: a model is not shared by threads."""

    def __init__(self, *, model: CrossEncoder, name: str, support_label: int | None) -> None:
        self._model = model
        self._name = name
        self._support_label = support_label
        self._limiter = CapacityLimiter(1)

    @property
    def method(self) -> str:
        """The kind of judge and the model's name."""
        return f"cross-encoder {self._name}"

    async def verify(self, pairs: Sequence[Pair]) -> list[float]:
        """The probability of the model's label for entailment (its only output, if it has one)."""
        if not pairs:
            return []
        return await to_thread.run_sync(self._predict, list(pairs), limiter=self._limiter)

    def _predict(self, pairs: list[Pair]) -> list[float]:
        # Premise first: the order that NLI models are trained with.
        inputs = [(pair.evidence, pair.claim) for pair in pairs]
        many = self._support_label is not None
        scores = cast("Any", self._model).predict(
            inputs, batch_size=BATCH, apply_softmax=many, show_progress_bar=False
        )
        return [float(score[self._support_label] if many else score) for score in scores]


def load_cross_encoder(name_or_path: str) -> CrossEncoderVerifier:
    """Load the model. Takes seconds and blocks: call it from a thread.

    Raises `InvalidSettings` where there is no such model, or where several labels do not say
    which of them means that the claim is supported.
    """
    from sentence_transformers import CrossEncoder

    try:
        model = CrossEncoder(name_or_path, device="cpu")
    except (OSError, ValueError) as error:
        raise InvalidSettings(
            f"Setting 'answers.verifier_model': {name_or_path!r} cannot be loaded"
        ) from error
    labels = cast("Any", model).config.id2label
    return CrossEncoderVerifier(
        model=model,
        name=name_or_path.rstrip("/").rsplit("/", 1)[-1],
        support_label=support_label(cast("Mapping[int, str]", labels)),
    )


def support_label(labels: Mapping[int, str]) -> int | None:
    """The index of the label for support; None where a model has one output only.

    Raises `InvalidSettings` where no name tells which it is.
    """
    if len(labels) == 1:
        return None
    for index, label in labels.items():
        if label.casefold().replace("_", " ") in {"entailment", "supported", "support", "yes"}:
            return int(index)
    if len(labels) == 2:  # MiniCheck: label 1 means supported, and is called LABEL_1
        return 1
    raise InvalidSettings(
        f"Setting 'answers.verifier_model': none of the labels {sorted(labels.values())!r} "
        "is known to mean support"
    )
