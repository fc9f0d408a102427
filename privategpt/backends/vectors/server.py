"""The vector index of an installation that outgrew one machine: a Qdrant server or cluster.

Points, filters, word weights and fusion are those of the embedded index, so both rank alike.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import assert_never

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.conversions.common_types import PointId
from qdrant_edge import SparseVector

from privategpt.backends.vectors.fusion import fuse
from privategpt.backends.vectors.points import (
    CHUNK_ID,
    DENSE,
    DOC_ID,
    FILE_ID,
    INDEXED_KEYS,
    TENANT,
    WORDS,
    AnyOf,
    Conditions,
    conditions,
    payload,
    point_id,
)
from privategpt.backends.vectors.quantization import GRAPH_REACH, Quantization, oversampling
from privategpt.backends.vectors.server_errors import server_errors
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.addresses import is_loopback_url
from privategpt.domain.errors import EmbeddingModelChanged, EngineFailed
from privategpt.domain.library import Hit, IndexedChunk, VectorQuery

UPSERT_BATCH = 256
"""Points per request: about 1 MB at 384 dimensions, far below any server's limit."""

SCROLL_BATCH = 10_000

_REBUILD = "`privategpt reindex` rebuilds it from the stored documents"


class ServerIndex:
    """A `VectorIndex` in one collection of a Qdrant server. `timeout_s` bounds every request."""

    def __init__(
        self,
        *,
        client: AsyncQdrantClient,
        words: WordEncoder,
        collection: str,
        dimensions: int,
        candidates: int,
        timeout_s: float,
        quantization: Quantization = "none",
    ) -> None:
        self._client = client
        self._words = words
        self._collection = collection
        self._dimensions = dimensions
        self._candidates = candidates
        self._timeout_s = timeout_s
        self._codes = _codes(quantization)
        self._by_meaning = _search(quantization)

    async def prepare(self, *, replace: bool = False) -> None:
        """Make the collection if it is not there; with `replace`, make it anew.

        The codes of one that has another quantization the server rewrites while it serves. Raises
        `EmbeddingModelChanged` where the one that is there has other dimensions or word weights.
        """
        if replace:
            await self.clear()
            return
        async with server_errors(self._timeout_s):
            exists = await self._client.collection_exists(self._collection)
        if not exists:
            await self._create()
            return
        async with server_errors(self._timeout_s):
            found = await self._client.get_collection(self._collection)
        if _dimensions(found) != self._dimensions:
            raise EmbeddingModelChanged(
                f"The collection {self._collection!r} was made for {_dimensions(found)} "
                f"dimensions, the configured embedding model has {self._dimensions}; "
                f"{_REBUILD}"
            )
        if WORDS not in (found.config.params.sparse_vectors or {}):
            raise EmbeddingModelChanged(
                f"The collection {self._collection!r} was made by another release, which weighed "
                f"words in another way than {WORDS!r}; {_REBUILD}"
            )
        if _codes_of(found) != self._codes:
            await self._change_codes()
        # Again at every start: the process may have died between the collection and its indexes.
        await self._create_payload_indexes()

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        """Store or overwrite; in the server's write-ahead log when it returns."""
        for start in range(0, len(chunks), UPSERT_BATCH):
            batch = chunks[start : start + UPSERT_BATCH]
            points = await asyncio.to_thread(self._points, batch)
            async with server_errors(self._timeout_s):
                await self._client.upsert(self._collection, points, wait=True)

    async def count(self, file_id: str | None = None) -> int:
        """How many chunks of that file are stored; without one, of all files."""
        where = None if file_id is None else _where(FILE_ID, file_id)
        async with server_errors(self._timeout_s):
            found = await self._client.count(self._collection, count_filter=where, exact=True)
        return found.count

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
        legs = _legs(query, self._words, candidates=self._candidates, by_meaning=self._by_meaning)
        async with server_errors(self._timeout_s):
            found = await self._client.query_batch_points(
                self._collection, legs, timeout=math.ceil(self._timeout_s)
            )
        meaning, *words = [_scores(response.points) for response in found]
        ranking = fuse(meaning, words[0] if words else {})[: query.limit]
        return [Hit(chunk_id=chunk_id, score=score) for chunk_id, score in ranking]

    async def chunk_counts(self) -> Mapping[str, int]:
        """For every document id that has vectors, how many."""
        counts: Counter[str] = Counter()
        offset: PointId | None = None
        while True:
            async with server_errors(self._timeout_s):
                records, offset = await self._client.scroll(
                    self._collection,
                    limit=SCROLL_BATCH,
                    offset=offset,
                    with_payload=[DOC_ID],
                    with_vectors=False,
                )
            counts.update((record.payload or {})[DOC_ID] for record in records)
            if offset is None:
                return counts

    async def clear(self) -> None:
        """Drop the collection and make it anew with the present dimensions."""
        async with server_errors(self._timeout_s):
            await self._client.delete_collection(self._collection)
        await self._create()

    async def check(self) -> None:
        """Return if the server answers for the collection; raise `Unavailable` otherwise."""
        async with server_errors(self._timeout_s):
            exists = await self._client.collection_exists(self._collection)
        if not exists:
            raise EngineFailed(f"The vector collection {self._collection!r} is not there")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _create(self) -> None:
        dense = models.VectorParams(
            size=self._dimensions,
            distance=models.Distance.COSINE,
            quantization_config=self._codes,
        )
        words = models.SparseVectorParams(modifier=models.Modifier.IDF)
        async with server_errors(self._timeout_s):
            await self._client.create_collection(
                self._collection,
                vectors_config={DENSE: dense},
                sparse_vectors_config={WORDS: words},
            )
        await self._create_payload_indexes()

    async def _change_codes(self) -> None:
        codes = models.VectorParamsDiff(quantization_config=self._codes or models.Disabled.DISABLED)
        async with server_errors(self._timeout_s):
            await self._client.update_collection(self._collection, vectors_config={DENSE: codes})

    async def _create_payload_indexes(self) -> None:
        for key in INDEXED_KEYS:
            keyword = models.KeywordIndexParams(
                type=models.KeywordIndexType.KEYWORD, is_tenant=key == TENANT
            )
            async with server_errors(self._timeout_s):
                await self._client.create_payload_index(self._collection, key, keyword)

    def _points(self, chunks: Sequence[IndexedChunk]) -> list[models.PointStruct]:
        return [_point(chunk, self._words) for chunk in chunks]

    async def _delete(self, where: models.Filter) -> None:
        selector = models.FilterSelector(filter=where)
        async with server_errors(self._timeout_s):
            await self._client.delete(self._collection, selector, wait=True)


