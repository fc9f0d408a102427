"""The embedded vector index and the whole retrieval, beside the engine's bare limit.

    python -m benchmarks.vector_index [--points 20000] [--queries 300]

Random unit vectors of 384 dimensions with texts whose words are drawn as in a language (Zipf),
10 chunks a document. The three ways to ask take turns, query by query, so that the noise of the
machine falls on all alike; what counts is the difference within a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import uvloop

from benchmarks.bare_index import CANDIDATES, LIMIT, open_copy
from benchmarks.library import UPSERT_BATCH, fill
from privategpt.backends.state.opening import open_state_store
from privategpt.backends.vectors.edge import EdgeIndex
from privategpt.backends.vectors.shard import open_shard
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.library import VectorQuery
from privategpt.domain.ports import Embeddings, Tokenizer, Vector
from privategpt.services.retrieval import Retrieval

DIMENSIONS = 384
EMBEDDING_S = 0.008
VOCABULARY = 30_000
WORDS_PER_CHUNK = 180


class Texts:
    """Deterministic texts and vectors."""

    def __init__(self) -> None:
        self._random = random.Random(20_000)  # noqa: S311 - benchmark data
        self._weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
        self._vocabulary = [self._word() for _ in range(VOCABULARY)]

    def text(self, words: int) -> str:
        """That many words, the common ones more often."""
        return " ".join(self._random.choices(self._vocabulary, self._weights, k=words))

    def vector(self, dimensions: int) -> Vector:
        """A random unit vector."""
        values = [self._random.gauss(0, 1) for _ in range(dimensions)]
        length = sum(value * value for value in values) ** 0.5
        return array("f", [value / length for value in values])

    def _word(self) -> str:
        return "".join(
            self._random.choices("abcdefghijklmnoprstuvwz", k=self._random.randint(3, 9))
        )


class OneToken:
    """A tokenizer that costs nothing, since the embedding is not what is measured."""

    max_tokens = 256

    def count(self, text: str) -> int:  # noqa: ARG002 - the port's signature
        """Always 1."""
        return 1

    def ends(self, text: str) -> Sequence[int]:
        """Always the end."""
        return [len(text)]


class KnownVectors:
    """An embedding model whose vectors were made before the clock started.

    A query takes as long as a real one, since other work goes on meanwhile; `query_s` is how
    long, to be subtracted.
    """

    name = fingerprint = "known"
    dimensions = DIMENSIONS

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors
        self.query_s = 0.0

    @property
    def tokenizer(self) -> Tokenizer:
        """One that costs nothing."""
        return OneToken()

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """Look them up."""
        return Embeddings(vectors=tuple(self._vectors[text] for text in texts), tokens=len(texts))

    async def embed_query(self, text: str) -> Embeddings:
        """Look it up, after a while."""
        started = time.perf_counter()
        await asyncio.sleep(EMBEDDING_S)
        found = await self.embed_passages([text])
        self.query_s = time.perf_counter() - started
        return found

    async def close(self) -> None:
        """Nothing to release."""


async def measure(folder: Path, *, points: int, queries: int) -> None:
    """Fill an index and a store in `folder`, ask, and print."""
    texts = Texts()
    shard = open_shard(folder / "vectors", dimensions=DIMENSIONS)
    index = EdgeIndex(shard=shard, words=WordEncoder(), candidates=CANDIDATES, tenants=())
    state = await open_state_store(folder)
    seconds = await fill(
        index, state, texts, points=points, words_per_chunk=WORDS_PER_CHUNK, dimensions=DIMENSIONS
    )
    print(
        f"upsert, flushed every {UPSERT_BATCH} or a little more: {points / seconds:,.0f} chunks/s"
    )

    questions = {texts.text(10): texts.vector(DIMENSIONS) for _ in range(queries)}
    embedding = KnownVectors(questions)
    retrieval = Retrieval(embedding=embedding, index=index, state=state)

    engine = open_copy(folder / "vectors", folder / "copy")

    async def bare(text: str) -> float:
        engine.query(text, questions[text])
        return 0

    async def adapter(text: str) -> float:
        query = VectorQuery(text=text, vector=questions[text], tenant=DEFAULT_TENANT, limit=LIMIT)
        await index.search(query)
        return 0

    async def whole(text: str) -> float:
        await retrieval.search(text, tenant=DEFAULT_TENANT, limit=LIMIT)
        return embedding.query_s

    ways = {"bare engine": bare, "index": adapter, "retrieval": whole}
    await report(ways, list(questions))
    engine.close()
    await index.close()
    await state.close()


async def report(
    ways: Mapping[str, Callable[[str], Awaitable[float]]], questions: list[str]
) -> None:
    """Let the ways take turns and print what each takes and how much more than the first.

    A way returns the seconds that are not its own.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for text in questions:
        for name, ask in ways.items():
            started = time.perf_counter()
            foreign_s = await ask(text)
            taken[name].append((time.perf_counter() - started - foreign_s) * 1000)
    first = next(iter(taken.values()))
    for name, times in taken.items():
        tenths = statistics.quantiles(times, n=20)
        more = statistics.median(a - b for a, b in zip(times, first, strict=True))
        print(
            f"{name:12} p10 {tenths[1]:6.2f} ms  p50 {tenths[9]:6.2f} ms  p95 {tenths[18]:6.2f} ms"
            f"  above bare (median of differences) {more:+.2f} ms"
        )


def main() -> None:
    """Run in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(measure(Path(folder), points=options.points, queries=options.queries))


if __name__ == "__main__":
    main()
