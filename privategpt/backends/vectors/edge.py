"""The embedded vector index: Qdrant Edge in this process, driven from worker threads.

The engine releases the GIL in queries, upserts and deletes, so a thread per call keeps the event
loop free; see `shard` for what else is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import qdrant_edge as qe
from anyio import CapacityLimiter, to_thread

from privategpt.backends.vectors.fusion import Fuse, fuse
from privategpt.backends.vectors.points import (
    CHUNK_ID,
    DENSE,
    DOC_ID,
    FILE_ID,
    TENANT,
    WORDS,
    AnyOf,
    Conditions,
    conditions,
    payload,
    point_id,
)
from privategpt.backends.vectors.shard import ShardFolder, open_shard
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.ports import Hit, IndexedChunk, VectorQuery

READERS = 4
"""Searches at the same time; more would only share the same cores and delay each other."""

UPSERT_BATCH = 256
"""Points per engine call, which bounds one record of its WAL."""

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


class EdgeIndex:
    """A `VectorIndex` in a folder of this machine."""

    def __init__(
        self,
        *,
        shard: ShardFolder,
        words: WordEncoder,
        candidates: int,
        tenants: Iterable[str],
        fuse: Fuse = fuse,
    ) -> None:
        self._shard = shard
        self._words = words
        self._candidates = candidates
        self._tenants = set(tenants)
        self._fuse = fuse
        self._readers = CapacityLimiter(READERS)
        self._writers = CapacityLimiter(1)

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        """Store or overwrite; flushed to disk when it returns."""
        if chunks:
            await self._write(self._upsert_now, tuple(chunks))

    async def count(self, file_id: str) -> int:
        """How many chunks of that file are stored."""
        return await self._read(self._shard.count, _where(FILE_ID, file_id))

    async def delete_file(self, file_id: str) -> None:
        """Remove all chunks of a file; it is no error if there are none."""
        await self._delete(_where(FILE_ID, file_id))

    async def delete_document(self, doc_id: str) -> None:
        """Remove all chunks of a document; it is no error if there are none."""
        await self._delete(_where(DOC_ID, doc_id))

    async def search(self, query: VectorQuery) -> list[Hit]:
        """At most `query.limit` hits, best first."""
        if query.filter.allows_nothing:
            return []
        return await self._read(self._search_now, query)

    async def chunk_counts(self) -> Mapping[str, int]:
        """For every document id that has vectors, how many."""
        return await self._read(self._shard.count_by, DOC_ID)

    async def clear(self) -> None:
        """Remove everything. A search meanwhile raises `EngineUnavailable`."""
        await self._write(self._shard.clear)

    async def check(self) -> None:
        """Return if the shard is open and answers; raise `Unavailable` otherwise."""
        await self._read(self._shard.check)

    async def close(self) -> None:
        """Flush and release the folder, after the writes that have begun."""
        await self._write(self._shard.close)

    def _upsert_now(self, chunks: Sequence[IndexedChunk]) -> None:
        self._tenants.update(chunk.tenant for chunk in chunks)
        points = [_point(chunk, self._words) for chunk in chunks]
        self._shard.write(
            [
                qe.UpdateOperation.upsert_points(points[start : start + UPSERT_BATCH])
                for start in range(0, len(points), UPSERT_BATCH)
            ]
        )

    def _search_now(self, query: VectorQuery) -> list[Hit]:
        alone = self._tenants <= {query.tenant}
        legs = _legs(query, self._words, candidates=self._candidates, alone=alone)
        meaning, *words = [_hits(points) for points in self._shard.query_batch(legs)]
        return self._fuse(meaning, words[0] if words else [])[: query.limit]

    async def _delete(self, where: qe.Filter) -> None:
        await self._write(self._shard.write, [qe.UpdateOperation.delete_points_by_filter(where)])

    async def _read(
        self, call: Callable[[*_Arguments], _Result], *arguments: *_Arguments
    ) -> _Result:
        return await to_thread.run_sync(call, *arguments, limiter=self._readers)

    async def _write(self, call: Callable[[*_Arguments], None], *arguments: *_Arguments) -> None:
        await to_thread.run_sync(call, *arguments, limiter=self._writers)


async def open_edge_index(
    path: Path, *, dimensions: int, candidates: int, replace: bool = False, fuse: Fuse = fuse
) -> EdgeIndex:
    """Open the index in the folder `path`, or make one there.

    `candidates` chunks by meaning and as many by words are fused per search. `replace` drops what
    the folder held, of whatever model: for `reindex`. Raises `FolderInUse`,
    `EmbeddingModelChanged`, and `EngineFailed` where the files are damaged.
    """

    def open_now() -> EdgeIndex:
        shard = open_shard(path, dimensions=dimensions, replace=replace)
        tenants = shard.count_by(TENANT)
        return EdgeIndex(
            shard=shard, words=WordEncoder(), candidates=candidates, tenants=tenants, fuse=fuse
        )

    return await to_thread.run_sync(open_now)


def _point(chunk: IndexedChunk, words: WordEncoder) -> qe.Point:
    vectors: dict[str, qe.NamedVector] = {DENSE: chunk.vector.tolist()}
    weights = words.passage(chunk.chunk.passage)
    if weights is not None:
        vectors[WORDS] = weights
    return qe.Point(id=point_id(chunk.chunk.chunk_id), vector=vectors, payload=payload(chunk))


def _legs(
    query: VectorQuery, words: WordEncoder, *, candidates: int, alone: bool
) -> list[qe.QueryRequest]:
    """What is nearest by meaning and, where the query has words, by them.

    The corpus of the inverse document frequency is the tenant's own: no tenant's ranking tells
    anything of another's documents. Counting it takes 0.5 ms at 20,000 points and grows with
    them, so it is left out where the tenant is `alone` and the whole shard is that corpus.
    """
    allowed = _filter(conditions(query))
    depth = max(candidates, query.limit)

    def leg(nearest: qe.Query, params: qe.SearchParams | None = None) -> qe.QueryRequest:
        return qe.QueryRequest(
            limit=depth, query=nearest, filter=allowed, params=params, with_payload=[CHUNK_ID]
        )

    legs = [leg(qe.Query.Nearest(query.vector.tolist(), using=DENSE))]
    weights = words.query(query.text)
    if weights is not None:
        corpus = None if alone else qe.IdfParams(corpus=_where(TENANT, query.tenant))
        legs.append(leg(qe.Query.Nearest(weights, using=WORDS), qe.SearchParams(idf=corpus)))
    return legs


def _hits(points: Sequence[qe.ScoredPoint]) -> list[Hit]:
    return [Hit(chunk_id=(p.payload or {})[CHUNK_ID], score=p.score) for p in points]


def _filter(wanted: Conditions) -> qe.Filter:
    must: list[qe.ConditionType] = [
        _condition(group[0])
        if len(group) == 1
        else qe.Filter(should=[_condition(one) for one in group])
        for group in wanted.must
    ]
    return qe.Filter(must=must, must_not=[_condition(one) for one in wanted.must_not])


def _where(key: str, value: str) -> qe.Filter:
    return qe.Filter(must=[_condition(AnyOf(key, (value,)))])


def _condition(one: AnyOf) -> qe.FieldCondition:
    single = len(one.values) == 1
    match = qe.MatchValue(one.values[0]) if single else qe.MatchAny(list(one.values))
    return qe.FieldCondition(key=one.key, match=match)
