"""An embedding model without a model: hashed bags of words, so texts that share words are near."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from zlib import crc32

from privategpt.domain.ports import Embeddings, Vector

_WORD = re.compile(r"\w+|[^\w\s]")


class WordTokenizer:
    """A token is a word or a mark."""

    def __init__(self, *, max_tokens: int = 254) -> None:
        self._max_tokens = max_tokens

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count(self, text: str) -> int:
        return len(self.ends(text))

    def ends(self, text: str) -> Sequence[int]:
        return [match.end() for match in _WORD.finditer(text)]


class FakeEmbeddingModel:
    """Implements `EmbeddingModel`; `failure` is raised by every call while it is set.

    `calls` are the texts of each call, in order.
    """

    def __init__(self, *, name: str = "words", dimensions: int = 64, max_tokens: int = 254) -> None:
        self._name = name
        self._dimensions = dimensions
        self._tokenizer = WordTokenizer(max_tokens=max_tokens)
        self.failure: Exception | None = None
        self.calls: list[tuple[str, ...]] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def fingerprint(self) -> str:
        return f"fake {self._name} {self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def tokenizer(self) -> WordTokenizer:
        return self._tokenizer

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        return self._embed(texts)

    async def embed_query(self, text: str) -> Embeddings:
        return self._embed([text])

    async def close(self) -> None:
        """Nothing to release."""

    def _embed(self, texts: Sequence[str]) -> Embeddings:
        self.calls.append(tuple(texts))
        if self.failure is not None:
            raise self.failure
        tokens = sum(min(self._tokenizer.count(text), self._tokenizer.max_tokens) for text in texts)
        vectors = [self._vector(text) for text in texts]
        return Embeddings(vectors=tuple(vectors), tokens=tokens)

    def _vector(self, text: str) -> Vector:
        return bag_of_words(text, dimensions=self._dimensions, max_words=self._tokenizer.max_tokens)


def bag_of_words(text: str, *, dimensions: int, max_words: int | None = None) -> Vector:
    """A unit vector with the words of `text` counted in hashed places."""
    weights = [0.0] * dimensions
    for word in _WORD.findall(text.casefold())[:max_words]:
        weights[crc32(word.encode("utf-8", "surrogatepass")) % dimensions] += 1.0
    if not any(weights):
        weights[0] = 1.0  # a text without words has a direction too
    length = math.sqrt(math.fsum(weight * weight for weight in weights))
    return array("f", [weight / length for weight in weights])
