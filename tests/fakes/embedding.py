"""An `EmbeddingModel` without a model: texts that share words get vectors that are near."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Sequence

from privategpt.domain.errors import Unavailable
from privategpt.domain.ports import Embeddings, Tokenizer, Vector

_WORD = re.compile(r"\w+|[^\w\s]")


class FakeTokenizer:
    """One token per word or punctuation mark."""

    def __init__(self, max_tokens: int = 64) -> None:
        self._max_tokens = max_tokens

    @property
    def max_tokens(self) -> int:
        """The window."""
        return self._max_tokens

    def count(self, text: str) -> int:
        """How many words and punctuation marks."""
        return len(_WORD.findall(text))

    def ends(self, text: str) -> Sequence[int]:
        """Where each of them ends."""
        return [match.end() for match in _WORD.finditer(text)]


class FakeEmbeddingModel:
    """Adds up one fixed direction per word. While `failure` is set, every embedding raises it."""

    def __init__(self, *, dimensions: int = 32, max_tokens: int = 64) -> None:
        self._dimensions = dimensions
        self._tokenizer = FakeTokenizer(max_tokens)
        self.failure: Unavailable | None = None
        self.closed = False

    @property
    def name(self) -> str:
        """A fixed name."""
        return "fake-embedding"

    @property
    def fingerprint(self) -> str:
        """Differs with the dimensions only."""
        return f"fake-embedding/{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def tokenizer(self) -> Tokenizer:
        """Words are tokens."""
        return self._tokenizer

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """One vector per text."""
        if self.failure is not None:
            raise self.failure
        kept = [_WORD.findall(text)[: self._tokenizer.max_tokens] for text in texts]
        return Embeddings(
            vectors=tuple(self._vector(words) for words in kept), tokens=sum(map(len, kept))
        )

    async def embed_query(self, text: str) -> Embeddings:
        """One vector, as for a passage."""
        return await self.embed_passages([text])

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def _vector(self, words: Sequence[str]) -> Vector:
        total = [1e-3] * self._dimensions
        for word in words:
            digest = hashlib.shake_128(word.casefold().encode()).digest(self._dimensions)
            total = [value + byte - 127.5 for value, byte in zip(total, digest, strict=True)]
        length = math.sqrt(sum(value * value for value in total))
        return array("f", [value / length for value in total])
