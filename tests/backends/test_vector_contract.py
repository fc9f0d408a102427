"""What every vector index must do: the embedded one, the server's and the fake."""

from __future__ import annotations

import os
import random
import uuid
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from qdrant_client import AsyncQdrantClient

from privategpt.backends.vectors.edge import open_edge_index
from privategpt.backends.vectors.server import ServerIndex, open_server_index
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.documents import EVERYTHING, Chunk, DocumentFilter, Metadata
from privategpt.domain.library import Hit, IndexedChunk, VectorIndex, VectorQuery
from privategpt.domain.ports import Vector
from tests.fakes.vectors import FakeVectorIndex

DIMENSIONS = 16
QDRANT_URL = os.environ.get("QDRANT_URL")

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local")


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncGenerator[VectorIndex]:
    """An empty index of that kind, closed at the end."""
    index = await OPENERS[kind](folder)
    try:
        yield index
    finally:
        await index.close()


async def open_edge(folder: Path) -> VectorIndex:
    return await open_edge_index(folder / "vectors", dimensions=DIMENSIONS, candidates=100)


async def open_memory(folder: Path) -> VectorIndex:
    index = ServerIndex(
        client=AsyncQdrantClient(location=":memory:"),
        words=WordEncoder(),
        collection="privategpt",
        dimensions=DIMENSIONS,
        candidates=100,
        timeout_s=30,
    )
    await index.prepare()
    return index


async def open_server(folder: Path) -> VectorIndex:
    assert QDRANT_URL is not None
    return await open_server_index(
        QDRANT_URL,
        collection=f"contract-{uuid.uuid4().hex}",
        dimensions=DIMENSIONS,
        candidates=100,
        timeout_s=30,
        prefer_grpc=os.environ.get("QDRANT_GRPC", "1") == "1",
    )


async def open_fake(folder: Path) -> VectorIndex:
    return FakeVectorIndex()


OPENERS: dict[str, Callable[[Path], Awaitable[VectorIndex]]] = {
    "edge": open_edge,
    "memory": open_memory,
    "server": open_server,
    "fake": open_fake,
}
needs_server = pytest.mark.skipif(QDRANT_URL is None, reason="QDRANT_URL names no Qdrant server")


