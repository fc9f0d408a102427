"""What a search returns, whatever the index still holds and whatever happens meanwhile."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.documents import EVERYTHING, Chunk, Document, DocumentFilter, File
from privategpt.domain.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    Unavailable,
)
from privategpt.domain.library import Deletion, Hit, IndexedChunk, VectorQuery
from privategpt.domain.ports import EmbeddingModel, Embeddings
from privategpt.services.retrieval import NOTHING, Retrieval, Retrieved, fit_to_window
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.state import FakeStateStore
from tests.fakes.vectors import FakeVectorIndex

TENANT = "alpha"
Interruption = Callable[[], Awaitable[None]]


class InterruptedIndex(FakeVectorIndex):
    """Lets something happen right after the first search was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.interruption: Interruption | None = None

    async def search(self, query: VectorQuery) -> list[Hit]:
        hits = await super().search(query)
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            await interruption()
        return hits


class Library:
    """Documents of one sentence per chunk, in a store and an index, and a search over them."""

    def __init__(self) -> None:
        self.embedding = FakeEmbeddingModel(max_tokens=64)
        self.index = InterruptedIndex()
        self.state = FakeStateStore()
        self.retrieval = Retrieval(embedding=self.embedding, index=self.index, state=self.state)

    async def add(
        self, name: str, *sentences: str, tenant: str = TENANT, ready: bool = True
    ) -> None:
        file = File(
            file_id=f"file-{name}",
            tenant=tenant,
            name=name,
            sha256=name,
            size_bytes=1,
            media_type="text/plain",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        text = "\n".join(sentences)
        document = Document(
            doc_id=name, file_id=file.file_id, position=0, text=text, headings=(), metadata={}
        )
        chunks = [_chunk(document, n, sentence) for n, sentence in enumerate(sentences)]
        await self.state.begin_file(file)
        await self.index.upsert(await self._indexed(chunks, file))
        if ready:
            await self.state.commit_file(file, documents=[document], chunks=chunks)

    async def delete(self, name: str) -> None:
        """As the ingestion service does it, to the end."""
        deletion = await self.state.begin_delete(TENANT, name)
        await self.index.delete_file(deletion.file_id)
        await self.state.forget(deletion)

    async def search(
        self,
        text: str,
        *,
        limit: int = 10,
        neighbours: int = 0,
        only: DocumentFilter = EVERYTHING,
        tenant: str = TENANT,
    ) -> Retrieved:
        return await self.retrieval.search(
            text, tenant=tenant, limit=limit, neighbours=neighbours, filter=only
        )

    async def _indexed(self, chunks: list[Chunk], file: File) -> list[IndexedChunk]:
        embedded = await self.embedding.embed_passages([chunk.text for chunk in chunks])
        return [
            IndexedChunk(chunk=chunk, tenant=file.tenant, file_id=file.file_id, vector=vector)
            for chunk, vector in zip(chunks, embedded.vectors, strict=True)
        ]


def _chunk(document: Document, position: int, sentence: str) -> Chunk:
    start = document.text.index(sentence)
    return Chunk(
        chunk_id=f"{document.doc_id}/{position}",
        doc_id=document.doc_id,
        position=position,
        start=start,
        end=start + len(sentence),
        text=sentence,
    )


def texts(found: Retrieved) -> list[str]:
    return [one.chunk.text for one in found.chunks]


@pytest.fixture
def library() -> Library:
    return Library()


async def test_an_empty_library_gives_nothing(library: Library) -> None:
    assert (await library.search("anything")).chunks == ()


async def test_the_best_chunk_comes_first_with_its_document_and_cost(library: Library) -> None:
    await library.add("a", "cats sleep all day", "dogs bark at night")
    await library.add("b", "the moon is far away")
    found = await library.search("when do dogs bark", limit=2)
    assert found.tokens == 4
    assert len(found.chunks) == 2
    best = found.chunks[0]
    assert best.chunk.text == "dogs bark at night"
    assert best.document.doc_id == "a"
    assert best.score >= found.chunks[1].score
    assert (best.previous, best.next) == ((), ())


async def test_the_index_is_told_of_a_question_before_it_is_embedded(library: Library) -> None:
    told: list[list[str]] = []
    embed = library.embedding.embed_query

    async def embed_query(text: str) -> Embeddings:
        told.append(list(library.index.expected))
        return await embed(text)

    with patch.object(library.embedding, "embed_query", embed_query):
        await library.retrieval.search("why", tenant=TENANT, limit=1)
    assert told == [["why"]]


async def test_no_document_ids_mean_no_documents_and_nothing_is_asked(library: Library) -> None:
    await library.add("a", "cats sleep")
    library.index.failure = EngineUnavailable("down")
    library.embedding.failure = EngineUnavailable("down")
    found = await library.search("cats", only=DocumentFilter(ids=frozenset()))
    assert found == NOTHING


async def test_ids_of_files_and_documents_narrow_the_search(library: Library) -> None:
    await library.add("a", "cats sleep")
    await library.add("b", "cats hunt")
    for wanted in ("b", "file-b"):
        only = DocumentFilter(ids=frozenset({wanted}))
        assert texts(await library.search("cats", only=only)) == ["cats hunt"]


async def test_another_tenants_documents_are_not_found(library: Library) -> None:
    await library.add("a", "cats sleep")
    assert (await library.search("cats", tenant="beta")).chunks == ()


async def test_what_is_not_ready_is_not_found(library: Library) -> None:
    await library.add("pending", "cats sleep", ready=False)
    await library.add("doomed", "cats hunt")
    await library.add("kept", "cats purr")
    await library.state.begin_delete(TENANT, "doomed")
    assert texts(await library.search("cats")) == ["cats purr"]


async def test_an_ingestion_under_way_does_not_crowd_out_what_is_ready(library: Library) -> None:
    await library.add("old", "cats sleep", "dogs bark")
    await library.add("new", *(f"cats sleep {n} times" for n in range(40)), ready=False)
    assert texts(await library.search("cats sleep", limit=2)) == ["cats sleep", "dogs bark"]
    first, second = library.index.queries
    assert (first.hidden, second.hidden) == (frozenset(), frozenset({"file-new"}))
    assert first.limit == second.limit == 2


async def test_one_search_will_do_where_all_it_finds_is_ready(library: Library) -> None:
    await library.add("a", "cats sleep", "dogs bark")
    await library.add("b", "the moon is far away", ready=False)
    assert texts(await library.search("cats sleep", limit=1)) == ["cats sleep"]
    assert len(library.index.queries) == 1


async def test_a_deletion_during_the_search_takes_effect_and_others_move_up(
    library: Library,
) -> None:
    await library.add("doomed", "cats sleep on mats")
    await library.add("kept", "cats purr")

    async def interrupt() -> None:
        await library.delete("doomed")

    library.index.interruption = interrupt
    assert texts(await library.search("cats sleep on mats", limit=1)) == ["cats purr"]


async def test_a_half_done_deletion_during_the_search_takes_effect_too(library: Library) -> None:
    await library.add("doomed", "cats sleep on mats")
    await library.add("kept", "cats purr")

    async def interrupt() -> None:
        await library.state.begin_delete(TENANT, "doomed")

    library.index.interruption = interrupt
    assert texts(await library.search("cats sleep on mats", limit=1)) == ["cats purr"]


async def test_vectors_that_no_row_knows_do_not_crowd_out_what_is_there(library: Library) -> None:
    await library.add("kept", "cats purr softly")
    for n in range(30):
        await library.add(f"lost-{n}", "cats purr", ready=False)
        await library.state.forget(Deletion(file_id=f"file-lost-{n}"))
    assert texts(await library.search("cats purr", limit=1)) == ["cats purr softly"]


async def test_neighbours_are_those_of_the_document_in_reading_order(library: Library) -> None:
    await library.add("a", "one", "two", "three", "four", "five")
    found = (await library.search("three", limit=1, neighbours=2)).chunks[0]
    assert [chunk.text for chunk in found.previous] == ["one", "two"]
    assert [chunk.text for chunk in found.next] == ["four", "five"]
    found = (await library.search("one", limit=1, neighbours=1)).chunks[0]
    assert found.previous == ()
    assert [chunk.text for chunk in found.next] == ["two"]


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u3000"])
async def test_a_text_without_a_letter_is_refused_by_name(library: Library, text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await library.search(text)
    assert refused.value.param == "text"


async def test_a_text_beyond_the_window_is_refused_with_both_numbers(library: Library) -> None:
    await library.search("word " * 64)
    with pytest.raises(ContextLengthExceeded) as refused:
        await library.search("word " * 65)
    assert refused.value.param == "text"
    assert "65 tokens" in refused.value.message
    assert "64" in refused.value.message


async def test_an_enormous_text_is_refused_without_counting_its_tokens(library: Library) -> None:
    with pytest.raises(ContextLengthExceeded, match="1000000 characters"):
        await library.search("x" * 1_000_000)


async def test_a_failing_part_is_an_error_and_never_nothing_found(library: Library) -> None:
    await library.add("a", "cats sleep")
    library.index.failure = EngineUnavailable("down")
    with pytest.raises(Unavailable):
        await library.search("cats")
    library.index.failure = None
    library.embedding.failure = EngineUnavailable("down")
    with pytest.raises(Unavailable):
        await library.search("cats")


def fit(text: str, model: EmbeddingModel) -> str:
    return Retrieval(embedding=model, index=FakeVectorIndex(), state=FakeStateStore()).fit_query(
        text
    )


def test_a_question_that_fits_is_kept_whole() -> None:
    assert fit("  why is the sky blue? ", FakeEmbeddingModel()) == "why is the sky blue?"


def test_of_a_long_question_the_beginning_and_most_of_the_end_stay() -> None:
    words = [f"w{n}" for n in range(1000)]
    fitted = fit(" ".join(words), FakeEmbeddingModel(max_tokens=40)).split()
    assert fitted == words[:10] + words[-30:]


class LineCountingTokenizer:
    """Words and line ends are tokens, so that joining two pieces by a line end costs one more."""

    max_tokens = 8

    def count(self, text: str) -> int:
        return len(self.ends(text))

    def ends(self, text: str) -> Sequence[int]:
        return [match.end() for match in re.finditer(r"\w+|\n", text)]


def test_a_cut_that_makes_new_tokens_is_cut_again() -> None:
    tokenizer = LineCountingTokenizer()
    fitted = fit_to_window(" ".join("abcdefghijklmnop"), tokenizer)
    assert fitted == "a b\nl m n o p"
    assert tokenizer.count(fitted) == 8


@given(text=st.text(max_size=400), window=st.integers(1, 30))
def test_a_fitted_question_is_never_beyond_the_window(text: str, window: int) -> None:
    model = FakeEmbeddingModel(max_tokens=window)
    fitted = fit(text, model)
    assert model.tokenizer.count(fitted) <= window
    assert len(fitted) <= window * 100
    assert bool(fitted) == bool(text.strip())


async def test_an_enormous_question_of_a_conversation_can_be_searched_for(
    library: Library,
) -> None:
    fitted = library.retrieval.fit_query("x" * 1_000_000)
    assert (await library.search(fitted)).chunks == ()
