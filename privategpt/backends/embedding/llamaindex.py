"""Embeddings from any LlamaIndex embedding class, named by its dotted path."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx
import openai

from privategpt.backends.embedding.limits import cut_to_window
from privategpt.backends.embedding.tokenizer import EstimatedTokenizer, encodable
from privategpt.backends.embedding.vectors import unit_vector
from privategpt.domain.errors import EngineFailed, EngineTimedOut, InvalidSettings, Unavailable
from privategpt.domain.ports import Embeddings, Tokenizer

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

DEFAULT_MAX_TOKENS = 512
_PROBE = "dimensions"

# What integrations are known to let through: their own checks, sockets and files (OSError, which
# is also the root of `requests`' errors), and the two clients that most of them use.
_VENDOR_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    httpx.HTTPError,
    openai.OpenAIError,
)


class LlamaIndexModel:
    """An `EmbeddingModel` over a LlamaIndex embedding.

    Its synchronous methods run in a thread, since the asynchronous ones of many integrations
    block; one call at a time, since few of them say that they are thread-safe.
    """

    def __init__(
        self,
        *,
        embedding: BaseEmbedding,
        name: str,
        dimensions: int,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        batch_size: int = 32,
        timeout_s: float = 60.0,
    ) -> None:
        self._embedding = embedding
        self._name = name
        self._dimensions = dimensions
        self._batch_size = batch_size
        self._timeout_s = timeout_s
        self._tokenizer = EstimatedTokenizer(max_tokens=max_tokens)
        self._turn = asyncio.Lock()

    @property
    def name(self) -> str:
        """The model's name, or the class's where it has none."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """From class, model name and dimensions."""
        return f"llamaindex {type(self._embedding).__name__} {self._name} {self._dimensions}"

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def tokenizer(self) -> Tokenizer:
        """An estimate."""
        return self._tokenizer

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """Embed in batches; a query may come between two of them."""
        rows: list[Sequence[float]] = []
        cut = [cut_to_window(encodable(text), self._tokenizer) for text in texts]
        for start in range(0, len(cut), self._batch_size):
            batch = [text for text, _ in cut[start : start + self._batch_size]]
            rows.extend(await self._call(self._embedding.get_text_embedding_batch, batch))
        return self._embeddings(rows, expected=len(texts), tokens=sum(n for _, n in cut))

    async def embed_query(self, text: str) -> Embeddings:
        """Embed one query, with the class's own query instruction."""
        cut, tokens = cut_to_window(encodable(text), self._tokenizer)
        row = await self._call(self._embedding.get_query_embedding, cut)
        return self._embeddings([row], expected=1, tokens=tokens)

    async def close(self) -> None:
        """Nothing to release: the classes have no common way."""

    async def _call(self, method: Any, argument: Any) -> Any:
        async with self._turn:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await asyncio.to_thread(method, argument)
            except TimeoutError as error:
                raise EngineTimedOut("The embedding class did not answer in time") from error
            except _VENDOR_ERRORS as error:
                raise _failed(error) from error

    def _embeddings(
        self, rows: Sequence[Sequence[float]], *, expected: int, tokens: int
    ) -> Embeddings:
        if len(rows) != expected:
            raise EngineFailed(
                f"The embedding class answered with {len(rows)} vectors for {expected} texts"
            )
        vectors = tuple(unit_vector(row, dimensions=self._dimensions) for row in rows)
        return Embeddings(vectors=vectors, tokens=tokens)


def load_llamaindex(
    dotted_path: str | None,
    arguments: Mapping[str, Any],
    *,
    dimensions: int | None = None,
    max_tokens: int | None = None,
    batch_size: int = 32,
    timeout_s: float = 60.0,
) -> LlamaIndexModel:
    """Make the class with `arguments`. Blocks: call it from a thread.

    Without `dimensions` one word is embedded to find them. Raises `InvalidSettings` where there
    is no such class or it refuses the arguments, `Unavailable` where it does not embed.
    """
    embedding = _make(dotted_path, arguments)
    if dimensions is None:
        try:
            dimensions = len(embedding.get_text_embedding(_PROBE))
        except _VENDOR_ERRORS as error:
            raise _failed(error) from error
    name = embedding.model_name
    return LlamaIndexModel(
        embedding=embedding,
        name=name if name != "unknown" else type(embedding).__name__,
        dimensions=dimensions,
        max_tokens=max_tokens or DEFAULT_MAX_TOKENS,
        batch_size=batch_size,
        timeout_s=timeout_s,
    )


def _make(dotted_path: str | None, arguments: Mapping[str, Any]) -> BaseEmbedding:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    module_name, _, class_name = (dotted_path or "").rpartition(".")
    if not module_name:
        raise InvalidSettings("Setting 'embedding.llamaindex_class' must be a dotted path")
    try:
        found = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise InvalidSettings(f"There is no embedding class {dotted_path!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, BaseEmbedding)):
        raise InvalidSettings(f"{dotted_path!r} is not a LlamaIndex embedding class")
    try:
        return found(**arguments)
    except _VENDOR_ERRORS as error:
        raise InvalidSettings(
            f"{dotted_path!r} refuses 'embedding.llamaindex_args': {error}"
        ) from error


def _failed(error: BaseException) -> Unavailable:
    if isinstance(error, (TimeoutError, httpx.TimeoutException, openai.APITimeoutError)):
        return EngineTimedOut("The embedding class did not answer in time")
    return EngineFailed(f"The embedding class failed with {type(error).__name__}")
