"""Chunks are embedded a batch ahead of whoever stores them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.documents import Chunk
from privategpt.domain.errors import EngineFailed
from privategpt.domain.ports import Embeddings
from privategpt.services.embedding_ahead import BATCH, CALLS, embedded
from tests.fakes.embedding import FakeEmbeddingModel


class Gated(FakeEmbeddingModel):
    """Answers a call once its gate is open; `cancelled` counts who left before."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = [asyncio.Event() for _ in range(8)]
        self.cancelled = 0

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        gate = self.gates[len(self.calls)]
        found = self._embed(texts)
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return found


def chunks_of(texts: Sequence[str]) -> list[Chunk]:
    return [
        Chunk(chunk_id=str(n), doc_id="d", position=n, start=0, end=len(text), text=text)
        for n, text in enumerate(texts)
    ]


def words(batches: int) -> list[Chunk]:
    return chunks_of([f"word{n}" for n in range(batches * BATCH)])


@given(st.lists(st.sampled_from("abcdef"), max_size=20), st.integers(0, 2))
async def test_every_chunk_comes_once_in_order_with_its_vector(
    texts: list[str], batches: int
) -> None:
    model = FakeEmbeddingModel()
    chunks = [*words(batches), *chunks_of(texts)]
    async with aclosing(embedded(chunks, embedding=model)) as found:
        pairs = [pair async for batch in found for pair in batch]
    assert [chunk for chunk, _ in pairs] == chunks
    for chunk, vector in pairs:
        assert vector == (await model.embed_query(chunk.text)).vectors[0]
    asked = [text for call in model.calls[: len(model.calls) - len(pairs)] for text in call]
    assert sorted(asked) == sorted({chunk.text for chunk in chunks})


async def test_the_model_works_while_a_batch_is_stored() -> None:
    model = Gated()
    model.gates[0].set()
    async with aclosing(embedded(words(2 * CALLS), embedding=model)) as batches:
        await anext(batches)
        await asyncio.sleep(0)
        assert len(model.calls) == 1 + CALLS


async def test_who_leaves_takes_back_what_was_asked_for() -> None:
    model = Gated()
    model.gates[0].set()
    async with aclosing(embedded(words(2 * CALLS), embedding=model)) as batches:
        await anext(batches)
        await asyncio.sleep(0)
    assert model.cancelled == CALLS


async def test_a_failure_reaches_who_reads_and_ends_the_calls_behind_it() -> None:
    model = Gated()
    model.failure = EngineFailed("broken")
    with pytest.raises(EngineFailed):
        async with aclosing(embedded(words(CALLS + 1), embedding=model)) as batches:
            await anext(batches)
    assert len(model.calls) == CALLS
