"""The ingestion transaction, over fakes of every port."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from privategpt.chunking.identity import inner_file_id
from privategpt.domain.documents import Chunk, Document, DocumentFilter, File, ParsedFile
from privategpt.domain.errors import (
    CorruptFile,
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
    NotFound,
)
from privategpt.domain.library import StoredFile
from privategpt.domain.ports import Embeddings, Upload
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.parser import FakeParser
from tests.fakes.state import FakeStateStore
from tests.fakes.vectors import FakeVectorIndex
from tests.fakes.wired import NOW, WiredLibrary

PLAN = "Plan.\fMore plan."


class StuckEmbedding(FakeEmbeddingModel):
    """Never answers; `entered` tells that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = asyncio.Event()

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        self.entered.set()
        await asyncio.Event().wait()
        return await super().embed_passages(texts)


class CountingEmbedding(FakeEmbeddingModel):
    """Notes every text that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        self.texts += texts
        return await super().embed_passages(texts)


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    return WiredLibrary(folder=tmp_path)


class ForgetfulIndex(FakeVectorIndex):
    """Says that it holds one chunk less than it was given."""

    async def count(self, file_id: str | None = None) -> int:
        return await super().count(file_id) - 1


async def test_a_file_becomes_documents_with_what_is_known_of_it(library: WiredLibrary) -> None:
    request = library.request("letters.txt", "One.\fTwo.", metadata={"author": "Ann", "year": 1999})
    stored = await library.ingestion.ingest(request)
    assert [info.metadata for info in stored.documents] == [
        {
            "author": "Ann",
            "year": 1999,
            "file_id": stored.file.file_id,
            "file_name": "letters.txt",
            "file_type": "text/plain",
            "file_size": 9,
            "content_hash": f"sha256:{stored.file.sha256}",
            "ingested_at": NOW.isoformat(),
            "page_label": label,
        }
        for label in ("1", "2")
    ]
    assert await library.ingestion.list_documents("ann") == list(stored.documents)


async def test_every_chunk_is_indexed_under_its_tenant_and_file(library: WiredLibrary) -> None:
    stored = await library.add("letters.txt", "One.\fTwo.")
    assert [(c.tenant, c.file_id, c.chunk.text) for c in library.index.chunks.values()] == [
        ("ann", stored.file.file_id, "One."),
        ("ann", stored.file.file_id, "Two."),
    ]


async def test_a_text_that_a_file_repeats_is_embedded_once(library: WiredLibrary) -> None:
    library.embedding = counting = CountingEmbedding()
    await library.add("form.txt", "The notice.\fThe notice.\fSomething else.")
    assert sorted(counting.texts) == ["Something else.", "The notice."]
    assert len(library.index.chunks) == 3


async def test_the_same_bytes_under_the_same_name_are_ingested_once(library: WiredLibrary) -> None:
    first = await library.add("a.txt", "One.")
    assert await library.add("a.txt", "One.") == first
    assert library.parser.parsed == ["a.txt"]


async def test_two_uploads_of_the_same_file_at_once_become_one(library: WiredLibrary) -> None:
    ingestion = library.ingestion
    first, second = library.request("a.txt", "One."), library.request("a.txt", "One.")
    stored = await asyncio.gather(ingestion.ingest(first), ingestion.ingest(second))
    assert stored[0] == stored[1]
    assert len(await ingestion.list_documents("ann")) == 1


async def test_of_many_tries_with_one_file_never_two_are_under_way(library: WiredLibrary) -> None:
    class Watched(FakeParser):
        under_way = most = 0

        async def parse(self, upload: Upload) -> ParsedFile:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            try:
                for _ in range(20):  # long enough for another try to arrive
                    await asyncio.to_thread(bool)
                raise CorruptFile("It is always broken")
            finally:
                self.under_way -= 1

    library.parser = parser = Watched()
    ingestion = library.ingestion
    tries: list[asyncio.Task[StoredFile]] = []

    def once_more(_: object = None) -> None:
        if len(tries) < 9:
            # The bytes are the same, and somebody has waited since before.
            tries.append(asyncio.create_task(ingestion.ingest(library.request("a.txt", "text"))))
            tries[-1].add_done_callback(once_more)

    once_more()
    once_more()
    once_more()
    while not all(each.done() for each in tries):
        await asyncio.wait(tries)
    assert all(isinstance(each.exception(), CorruptFile) for each in tries)
    assert parser.most == 1


@pytest.mark.parametrize("name", ["b.txt", "a.txt"])
async def test_other_names_or_other_bytes_are_other_files(library: WiredLibrary, name: str) -> None:
    await library.add("a.txt", "One.")
    await library.add(name, "Two.")
    assert len(await library.ingestion.list_documents("ann")) == 2


async def test_replacing_leaves_the_new_file_only(library: WiredLibrary) -> None:
    await library.add("a.txt", "The old text.")
    request = library.request("a.txt", "The new text.", replaces=True)
    stored = await library.ingestion.ingest(request)
    assert await library.ingestion.list_documents("ann") == list(stored.documents)
    assert [c.chunk.text for c in library.index.chunks.values()] == ["The new text."]
    assert await library.state.abandoned(pending=True) == []


@pytest.mark.parametrize("key", ["file_id", "file_name", "page_label", "content_hash"])
async def test_metadata_of_ours_cannot_be_forged(library: WiredLibrary, key: str) -> None:
    request = library.request("a.txt", "One.", metadata={key: "mine"})
    with pytest.raises(InvalidRequest, match=key):
        await library.ingestion.ingest(request)


async def test_a_file_that_cannot_be_parsed_leaves_nothing(library: WiredLibrary) -> None:
    library.parser.refusals["a.txt"] = CorruptFile("broken")
    with pytest.raises(CorruptFile):
        await library.add("a.txt", "One.")
    assert await library.state.abandoned(pending=True) == []


async def test_an_engine_that_fails_in_the_middle_leaves_nothing(library: WiredLibrary) -> None:
    library.embedding.failure = EngineUnavailable("down")
    with pytest.raises(EngineUnavailable):
        await library.add("a.txt", "One.")
    assert await library.state.abandoned(pending=True) == []
    library.embedding.failure = None
    assert len((await library.add("a.txt", "One.")).documents) == 1


class LostAnswer(FakeStateStore):
    """A commit that does or does not succeed, and in either case says that it failed."""

    def __init__(self, *, commits: bool, serves: bool) -> None:
        super().__init__()
        self.commits = commits
        self.serves = serves

    async def commit_file(
        self,
        file: File,
        *,
        documents: Sequence[Document],
        chunks: Iterable[Chunk],
        replaces: bool = False,
    ) -> StoredFile:
        if self.commits:
            await super().commit_file(file, documents=documents, chunks=chunks, replaces=replaces)
        raise EngineUnavailable("the disk is full")

    async def abandon(self, file_id: str) -> bool:
        if not self.serves:
            raise EngineUnavailable("the disk is full")
        return await super().abandon(file_id)


@pytest.mark.parametrize("serves", [True, False])
@pytest.mark.parametrize("commits", [True, False])
async def test_what_a_commit_made_of_which_no_answer_came_is_whole_or_swept(
    library: WiredLibrary, commits: bool, serves: bool
) -> None:
    library.state = LostAnswer(commits=commits, serves=serves)
    with pytest.raises(EngineUnavailable):
        await library.add("a.txt", "One.")
    listed = await library.ingestion.list_documents("ann")
    assert [info.doc_id for info in listed] == [
        chunk.chunk.doc_id for chunk in library.index.chunks.values() if commits
    ]
    assert len(listed) == commits
    # What could not be hidden is left as it was, for the next start.
    assert bool(library.index.chunks) == (commits or not serves)


async def test_an_index_that_lost_a_chunk_is_not_believed(library: WiredLibrary) -> None:
    library.index = ForgetfulIndex()
    with pytest.raises(EngineFailed, match="0 of the 1 chunks"):
        await library.add("a.txt", "One.")
    assert await library.ingestion.list_documents("ann") == []
    assert library.index.chunks == {}


async def test_what_cannot_be_removed_now_is_hidden_and_swept_later(library: WiredLibrary) -> None:
    stored = await library.add("a.txt", "One.")
    library.index.failure = EngineUnavailable("down")
    await library.ingestion.delete("ann", stored.file.file_id)
    assert await library.ingestion.list_documents("ann") == []
    library.index.failure = None
    assert await library.ingestion.sweep() == 1
    assert library.index.chunks == {}
    assert await library.ingestion.sweep() == 0


async def test_a_document_is_deleted_alone_and_a_file_with_all_of_them(
    library: WiredLibrary,
) -> None:
    stored = await library.add("a.txt", "One.\fTwo.\fThree.")
    await library.ingestion.delete("ann", stored.documents[1].doc_id)
    assert await library.ingestion.list_documents("ann") == [
        stored.documents[0],
        stored.documents[2],
    ]
    assert sorted(c.chunk.text for c in library.index.chunks.values()) == ["One.", "Three."]
    await library.ingestion.delete("ann", stored.file.file_id)
    assert library.index.chunks == {}
    with pytest.raises(NotFound):
        await library.ingestion.document("ann", stored.documents[0].doc_id)


async def test_a_file_inside_another_has_an_id_of_its_own(library: WiredLibrary) -> None:
    stored = await library.add("mail.eml", f"Hello.\x1cx/plan.txt\n{PLAN}\x1cb\nMenu.")
    mail, plan, more, menu = (dict(document.metadata) for document in stored.documents)
    file_id = stored.file.file_id
    assert mail["file_id"] == file_id
    assert "container" not in mail
    assert plan == {
        "file_id": inner_file_id(file_id, "x/plan.txt"),
        "file_name": "mail.eml/x/plan.txt",
        "file_type": "text/plain",
        "file_size": 16,
        "content_hash": f"sha256:{hashlib.sha256(PLAN.encode()).hexdigest()}",
        "ingested_at": NOW.isoformat(),
        "container": "mail.eml",
        "container_id": file_id,
        "page_label": "1",
    }
    assert more == {**plan, "page_label": "2"}
    assert menu["file_id"] not in (file_id, plan["file_id"])
    for wanted, texts in (
        (plan, {*PLAN.split("\f")}),
        (mail, {"Hello.", *PLAN.split("\f"), "Menu."}),
    ):
        only = DocumentFilter(ids=frozenset({str(wanted["file_id"])}))
        found = await library.retrieval.search("plan", tenant="ann", limit=9, filter=only)
        assert {hit.chunk.text for hit in found.chunks} == texts


async def test_a_file_inside_another_is_deleted_alone_and_with_it(library: WiredLibrary) -> None:
    stored = await library.add("mail.eml", "Hello.\x1cplan\nPlan.\fMore plan.\x1cmenu\nMenu.")
    await library.ingestion.delete("ann", inner_file_id(stored.file.file_id, "plan"))
    left = [stored.documents[0], stored.documents[3]]
    assert await library.ingestion.list_documents("ann") == left
    assert sorted(c.chunk.text for c in library.index.chunks.values()) == ["Hello.", "Menu."]
    assert await library.state.abandoned(pending=True) == []
    await library.ingestion.delete("ann", stored.file.file_id)
    assert await library.ingestion.list_documents("ann") == []
    assert library.index.chunks == {}


async def test_a_file_inside_another_that_cannot_be_removed_now_is_swept_later(
    library: WiredLibrary,
) -> None:
    stored = await library.add("mail.eml", "Hello.\x1cplan\nPlan.\fMore plan.")
    library.index.failure = EngineUnavailable("down")
    await library.ingestion.delete("ann", inner_file_id(stored.file.file_id, "plan"))
    assert await library.ingestion.list_documents("ann") == list(stored.documents[:1])
    library.index.failure = None
    assert await library.ingestion.sweep() == 2
    assert [c.chunk.text for c in library.index.chunks.values()] == ["Hello."]


async def test_a_foreign_document_is_as_unknown_as_one_that_never_was(
    library: WiredLibrary,
) -> None:
    stored = await library.add("a.txt", "One.")
    errors: list[str] = []
    for tenant, doc_id in (("bob", stored.documents[0].doc_id), ("ann", "no-such-id")):
        with pytest.raises(NotFound) as error:
            await library.ingestion.document(tenant, doc_id)
        errors.append(error.value.message.replace(doc_id, "ID"))
    assert errors[0] == errors[1]


async def test_a_cancelled_ingestion_leaves_nothing(library: WiredLibrary) -> None:
    library.embedding = stuck = StuckEmbedding()
    task = asyncio.create_task(library.add("a.txt", "One."))
    await stuck.entered.wait()
    assert len(await library.state.abandoned(pending=True)) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await library.state.abandoned(pending=True) == []
