"""Searching by codes: what is found and how it is scored, and changing from one kind to another."""

from __future__ import annotations

import json
import logging
import random
import shutil
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as qe
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.conversions.common_types import QueryResponse

from privategpt.backends.vectors.edge import EdgeIndex, open_edge_index
from privategpt.backends.vectors.layout import LAYOUT_FILE
from privategpt.backends.vectors.points import DENSE, INDEXED_KEYS, WORDS
from privategpt.backends.vectors.quantization import (
    GRAPH_REACH,
    Quantization,
    edge_config,
    edge_search,
)
from privategpt.backends.vectors.server import ServerIndex
from privategpt.backends.vectors.shard import optimize_folder
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.library import IndexedChunk, VectorIndex, VectorQuery
from privategpt.domain.ports import Vector
from tests.fakes.vectors import passage

DIMENSIONS = 32
CODED: tuple[Quantization, ...] = ("int8", "turbo", "binary")

pytestmark = pytest.mark.filterwarnings(
    "ignore:Payload indexes have no effect in the local", "ignore:Local mode performs exact"
)


def vector_of(number: int) -> Vector:
    source = random.Random(number)  # noqa: S311 - test data
    values = [source.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = sum(value * value for value in values) ** 0.5
    return array("f", [value / length for value in values])


def chunk(number: int) -> IndexedChunk:
    return passage(number, vector_of(number))


def ask(number: int, *, limit: int = 10) -> VectorQuery:
    return VectorQuery(
        text=f"passage {number}", vector=vector_of(1000 + number), tenant="alpha", limit=limit
    )


async def edge(
    folder: Path, quantization: Quantization = "none", *, candidates: int = 100
) -> EdgeIndex:
    return await open_edge_index(
        folder / "vectors",
        dimensions=DIMENSIONS,
        candidates=candidates,
        quantization=quantization,
    )


class ListeningClient(AsyncQdrantClient):
    """Qdrant in memory, which takes quantization and does nothing about it; tells what it heard."""

    def __init__(self) -> None:
        super().__init__(location=":memory:")
        self.changes: list[Any] = []
        self.searches: list[models.QueryRequest] = []

    async def update_collection(self, collection_name: str, *args: Any, **changed: Any) -> bool:
        self.changes.append(changed)
        return await super().update_collection(collection_name, *args, **changed)

    async def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *args: Any, **rest: Any
    ) -> list[QueryResponse]:
        self.searches += requests
        return await super().query_batch_points(collection_name, requests, *args, **rest)


async def server(client: AsyncQdrantClient, quantization: Quantization = "none") -> ServerIndex:
    index = ServerIndex(
        client=client,
        words=WordEncoder(),
        collection="privategpt",
        dimensions=DIMENSIONS,
        candidates=100,
        timeout_s=30,
        quantization=quantization,
    )
    await index.prepare()
    return index


async def opened(kind: str, folder: Path, quantization: Quantization) -> VectorIndex:
    if kind == "edge":
        return await edge(folder / quantization, quantization)
    return await server(AsyncQdrantClient(location=":memory:"), quantization)


@pytest.mark.parametrize("kind", ["edge", "server"])
@pytest.mark.parametrize("quantization", CODED)
async def test_what_the_codes_find_is_scored_as_without_them(
    kind: str, quantization: Quantization, tmp_path: Path
) -> None:
    plain = await opened(kind, tmp_path, "none")
    coded = await opened(kind, tmp_path, quantization)
    # All of them are candidates, so that the codes cannot lose any.
    chunks = [chunk(number) for number in range(80)]
    for index in (plain, coded):
        await index.upsert(chunks)
    for number in range(10):
        expected = await plain.search(ask(number))
        assert [hit.chunk_id for hit in await coded.search(ask(number))] == [
            hit.chunk_id for hit in expected
        ]
        assert [hit.score for hit in await coded.search(ask(number))] == pytest.approx(
            [hit.score for hit in expected], abs=1e-5
        )
    for index in (plain, coded):
        await index.close()


