"""The use case behind POST /v1/embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from privategpt.domain.errors import InvalidRequest, UnsupportedParameter
from privategpt.domain.observing import UNOBSERVED, Observer
from privategpt.domain.ports import EmbeddingModel, Embeddings

MAX_INPUTS = 2048
"""OpenAI's bound for one request."""


class EmbeddingService:
    """Embeds callers' texts with the model that the library is indexed with."""

    def __init__(self, *, model: EmbeddingModel, observer: Observer = UNOBSERVED) -> None:
        self._model = model
        self._observer = observer

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Embeddings:
        """One vector per text, in order, repeated texts included.

        A text beyond the model's window is cut to it, where OpenAI would answer 400: its models
        read 8,192 tokens and this one may read 256, and clients such as LangChain cut to the
        former. `tokens` counts what was read.

        Raises `InvalidRequest` for no text, an empty text or more than `MAX_INPUTS` texts, and
        `UnsupportedParameter` for `dimensions` other than the model's own.
        """
        if not texts:
            raise InvalidRequest("'input' must hold at least one text", param="input")
        if len(texts) > MAX_INPUTS:
            raise InvalidRequest(
                f"'input' holds {len(texts)} texts; at most {MAX_INPUTS} are taken at once",
                param="input",
            )
        empty = next((index for index, text in enumerate(texts) if not text), None)
        if empty is not None:
            raise InvalidRequest(f"'input' text {empty} is empty", param="input")
        self._require_native(dimensions)
        embedded = await self._model.embed_passages(texts)
        self._observer.embedded(embedded.tokens)
        return embedded

    def _require_native(self, dimensions: int | None) -> None:
        """Only models trained for it may be cut short, and none of ours says that it is."""
        native = self._model.dimensions
        if dimensions not in (None, native):
            raise UnsupportedParameter(
                f"{self._model.name!r} has {native} dimensions and cannot have {dimensions}",
                param="dimensions",
            )
