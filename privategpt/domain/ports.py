"""What the use cases need of engines and parsers, as Protocols; `backends/` implements them.

Every coroutine may raise `Unavailable` where the part behind it does not serve. Implementations
never block the event loop. The two stores have theirs in `domain/library.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from privategpt.domain.answers import GenerationEvent
from privategpt.domain.conversation import GenerationRequest, Message
from privategpt.domain.documents import ParsedFile

Vector: TypeAlias = "array[float]"
"""A dense embedding: typecode "f" (float32), length `EmbeddingModel.dimensions`, unit length."""


class Tokenizer(Protocol):
    """The embedding model's own tokenizer."""

    @property
    def max_tokens(self) -> int:
        """The most tokens of text that one embedding reads, special tokens not counted."""
        ...

    def count(self, text: str) -> int:
        """How many tokens `text` is, special tokens not counted."""
        ...

    def ends(self, text: str) -> Sequence[int]:
        """Where each token ends in `text`, as code point offsets, ascending."""
        ...


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors in the order of the texts, and the tokens that were read for them."""

    vectors: tuple[Vector, ...]
    tokens: int


class EmbeddingModel(Protocol):
    """Turns text into vectors."""

    @property
    def name(self) -> str:
        """What an operator calls this model."""
        ...

    @property
    def fingerprint(self) -> str:
        """Equal exactly where two models give interchangeable vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that chunks are measured with."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """Embed what is searched; text beyond the window is cut off."""
        ...

    async def embed_query(self, text: str) -> Embeddings:
        """Embed what is searched for (one vector); text beyond the window is cut off."""
        ...

    async def close(self) -> None:
        """Release threads and connections."""
        ...


@dataclass(frozen=True, slots=True)
class Relevances:
    """How well each text answers the query, between 0 and 1, in the order of the texts.

    Scores can be compared within one query only. `tokens` were read for them; None where the
    model does not tell.
    """

    scores: tuple[float, ...]
    tokens: int | None


class Reranker(Protocol):
    """Reads a query and a text together, which finds what is meant better than vectors can."""

    @property
    def name(self) -> str:
        """What an operator calls this model."""
        ...

    async def score(self, query: str, texts: Sequence[str]) -> Relevances:
        """Score every text; what is beyond the model's window is not read."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class LanguageModel(Protocol):
    """Writes replies."""

    @property
    def name(self) -> str:
        """What an operator calls this model."""
        ...

    @property
    def context_tokens(self) -> int:
        """The window: prompt and reply together."""
        ...

    def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        """Yield deltas and, last, one `GenerationFinished`; first a `GenerationBegun`, if known.

        Closing the generator stops the engine's work. Raises `Unavailable` before the first
        event where the engine cannot start, and in the middle where it breaks off;
        `ContextLengthExceeded` and `UnsupportedParameter` where the engine says so.
        """
        ...

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of the whole prompt that `messages` become, chat template included."""
        ...

    async def count_text(self, text: str) -> int:
        """Tokens of `text` by itself, and of the sign that some models begin every text with."""
        ...

    async def check(self) -> None:
        """Return if the engine would answer now; raise `Unavailable` otherwise."""
        ...

    async def close(self) -> None:
        """Stop the engine, if it is ours, and release connections."""
        ...


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to parse: its bytes on disk and the name the client gave (for display and type)."""

    path: Path
    name: str
    media_type: str | None = None
    password: str | None = None


class Parser(Protocol):
    """Reads files of any kind."""

    async def parse(self, upload: Upload) -> ParsedFile:
        """Raises `UnreadableFile` (each kind its own class) or `UnsupportedFileType`."""
        ...

    async def close(self) -> None:
        """Stop the workers."""
        ...
