"""Chunks with their vectors, a batch at a time, while the batches behind are being embedded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from privategpt.domain.documents import Chunk
from privategpt.domain.ports import EmbeddingModel, Embeddings, Vector

BATCH = 128
"""Chunks per call: the last of a file are written while nothing is embedded."""

CALLS = 4
"""At the same time: the model works while a batch is written, and has many lengths to sort."""


@dataclass(frozen=True, slots=True)
class _Call:
    chunks: Sequence[Chunk]
    passages: Sequence[str]
    result: asyncio.Task[Embeddings]


async def embedded(
    chunks: Sequence[Chunk], *, embedding: EmbeddingModel
) -> AsyncGenerator[list[tuple[Chunk, Vector]]]:
    """All of `chunks`, in order, in batches. A passage that comes again (a form, a legal notice)
    is embedded once. Closing this takes back what was asked for.
    """
    vectors: dict[str, Vector] = {}
    asked: set[str] = set()
    starts = iter(range(0, len(chunks), BATCH))
    calls: deque[_Call] = deque()

    def call_next() -> None:
        start = next(starts, None)
        if start is None:
            return
        batch = chunks[start : start + BATCH]
        new = [text for text in dict.fromkeys(c.passage for c in batch) if text not in asked]
        asked.update(new)
        calls.append(_Call(batch, new, asyncio.ensure_future(_embed(new, embedding))))

    try:
        for _ in range(CALLS):
            call_next()
        while calls:
            call = calls[0]
            found = await call.result
            calls.popleft()
            call_next()
            vectors.update(zip(call.passages, found.vectors, strict=True))
            yield [(chunk, vectors[chunk.passage]) for chunk in call.chunks]
    finally:
        for call in calls:
            call.result.cancel()
        await asyncio.gather(*(call.result for call in calls), return_exceptions=True)


async def _embed(passages: Sequence[str], embedding: EmbeddingModel) -> Embeddings:
    if not passages:
        return Embeddings(vectors=(), tokens=0)
    return await embedding.embed_passages(passages)