@pytest.fixture(params=["edge", "memory", pytest.param("server", marks=needs_server), "fake"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[VectorIndex]:
    async with opened(request.param, tmp_path) as opened_index:
        yield opened_index


def vector_of(seed: str) -> Vector:
    """A unit vector that depends on `seed` alone."""
    source = random.Random(seed)  # noqa: S311 - test data
    values = [source.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = sum(value * value for value in values) ** 0.5
    return array("f", [value / length for value in values])


def chunk(
    text: str,
    *,
    doc_id: str = "doc",
    file_id: str = "file",
    tenant: str = "alpha",
    position: int = 0,
    metadata: Metadata | None = None,
    inner_file_id: str | None = None,
) -> IndexedChunk:
    return IndexedChunk(
        chunk=Chunk(
            chunk_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{tenant}/{file_id}/{doc_id}/{position}")),
            doc_id=doc_id,
            position=position,
            start=0,
            end=len(text),
            text=text,
        ),
        tenant=tenant,
        file_id=file_id,
        vector=vector_of(text),
        metadata=metadata or {},
        inner_file_id=inner_file_id,
    )


def ask(
    text: str,
    *,
    tenant: str = "alpha",
    limit: int = 10,
    only: DocumentFilter = EVERYTHING,
    hidden: frozenset[str] = frozenset(),
) -> VectorQuery:
    return VectorQuery(
        text=text, vector=vector_of(text), tenant=tenant, limit=limit, filter=only, hidden=hidden
    )


async def found(index: VectorIndex, query: VectorQuery) -> set[str]:
    return {hit.chunk_id for hit in await index.search(query)}


def ids(*chunks: IndexedChunk) -> set[str]:
    return {one.chunk.chunk_id for one in chunks}


async def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    assert await index.search(ask("anything")) == []
    assert await index.chunk_counts() == {}
    assert await index.count("file") == 0


async def test_the_exact_sentence_comes_first_and_scores_descend(index: VectorIndex) -> None:
    sentences = [f"sentence number {n} about topic {n % 7}" for n in range(40)]
    await index.upsert([chunk(text, position=n) for n, text in enumerate(sentences)])
    hits = await index.search(ask(sentences[17]))
    assert hits[0].chunk_id == chunk(sentences[17], position=17).chunk.chunk_id
    assert len(hits) == 10
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_no_chunk_of_another_tenant_is_found(index: VectorIndex) -> None:
    ours = chunk("the shared secret", tenant="alpha")
    theirs = chunk("the shared secret", tenant="beta")
    await index.upsert([ours, theirs])
    assert await found(index, ask("the shared secret", tenant="alpha")) == ids(ours)
    assert await found(index, ask("the shared secret", tenant="beta")) == ids(theirs)
    assert await found(index, ask("the shared secret", tenant="gamma")) == set()


async def test_ids_of_another_tenant_reach_nothing_of_it(index: VectorIndex) -> None:
    theirs = chunk("secret", tenant="beta", doc_id="their-doc", file_id="their-file")
    await index.upsert([theirs])
    only = DocumentFilter(ids=frozenset({"their-doc", "their-file"}))
    assert await found(index, ask("secret", tenant="alpha", only=only)) == set()


async def test_a_filter_takes_document_and_file_ids_alike(index: VectorIndex) -> None:
    a = chunk("apples", doc_id="doc-a", file_id="file-1")
    b = chunk("apples", doc_id="doc-b", file_id="file-1")
    c = chunk("apples", doc_id="doc-c", file_id="file-2")
    await index.upsert([a, b, c])

    async def allowed(*wanted: str) -> set[str]:
        return await found(index, ask("apples", only=DocumentFilter(ids=frozenset(wanted))))

    assert await allowed("doc-a") == ids(a)
    assert await allowed("file-1") == ids(a, b)
    assert await allowed("doc-a", "file-2") == ids(a, c)
    assert await allowed("unknown") == set()
    assert await allowed() == set()


async def test_hidden_files_and_documents_are_not_found(index: VectorIndex) -> None:
    a = chunk("pears", doc_id="doc-a", file_id="file-1")
    b = chunk("pears", doc_id="doc-b", file_id="file-1")
    c = chunk("pears", doc_id="doc-c", file_id="file-2")
    await index.upsert([a, b, c])
    assert await found(index, ask("pears", hidden=frozenset({"doc-a"}))) == ids(b, c)
    assert await found(index, ask("pears", hidden=frozenset({"file-1"}))) == ids(c)
    assert await found(index, ask("pears", hidden=frozenset({"file-1", "doc-c"}))) == set()


METADATA_CASES: list[tuple[Metadata, Metadata, bool]] = [
    ({"n": 1}, {"n": 1}, True),
    ({"n": "1"}, {"n": 1}, False),
    ({"n": 1}, {"n": "1"}, False),
    ({"n": True}, {"n": 1}, False),
    ({"n": 1}, {"n": True}, False),
    ({"n": True}, {"n": True}, True),
    ({"n": "true"}, {"n": True}, False),
    ({"n": 1.0}, {"n": 1}, True),
    ({"n": 1.5}, {"n": 1.5}, True),
    ({"n": 1.5}, {"n": 1}, False),
    ({"n": None}, {"n": None}, True),
    ({}, {"n": None}, True),
    ({"n": "x"}, {"n": None}, False),
    ({"n": None}, {"n": "None"}, False),
    ({}, {"n": "x"}, False),
    ({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, True),
    ({"a": "x", "b": "z"}, {"a": "x", "b": "y"}, False),
    ({"a.b": "x"}, {"a.b": "x"}, True),
    ({"a.b": "x"}, {"a": "x"}, False),
    ({'q"uo\\te[] \n': "x"}, {'q"uo\\te[] \n': "x"}, True),
    ({"": "x"}, {"": "x"}, True),
    ({"名前": "値"}, {"名前": "値"}, True),
    ({"long": "x" * 5000}, {"long": "x" * 5000}, True),
    ({"long": "x" * 5000 + "y"}, {"long": "x" * 5000 + "z"}, False),
    ({"tenant": "beta"}, {"tenant": "beta"}, True),
]


@pytest.mark.parametrize(("stored", "wanted", "passes"), METADATA_CASES)
async def test_metadata_is_compared_by_key_type_and_value(
    index: VectorIndex, stored: Metadata, wanted: Metadata, passes: bool
) -> None:
    one = chunk("plums", metadata=stored)
    await index.upsert([one])
    hits = await found(index, ask("plums", only=DocumentFilter(metadata=wanted)))
    assert hits == (ids(one) if passes else set())


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("edge", 10_000),
        ("memory", 1_000),  # qdrant-client's local mode is too slow for more
        pytest.param("server", 10_000, marks=needs_server),
    ],
)
async def test_thousands_of_values_and_of_ids_are_filtered(
    kind: str, size: int, tmp_path: Path
) -> None:
    chunks = [
        chunk(f"item {n}", doc_id=f"doc-{n}", position=n, metadata={"number": n})
        for n in range(size)
    ]
    async with opened(kind, tmp_path) as index:
        await index.upsert(chunks)
        by_value = DocumentFilter(metadata={"number": size // 3})
        assert await found(index, ask("item", only=by_value)) == ids(chunks[size // 3])
        thousand = frozenset(f"doc-{n}" for n in range(0, size, size // 1000))
        by_ids = DocumentFilter(ids=thousand)
        hits = await found(index, ask("item 500", limit=1000, only=by_ids))
        assert hits == ids(*chunks[:: size // 1000])
        hidden = await found(index, ask("item 500", limit=size, hidden=thousand))
        assert hidden == ids(*chunks) - ids(*chunks[:: size // 1000])


async def test_what_is_stored_again_is_overwritten(index: VectorIndex) -> None:
    await index.upsert([chunk("old words", metadata={"v": 1})])
    await index.upsert([chunk("new words", metadata={"v": 2})])
    assert await index.count("file") == 1
    assert await found(index, ask("x", only=DocumentFilter(metadata={"v": 1}))) == set()
    assert len(await found(index, ask("x", only=DocumentFilter(metadata={"v": 2})))) == 1


async def test_chunks_are_counted_by_file_and_by_document(index: VectorIndex) -> None:
    await index.upsert(
        [chunk("a", doc_id="d1", file_id="f1", position=n) for n in range(3)]
        + [chunk("b", doc_id="d2", file_id="f1", position=n) for n in range(2)]
        + [chunk("c", doc_id="d3", file_id="f2", tenant="beta")]
    )
    assert (await index.count("f1"), await index.count()) == (5, 6)
    assert dict(await index.chunk_counts()) == {"d1": 3, "d2": 2, "d3": 1}
    await index.delete_document("d1")
    assert await index.count("f1") == 2
    await index.delete_file("f1")
    assert await index.count() == 1
    assert dict(await index.chunk_counts()) == {"d3": 1}


async def test_a_file_inside_another_goes_by_both_ids(index: VectorIndex) -> None:
    mail = chunk("plums", doc_id="d1", file_id="mail")
    plan = chunk("plums", doc_id="d2", file_id="mail", inner_file_id="plan")
    menu = chunk("plums", doc_id="d3", file_id="mail", inner_file_id="menu")
    await index.upsert([mail, plan, menu])

    async def seen(*only: str, hidden: str = "") -> set[str]:
        wanted = DocumentFilter(ids=frozenset(only) if only else None)
        return await found(index, ask("plums", only=wanted, hidden=frozenset({hidden})))

    assert await seen("plan") == ids(plan)
    assert await seen("mail") == ids(mail, plan, menu)
    assert await seen(hidden="menu") == ids(mail, plan)
    assert await seen(hidden="mail") == set()
    assert (await index.count("mail"), await index.count("plan")) == (3, 1)
    await index.delete_file("plan")
    assert await seen() == ids(mail, menu)
    await index.delete_file("mail")
    assert await index.chunk_counts() == {}


async def test_deleting_what_is_not_there_is_no_error(index: VectorIndex) -> None:
    await index.delete_file("nowhere")
    await index.delete_document("nowhere")


async def test_a_deleted_sentence_is_never_found_again(index: VectorIndex) -> None:
    await index.upsert([chunk(f"filler {n}", doc_id="other", position=n) for n in range(30)])
    for n in range(20):
        sentence = f"the vault opens at {n} past noon"
        doomed = chunk(sentence, doc_id=f"doomed-{n}", file_id=f"doomed-file-{n}")
        await index.upsert([doomed])
        assert ids(doomed) <= await found(index, ask(sentence))
        await index.delete_file(f"doomed-file-{n}")
        assert not ids(doomed) & await found(index, ask(sentence, limit=100))


async def test_clearing_removes_every_tenants_chunks_and_the_index_goes_on(
    index: VectorIndex,
) -> None:
    await index.upsert([chunk("a"), chunk("b", tenant="beta")])
    await index.clear()
    assert await index.chunk_counts() == {}
    again = chunk("after")
    await index.upsert([again])
    assert await found(index, ask("after")) == ids(again)


@pytest.mark.parametrize("text", ["", "???", "the", "🙂", "\0", "x" * 100_000])
async def test_a_text_without_any_word_is_stored_and_searched_by_meaning(
    index: VectorIndex, text: str
) -> None:
    one = chunk(text)
    await index.upsert([one])
    assert await found(index, ask(text)) == ids(one)


async def test_storing_nothing_is_no_error(index: VectorIndex) -> None:
    await index.upsert([])
    assert await index.chunk_counts() == {}


async def test_an_id_that_is_no_uuid_comes_back_as_it_was(index: VectorIndex) -> None:
    plain = chunk("plain")
    odd = IndexedChunk(
        chunk=Chunk(chunk_id="Ünicode/1", doc_id="d", position=0, start=0, end=3, text="odd"),
        tenant="alpha",
        file_id="f",
        vector=vector_of("odd"),
    )
    await index.upsert([plain, odd])
    assert await found(index, ask("odd")) == {"Ünicode/1", plain.chunk.chunk_id}


async def test_searches_and_writes_run_side_by_side(index: VectorIndex) -> None:
    kept = [chunk(f"kept {n}", doc_id="kept", position=n) for n in range(20)]
    await index.upsert(kept)

    async def write(name: str) -> None:
        for n in range(10):
            await index.upsert([chunk(f"{name} {n}", doc_id=name, file_id=name, position=n)])
        await index.delete_file(name)

    async def read() -> None:
        only = DocumentFilter(ids=frozenset({"kept"}))
        for _ in range(25):
            assert await found(index, ask("kept 3", limit=50, only=only)) == ids(*kept)

    async with anyio.create_task_group() as group:
        for name in ("one", "two", "three"):
            group.start_soon(write, name)
        for _ in range(4):
            group.start_soon(read)
    assert dict(await index.chunk_counts()) == {"kept": 20}


async def test_an_open_index_passes_its_check(index: VectorIndex) -> None:
    await index.check()


TEXTS = [
    "The quick brown fox jumps over the lazy dog",
    "A lazy afternoon with a brown dog",
    "Photosynthesis turns light into sugar",
    "Chloroplasts carry out photosynthesis in leaves",
    "光合作用把光能转化为化学能",
    "Der Vertrag endet mit einer Frist von drei Monaten",
    "The contract ends with three months' notice",
    "ｆｕｌｌ　ｗｉｄｔｈ letters and digits １２３",
]


ROUNDING = 2e-4
"""Of scores: the embedded index keeps vectors in 16 bits, a server in 32."""


@pytest.mark.parametrize("other", ["memory", pytest.param("server", marks=needs_server)])
@pytest.mark.parametrize(
    "text", ["lazy brown dog", "光合作用", "notice of the contract", "123", "contracted months"]
)
async def test_edge_and_server_rank_alike(other: str, text: str, tmp_path: Path) -> None:
    chunks = [
        chunk(f"{words} {'again ' * (n % 3)}", doc_id=f"d{n}", position=n, tenant=tenant)
        for n, words in enumerate(TEXTS * 6)
        for tenant in ("alpha", "beta")[: 1 + n % 2]
    ]
    async with AsyncExitStack() as stack:
        edge = await stack.enter_async_context(opened("edge", tmp_path))
        server = await stack.enter_async_context(opened(other, tmp_path))
        for index in (edge, server):
            await index.upsert(chunks)
        expected = await edge.search(ask(text, limit=20))
        answered = await server.search(ask(text, limit=20))
    assert [hit.score for hit in answered] == pytest.approx(
        [hit.score for hit in expected], abs=ROUNDING
    )
    found, wanted = _scores(answered), _scores(expected)
    last = min(wanted.values())
    # Chunks with equal scores may come in any order, so that others stand last.
    assert {id_: found.get(id_, last) for id_ in wanted} == pytest.approx(wanted, abs=ROUNDING)
    assert {id_: wanted.get(id_, last) for id_ in found} == pytest.approx(found, abs=ROUNDING)


@pytest.mark.parametrize("kind", ["edge", "memory", pytest.param("server", marks=needs_server)])
async def test_an_identifier_finds_the_chunk_that_has_it_whole(kind: str, tmp_path: Path) -> None:
    texts = ["Valve ABC-124 beside pump XYZ-123", "Valve ABC-123 beside pump XYZ-124"]
    chunks = [chunk(text, position=n) for n, text in enumerate(texts * 3)]
    alike = [replace(one, vector=vector_of("a model that knows no codes")) for one in chunks]
    whole = ids(*chunks[1::2])
    async with opened(kind, tmp_path) as index:
        await index.upsert(alike)
        best = await index.search(replace(ask("abc-123"), vector=vector_of("another"), limit=3))
    assert {hit.chunk_id for hit in best} == whole


def _scores(hits: list[Hit]) -> dict[str, float]:
    return {hit.chunk_id: hit.score for hit in hits}


@pytest.mark.parametrize("kind", ["edge", "memory", pytest.param("server", marks=needs_server)])
async def test_another_tenants_words_do_not_change_a_ranking(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as index:
        await index.upsert([chunk(text, position=n) for n, text in enumerate(TEXTS)])
        before = await index.search(ask("brown photosynthesis"))
        await index.upsert(
            [chunk("brown " * 5, tenant="beta", position=n) for n in range(50)],
        )
        assert await index.search(ask("brown photosynthesis")) == before
