"""A reranker in this process: any CrossEncoder of sentence-transformers with one output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from anyio import CapacityLimiter, to_thread

from privategpt.domain.errors import EngineFailed, InvalidSettings
from privategpt.domain.ports import Relevances

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

MAX_CHARACTERS_PER_TOKEN = 100
"""More than this times the window is cut off untokenized: tokenizing it would hold a core up."""

MAX_WINDOW = 8192
"""Of a model that names no window, or one that no memory here is made for."""

_LOADING_ERRORS = (OSError, ValueError, LookupError, ImportError, AttributeError, RuntimeError)


class CrossEncoderReranker:
    """A `Reranker` over a loaded model. It scores one batch at a time; requests take turns."""

    def __init__(
        self, *, model: CrossEncoder, name: str, squash: Callable[..., Any], batch_size: int
    ) -> None:
        self._model = cast("_Model", model)
        self._name = name
        self._squash = squash
        self._batch_size = batch_size
        self._limiter = CapacityLimiter(1)

    @property
    def name(self) -> str:
        """As the operator wrote it; of a folder only its own name."""
        return self._name

    async def score(self, query: str, texts: Sequence[str]) -> Relevances:
        """The model's output for each, as a probability."""
        longest = min(self._model.max_seq_length or MAX_WINDOW, MAX_WINDOW)
        longest *= MAX_CHARACTERS_PER_TOKEN
        pairs = [(query[:longest], text[:longest]) for text in texts]
        # Batches of like length: padding would otherwise cost most of the time.
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][1]))
        scores, tokens = [0.0] * len(pairs), 0
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            # A call for each, so that others have their turn and a client that left costs no more.
            found, read = await to_thread.run_sync(
                self._score_now, [pairs[index] for index in batch], limiter=self._limiter
            )
            tokens += read
            for index, score in zip(batch, found, strict=True):
                scores[index] = score
        return Relevances(scores=tuple(scores), tokens=tokens)

    async def close(self) -> None:
        """Nothing is held but memory."""

    def _score_now(self, pairs: list[tuple[str, str]]) -> tuple[list[float], int]:
        try:
            rows = self._model.predict(
                pairs,
                batch_size=len(pairs),
                activation_fn=self._squash,
                show_progress_bar=False,
            )
            read = self._model.preprocess(pairs)["attention_mask"].sum()
        except (RuntimeError, ValueError, IndexError) as error:
            raise EngineFailed("The reranker failed to read a text") from error
        return [float(score) for score in rows], int(read)


class _Model(Protocol):
    """What `CrossEncoder` is to us; its own annotations leave much unknown."""

    @property
    def num_labels(self) -> int: ...
    @property
    def max_seq_length(self) -> int | None: ...
    def preprocess(self, inputs: list[tuple[str, str]]) -> dict[str, Any]: ...
    def predict(self, inputs: list[tuple[str, str]], **options: Any) -> Sequence[float]: ...


def load_cross_encoder_reranker(model: str, *, batch_size: int = 16) -> CrossEncoderReranker:
    """Load `model`, a name on the hub or a folder. Takes seconds and blocks: call it from a thread.

    Raises `InvalidSettings` where there is no such model, or where it is a classifier of several
    labels, none of which is a relevance.
    """
    import torch
    from sentence_transformers import CrossEncoder

    try:
        loaded = CrossEncoder(model, device="cpu")
    except _LOADING_ERRORS as error:
        raise InvalidSettings(f"Setting 'rerank.model': {model!r} cannot be loaded") from error
    labels = cast("_Model", loaded).num_labels
    if labels != 1:
        raise InvalidSettings(
            f"Setting 'rerank.model': {model!r} tells {labels} labels apart; a reranker has one "
            "output"
        )
    return CrossEncoderReranker(
        model=loaded,
        name=Path(model).name if Path(model).is_dir() else model,
        # Some models answer with logits, some with probabilities: this makes them alike, and
        # changes no order.
        squash=torch.nn.Sigmoid(),
        batch_size=batch_size,
    )
