"""Vectors that cost nothing, where the model is not what is measured."""

from __future__ import annotations

import asyncio
import re
import zlib
from array import array
from collections.abc import Sequence

import numpy as np

from privategpt.domain.ports import Embeddings, Tokenizer, Vector

_PARAGRAPH = re.compile(r"\S[^\n]*")
_WORD = re.compile(r"\w+")
BUCKETS = 2**15
SEED = 450_000


class ParagraphTokens:
    """A tokenizer to which a paragraph is one token, so that each becomes a chunk of its own."""

    max_tokens = 1

    def count(self, text: str) -> int:
        """How many paragraphs."""
        return sum(1 for _ in _PARAGRAPH.finditer(text))

    def ends(self, text: str) -> Sequence[int]:
        """Where each ends."""
        return [found.end() for found in _PARAGRAPH.finditer(text)]


class HashedWords:
    """An `EmbeddingModel` of a random direction for every word: texts that share words are near.

    It takes the place of another model's `fingerprint`, whose server then serves what it made.
    """

    name = "hashed words"

    def __init__(self, *, dimensions: int, fingerprint: str) -> None:
        self.dimensions = dimensions
        self.fingerprint = fingerprint
        self._directions = (
            np.random.default_rng(SEED).standard_normal((BUCKETS, dimensions)).astype(np.float32)
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """Cuts between paragraphs."""
        return ParagraphTokens()

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """The sums of their words' directions."""
        vectors = await asyncio.to_thread(lambda: tuple(map(self._vector, texts)))
        return Embeddings(vectors=vectors, tokens=len(texts))

    async def embed_query(self, text: str) -> Embeddings:
        """As a passage."""
        return await self.embed_passages([text])

    async def close(self) -> None:
        """Nothing to release."""

    def _vector(self, text: str) -> Vector:
        words = _WORD.findall(text.lower()) or [text]
        buckets = [zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS for word in words]
        summed = self._directions[buckets].sum(axis=0)
        return array("f", (summed / (float(np.linalg.norm(summed)) or 1.0)).tolist())