@pytest.mark.parametrize("quantization", CODED)
async def test_codes_survive_a_restart_optimizing_and_clearing(
    quantization: Quantization, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = await edge(tmp_path, quantization)
    await index.upsert([chunk(number) for number in range(300)])
    await index.close()
    optimize_folder(tmp_path / "vectors", quantization=quantization)
    index = await edge(tmp_path, quantization)
    assert await index.count("file") == 300
    stored = VectorQuery(text="", vector=vector_of(7), tenant="alpha", limit=1)
    assert [hit.chunk_id for hit in await index.search(stored)] == [chunk(7).chunk.chunk_id]
    await index.clear()
    await index.close()
    await (await edge(tmp_path, quantization)).close()
    assert quantization in config_of(tmp_path)
    assert caplog.records == []


def config_of(folder: Path) -> str:
    return (folder / "vectors" / "edge_config.json").read_text()


@pytest.mark.parametrize(("before", "after"), [("none", "turbo"), ("turbo", "none")])
async def test_an_index_keeps_its_quantization_until_it_is_optimized(
    before: Quantization,
    after: Quantization,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = await edge(tmp_path, before)
    await index.upsert([chunk(number) for number in range(300)])
    found = await index.search(ask(3))
    await index.close()

    index = await edge(tmp_path, after)
    assert await index.search(ask(3)) == found
    await index.close()
    [warning] = caplog.records
    assert (warning.levelno, warning.args) == (logging.WARNING, (before, after))
    assert "privategpt optimize" in warning.getMessage()
    assert ("turbo" in config_of(tmp_path)) is (before == "turbo")

    assert optimize_folder(tmp_path / "vectors", quantization=after)
    assert not optimize_folder(tmp_path / "vectors", quantization=after)
    caplog.clear()
    index = await edge(tmp_path, after)
    assert [hit.chunk_id for hit in await index.search(ask(3))] == [hit.chunk_id for hit in found]
    await index.close()
    assert caplog.records == []
    assert ("turbo" in config_of(tmp_path)) is (after == "turbo")


async def test_an_index_from_before_there_was_quantization_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await (await edge(tmp_path)).close()
    path = tmp_path / "vectors" / LAYOUT_FILE
    note = json.loads(path.read_text())
    del note["quantization"]
    path.write_text(json.dumps(note))
    await (await edge(tmp_path)).close()
    assert not optimize_folder(tmp_path / "vectors", quantization="none")
    assert caplog.records == []


async def test_an_index_of_float32_stays_so_when_it_gets_codes(tmp_path: Path) -> None:
    """As they were written before vectors were kept as float16."""
    path = tmp_path / "vectors"
    await (await edge(tmp_path)).close()
    note = json.loads((path / LAYOUT_FILE).read_text())
    assert note.pop("precision") == "float16"
    assert "float16" in config_of(tmp_path)
    shutil.rmtree(path)
    create_precise(path)
    (path / LAYOUT_FILE).write_text(json.dumps(note))

    index = await edge(tmp_path)
    await index.upsert([chunk(number) for number in range(300)])
    found = await index.search(ask(3))
    await index.close()
    assert optimize_folder(path, quantization="turbo")
    index = await edge(tmp_path, "turbo")
    assert await index.search(ask(3)) == found
    await index.upsert([chunk(1000)])
    assert await index.count("file") == 301
    await index.close()
    assert "float16" not in config_of(tmp_path)


def create_precise(path: Path) -> None:
    path.mkdir()
    config = qe.EdgeConfig(
        vectors={DENSE: qe.EdgeVectorParams(DIMENSIONS, qe.Distance.Cosine)},
        sparse_vectors={WORDS: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
    )
    shard = qe.EdgeShard.create(str(path), config)
    for key in INDEXED_KEYS:
        shard.update(qe.UpdateOperation.create_field_index(key, qe.KeywordIndexParams()))
    shard.close()


WIDE = 1536
"""Dimensions of which a few thousand vectors are worth a graph to the engine: 20 MB."""


def wide(number: int) -> IndexedChunk:
    vector = array("f", [0.0] * WIDE)
    vector[number % WIDE], vector[number // WIDE] = 0.8, 0.6
    return replace(chunk(number), vector=vector)


@pytest.mark.parametrize(
    ("quantization", "optimized", "advised"),
    [("none", False, True), ("none", True, False), ("turbo", False, False)],
)
async def test_a_large_index_whose_vectors_are_all_read_says_what_would_help(
    quantization: Quantization,
    optimized: bool,
    advised: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path, chunks = tmp_path / "vectors", 3500 if optimized else 30

    async def open_wide() -> EdgeIndex:
        return await open_edge_index(
            path, dimensions=WIDE, candidates=10, quantization=quantization
        )

    index = await open_wide()
    await index.upsert([wide(number) for number in range(chunks)])
    await index.close()
    if optimized:
        assert optimize_folder(path)
    monkeypatch.setattr("privategpt.backends.vectors.edge.SCANNED_AT_MOST", chunks + 1)
    await (await open_wide()).close()
    assert caplog.records == []
    monkeypatch.setattr("privategpt.backends.vectors.edge.SCANNED_AT_MOST", chunks)
    await (await open_wide()).close()
    assert ["privategpt optimize" in record.getMessage() for record in caplog.records] == (
        [True] if advised else []
    )


def test_without_codes_the_engine_is_told_nothing_of_them() -> None:
    assert edge_config("none") is None
    assert edge_search("none").quantization is None


async def test_codes_of_four_bits_find_what_the_vectors_find(tmp_path: Path) -> None:
    """The ten best of 600, and no more asked of the codes."""
    found: dict[Quantization, list[set[str]]] = {}
    for quantization in ("none", "turbo"):
        index = await edge(tmp_path / quantization, quantization, candidates=10)
        await index.upsert([chunk(number) for number in range(600)])
        found[quantization] = [
            {hit.chunk_id for hit in await index.search(by_meaning(number))} for number in range(20)
        ]
        await index.close()
    kept = [len(a & b) for a, b in zip(found["none"], found["turbo"], strict=True)]
    assert sum(kept) >= 198


def by_meaning(number: int) -> VectorQuery:
    return VectorQuery(text="", vector=vector_of(5000 + number), tenant="alpha", limit=10)


@pytest.mark.parametrize("quantization", ["none", *CODED])
async def test_a_new_collection_gets_the_codes_and_is_asked_by_them(
    quantization: Quantization,
) -> None:
    client = ListeningClient()
    index = await server(client, quantization)
    await index.upsert([chunk(1)])
    await index.search(ask(1))
    found = await client.get_collection("privategpt")
    vectors = found.config.params.vectors
    assert isinstance(vectors, dict)
    assert (vectors[DENSE].quantization_config is None) is (quantization == "none")
    by_dense = client.searches[0].params
    assert by_dense is not None
    assert by_dense.hnsw_ef == GRAPH_REACH
    assert (by_dense.quantization is None) is (quantization == "none")
    assert by_dense.quantization is None or by_dense.quantization.rescore
    await server(client, quantization)
    assert client.changes == []
    await index.close()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "none",
            "binary",
            models.BinaryQuantization(binary=models.BinaryQuantizationConfig()),
        ),
        ("turbo", "none", models.Disabled.DISABLED),
    ],
)
async def test_a_server_is_told_to_change_the_codes_of_a_collection(
    before: Quantization, after: Quantization, told: object
) -> None:
    client = ListeningClient()
    await server(client, before)
    index = await server(client, after)
    wanted = models.VectorParamsDiff.model_validate({"quantization_config": told})
    assert client.changes == [{"vectors_config": {DENSE: wanted}}]
    await index.close()


def test_the_engines_sizes_are_those_that_the_settings_say() -> None:
    turbo = edge_config("turbo")
    assert isinstance(turbo, qe.TurboQuantQuantizationConfig)
    assert turbo.bits == qe.TurboQuantBitSize.Bits4
    assert isinstance(edge_config("int8"), qe.ScalarQuantizationConfig)
    assert isinstance(edge_config("binary"), qe.BinaryQuantizationConfig)