async def open_server_index(
    url: str,
    *,
    collection: str,
    dimensions: int,
    candidates: int,
    timeout_s: float,
    api_key: str | None = None,
    prefer_grpc: bool = True,
    quantization: Quantization = "none",
    replace: bool = False,
) -> ServerIndex:
    """Connect to the server at `url` and make the collection if it is not there.

    `replace` drops what the collection held, of whatever model: for `reindex`. Raises
    `Unavailable` where the server does not answer, and `EmbeddingModelChanged`.
    """
    # A proxy of the environment is for the world outside: it would carry titles off this machine.
    proxied = not is_loopback_url(url)
    client = AsyncQdrantClient(
        url=url,
        api_key=api_key,
        prefer_grpc=prefer_grpc,
        grpc_options={"grpc.enable_http_proxy": int(proxied)},
        timeout=math.ceil(timeout_s),
        check_compatibility=False,  # it would print warnings from a thread of its own
        trust_env=proxied,
    )
    index = ServerIndex(
        client=client,
        words=WordEncoder(),
        collection=collection,
        dimensions=dimensions,
        candidates=candidates,
        timeout_s=timeout_s,
        quantization=quantization,
    )
    try:
        await index.prepare(replace=replace)
    except BaseException:
        await index.close()
        raise
    return index


def _dense(found: models.CollectionInfo) -> models.VectorParams | None:
    vectors = found.config.params.vectors
    return vectors.get(DENSE) if isinstance(vectors, dict) else None


def _dimensions(found: models.CollectionInfo) -> int | None:
    dense = _dense(found)
    return dense.size if dense is not None else None


def _codes_of(found: models.CollectionInfo) -> models.QuantizationConfig | None:
    dense = _dense(found)
    return dense.quantization_config if dense is not None else None


def _codes(quantization: Quantization) -> models.QuantizationConfig | None:
    match quantization:
        case "none":
            return None
        case "int8":
            scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8)
            return models.ScalarQuantization(scalar=scalar)
        case "turbo":
            turbo = models.TurboQuantQuantizationConfig(bits=models.TurboQuantBitSize.BITS4)
            return models.TurboQuantization(turbo=turbo)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig())
        case _:
            assert_never(quantization)


def _search(quantization: Quantization) -> models.SearchParams:
    rescored = None
    if quantization != "none":
        rescored = models.QuantizationSearchParams(
            rescore=True, oversampling=oversampling(quantization)
        )
    return models.SearchParams(hnsw_ef=GRAPH_REACH, quantization=rescored)


def _point(chunk: IndexedChunk, words: WordEncoder) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {DENSE: chunk.vector.tolist()}
    weights = words.passage(chunk.chunk.passage)
    if weights is not None:
        vectors[WORDS] = _sparse(weights)
    return models.PointStruct(
        id=point_id(chunk.chunk.chunk_id), vector=vectors, payload=payload(chunk)
    )


def _legs(
    query: VectorQuery,
    words: WordEncoder,
    *,
    candidates: int,
    by_meaning: models.SearchParams,
) -> list[models.QueryRequest]:
    """By meaning and by words; the latter weighs words by the tenant's own documents."""
    allowed = _filter(conditions(query))
    depth = max(candidates, query.limit)

    def leg(
        nearest: list[float] | models.SparseVector,
        using: str,
        params: models.SearchParams | None = None,
    ) -> models.QueryRequest:
        return models.QueryRequest(
            query=nearest,
            using=using,
            limit=depth,
            filter=allowed,
            params=params,
            with_payload=[CHUNK_ID],
        )

    legs = [leg(query.vector.tolist(), DENSE, by_meaning)]
    weights = words.query(query.text)
    if weights is not None:
        corpus = models.IdfCorpusParams(corpus=_where(TENANT, query.tenant))
        legs.append(leg(_sparse(weights), WORDS, models.SearchParams(idf=corpus)))
    return legs


def _scores(points: Sequence[models.ScoredPoint]) -> dict[str, float]:
    return {str((point.payload or {})[CHUNK_ID]): point.score for point in points}


def _sparse(weights: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=weights.indices, values=weights.values)


def _filter(wanted: Conditions) -> models.Filter:
    must: list[models.Condition] = [
        _condition(group[0])
        if len(group) == 1
        else models.Filter(should=[_condition(one) for one in group])
        for group in wanted.must
    ]
    return models.Filter(must=must, must_not=[_condition(one) for one in wanted.must_not])


def _where(key: str, value: str) -> models.Filter:
    return models.Filter(must=[_condition(AnyOf(key, (value,)))])


def _condition(one: AnyOf) -> models.FieldCondition:
    return models.FieldCondition(key=one.key, match=models.MatchAny(any=list(one.values)))
