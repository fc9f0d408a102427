"""The embedded vector index: Qdrant Edge in this process.

The engine keeps the interpreter (the GIL) to itself for the whole of a call, so calls are kept
short: the event loop waits for each, whichever thread makes it. So it makes those of searches
itself, which saves it two hand-overs and the quarrel about the interpreter; the others are made
on threads, for the disk that they may wait for. See `shard` for what else is known of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, TypeVarTuple, cast
from uuid import UUID

import qdrant_edge as qe
from anyio import CapacityLimiter, to_thread

from privategpt.backends.gathering import Gathering
from privategpt.backends.vectors.fusion import Fuse, Ranking, fuse
from privategpt.backends.vectors.points import (
    CHUNK_ID,
    DENSE,
    DOC_ID,
    FILE_ID,
    TENANT,
    WORDS,
    AnyOf,
    Conditions,
    chunk_id_of,
    conditions,
    payload,
    point_id,
)
from privategpt.backends.vectors.quantization import Quantization, edge_search
from privategpt.backends.vectors.shard import ShardFolder, open_shard
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.library import Hit, IndexedChunk, VectorQuery

SEARCHES_AT_ONCE = 8
"""Searches in one engine call. In eights one takes less than half of what it takes alone; more
gain little, and nothing else in this process runs meanwhile."""

READERS = 4
"""Other reads at the same time."""

UPSERT_BATCH = 256
"""Points per engine call, which bounds one record of its WAL."""

SCANNED_AT_MOST = 200_000
"""Chunks: reading as many vectors takes 50 ms of processor time, which people begin to notice."""

_log = logging.getLogger(__name__)

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
        self._by_meaning = edge_search(shard.quantization)
        self._words = words
        self._candidates = candidates
        self._tenants = frozenset(tenants)
        self._fuse = fuse
        self._searches = Gathering(
            self._search_now, threads=0, at_most=SEARCHES_AT_ONCE, name="vector index"
        )
        self._readers = CapacityLimiter(READERS)
        self._writers = CapacityLimiter(1)

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        """Store or overwrite; flushed to disk when it returns."""
        if chunks:
            await self._write(self._upsert_now, tuple(chunks))

    async def count(self, file_id: str | None = None) -> int:
        """How many chunks of that file are stored; without one, of all files."""
        where = None if file_id is None else _where(FILE_ID, file_id)
        return await self._read(self._shard.count, where)

    async def delete_file(self, file_id: str) -> None:
        """Remove all chunks of a file; it is no error if there are none."""
        await self._delete(_where(FILE_ID, file_id))

    async def delete_document(self, doc_id: str) -> None:
        """Remove all chunks of a document; it is no error if there are none."""
        await self._delete(_where(DOC_ID, doc_id))

    def expect(self, text: str) -> None:
        """Weigh the words; see `VectorIndex`."""
        self._words.query(text)

    async def search(self, query: VectorQuery) -> list[Hit]:
        """At most `query.limit` hits, best first."""
        if query.filter.allows_nothing:
            return []
        return await self._searches.ask(query)

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
        self._searches.close()
        await self._write(self._shard.close)

    def _upsert_now(self, chunks: Sequence[IndexedChunk]) -> None:
        # Before the first of them can be found: see `_search_now`.
        self._tenants |= {chunk.tenant for chunk in chunks}
        points = [_point(chunk, self._words) for chunk in chunks]
        self._shard.write(
            [
                qe.UpdateOperation.upsert_points(points[start : start + UPSERT_BATCH])
                for start in range(0, len(points), UPSERT_BATCH)
            ]
        )

    def _search_now(self, queries: Sequence[VectorQuery]) -> list[list[Hit]]:
        only = self._only_tenant()
        rankings = self._rank(queries, only=only)
        if only is not None and self._only_tenant() != only:
            # Another tenant's first chunks came in meanwhile, and nothing has kept them out.
            rankings = self._rank(queries, only=None)
        return [self._hits(ranking) for ranking in rankings]

    def _only_tenant(self) -> str | None:
        """Whose every chunk is; None where they are of several tenants."""
        return next(iter(self._tenants)) if len(self._tenants) == 1 else None

    def _rank(self, queries: Sequence[VectorQuery], *, only: str | None) -> list[Ranking[int]]:
        """For each query its best points; all chunks are known to be those of tenant `only`."""
        searches = [
            _Search(
                query=query,
                words=self._words.query(query.text),
                alone=query.tenant == only,
                depth=max(self._candidates, query.limit),
                params=self._by_meaning,
            )
            for query in queries
        ]
        # All that is asked by meaning side by side, to be scored together.
        by_meaning = [search.by_meaning() for search in searches]
        by_words = [leg for search in searches for leg in search.by_words()]
        found = self._shard.query_batch(by_meaning + by_words)
        words = iter(found[len(searches) :])
        return [
            self._fuse(_scores(meaning), {} if search.words is None else _scores(next(words)))[
                : search.query.limit
            ]
            for search, meaning in zip(searches, found, strict=False)
        ]

    def _hits(self, ranking: Ranking[int]) -> list[Hit]:
        ids = {point: chunk_id_of(point) for point, _ in ranking}
        hashed = [UUID(int=point) for point, chunk_id in ids.items() if chunk_id is None]
        if hashed:
            ids |= {
                id_.int: stored for id_, stored in self._shard.payloads(hashed, CHUNK_ID).items()
            }
        # A point that was deleted this moment has no payload any more.
        return [
            Hit(chunk_id=chunk_id, score=score)
            for point, score in ranking
            if (chunk_id := ids[point]) is not None
        ]

    async def _delete(self, where: qe.Filter) -> None:
        await self._write(self._shard.write, [qe.UpdateOperation.delete_points_by_filter(where)])

    async def _read(
        self, call: Callable[[*_Arguments], _Result], *arguments: *_Arguments
    ) -> _Result:
        return await to_thread.run_sync(call, *arguments, limiter=self._readers)

    async def _write(self, call: Callable[[*_Arguments], None], *arguments: *_Arguments) -> None:
        await to_thread.run_sync(call, *arguments, limiter=self._writers)


async def open_edge_index(
    path: Path,
    *,
    dimensions: int,
    candidates: int,
    quantization: Quantization = "none",
    replace: bool = False,
    fuse: Fuse = fuse,
) -> EdgeIndex:
    """Open the index in the folder `path`, or make one there.

    `candidates` chunks by meaning and as many by words are fused per search. `replace` drops what
    the folder held, of whatever model: for `reindex`. Raises `FolderInUse`,
    `EmbeddingModelChanged`, and `EngineFailed` where the files are damaged.
    """

    def open_now() -> EdgeIndex:
        shard = open_shard(path, dimensions=dimensions, quantization=quantization, replace=replace)
        tenants = shard.count_by(TENANT)
        _advise(shard, chunks=sum(tenants.values()))
        return EdgeIndex(
            shard=shard, words=WordEncoder(), candidates=candidates, tenants=tenants, fuse=fuse
        )

    return await to_thread.run_sync(open_now)


def _advise(shard: ShardFolder, *, chunks: int) -> None:
    if chunks >= SCANNED_AT_MOST and shard.is_scanned:
        _log.warning(
            "the vector index has %d chunks, and every search reads all of them; with the server "
            "stopped, `privategpt optimize` makes it faster, most so with vectors.quantization",
            chunks,
        )


def _point(chunk: IndexedChunk, words: WordEncoder) -> qe.Point:
    vectors: dict[str, qe.NamedVector] = {DENSE: chunk.vector.tolist()}
    weights = words.passage(chunk.chunk.passage)
    if weights is not None:
        vectors[WORDS] = weights
    return qe.Point(id=point_id(chunk.chunk.chunk_id), vector=vectors, payload=payload(chunk))


@dataclass(frozen=True, slots=True)
class _Search:
    """What is asked of the engine for a query: what is nearest by meaning and by words.

    The corpus of the inverse document frequency is the tenant's own: no tenant's ranking tells
    anything of another's documents. Counting it takes 0.5 ms at 20,000 points and grows with
    them, so it is left out where the tenant is `alone` and the whole shard is that corpus. The
    engine would look the tenant itself up for every candidate, for 0.8 ms.
    """

    query: VectorQuery
    words: qe.SparseVector | None
    alone: bool
    depth: int
    params: qe.SearchParams

    def by_meaning(self) -> qe.QueryRequest:
        """The cosine's leg."""
        return self._leg(qe.Query.Nearest(self.query.vector.tolist(), using=DENSE), self.params)

    def by_words(self) -> list[qe.QueryRequest]:
        """BM25's leg; none where the query has no words."""
        if self.words is None:
            return []
        corpus = None if self.alone else qe.IdfParams(corpus=_where(TENANT, self.query.tenant))
        params = qe.SearchParams(idf=corpus)
        return [self._leg(qe.Query.Nearest(self.words, using=WORDS), params)]

    def _leg(self, nearest: qe.Query, params: qe.SearchParams | None = None) -> qe.QueryRequest:
        allowed = _filter(conditions(self.query, alone=self.alone))
        return qe.QueryRequest(limit=self.depth, query=nearest, filter=allowed, params=params)


def _scores(points: Sequence[qe.ScoredPoint]) -> dict[int, float]:
    """By the ids' numbers, which are compared faster than the ids."""
    uuids = cast("list[UUID]", [point.id for point in points])
    return {uuid.int: point.score for uuid, point in zip(uuids, points, strict=True)}


def _filter(wanted: Conditions) -> qe.Filter | None:
    if not wanted.must and not wanted.must_not:
        return None
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
