"""What an operator does to a library that is not being served."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.domain.errors import EmbeddingModelChanged, StartRefused
from privategpt.services.maintenance import (
    Violation,
    refuse_changed_embedding,
    refuse_strange_index,
    reindex,
    violations,
)
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.state import FakeStateStore
from tests.fakes.wired import WiredLibrary


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    return WiredLibrary(folder=tmp_path)


async def test_a_library_without_faults_is_sound(library: WiredLibrary) -> None:
    await library.add("a.txt", "One.\fTwo.")
    assert await violations(state=library.state, index=library.index) == []


async def test_a_lost_vector_and_a_stray_one_are_both_found(library: WiredLibrary) -> None:
    first = await library.add("a.txt", "One.")
    second = await library.add("b.txt", "Two.")
    strays = dict(library.index.chunks)
    await library.ingestion.delete("ann", second.file.file_id)
    library.index.chunks = {k: c for k, c in strays.items() if c.file_id == second.file.file_id}
    assert await violations(state=library.state, index=library.index) == [
        Violation("I1", first.documents[0].doc_id, "0 of 1 chunks are indexed"),
        Violation("I2", second.documents[0].doc_id, "1 vectors belong to no ready document"),
    ]


async def test_the_first_start_notes_the_model_and_a_later_one_holds_to_it(
    library: WiredLibrary,
) -> None:
    await refuse_changed_embedding(state=library.state, embedding=library.embedding)
    await refuse_changed_embedding(state=library.state, embedding=library.embedding)
    other = FakeEmbeddingModel(dimensions=16)
    with pytest.raises(EmbeddingModelChanged, match=r"words 64.*words 16.*reindex"):
        await refuse_changed_embedding(state=library.state, embedding=other)


async def test_an_index_that_lacks_what_is_stored_is_refused(library: WiredLibrary) -> None:
    await refuse_strange_index(state=library.state, index=library.index, alone=True)
    oldest = await library.add("a.txt", "One.\fTwo.")
    await library.add("b.txt", "Three.")
    newest = await library.add("c.txt", "Four.")
    whole = dict(library.index.chunks)
    await refuse_strange_index(state=library.state, index=library.index, alone=True)
    for file in (oldest.file, newest.file):
        library.index.chunks = {k: c for k, c in whole.items() if c.file_id != file.file_id}
        with pytest.raises(StartRefused, match=r"lacks documents that are stored.*reindex"):
            await refuse_strange_index(state=library.state, index=library.index, alone=False)


async def test_what_another_process_deletes_meanwhile_is_not_lacking(library: WiredLibrary) -> None:
    stored = await library.add("a.txt", "One.")
    await library.add("b.txt", "Two.")
    counted = library.index.count

    async def deleting(file_id: str | None = None) -> int:
        if file_id == stored.file.file_id:
            await library.ingestion.delete("ann", stored.file.file_id)
        return await counted(file_id)

    library.index.count = deleting  # type: ignore[method-assign]
    await refuse_strange_index(state=library.state, index=library.index, alone=False)
    assert [file.doc_id for file in await library.state.list_documents("ann")]


async def test_an_index_whose_documents_are_not_stored_is_refused(library: WiredLibrary) -> None:
    await library.add("a.txt", "One.")
    empty = FakeStateStore()
    with pytest.raises(StartRefused, match="the database has none"):
        await refuse_strange_index(state=empty, index=library.index, alone=True)
    # Another process may be ingesting its first file, which is not stored yet.
    await refuse_strange_index(state=empty, index=library.index, alone=False)


async def test_reindexing_rebuilds_every_vector_with_the_new_model(library: WiredLibrary) -> None:
    await refuse_changed_embedding(state=library.state, embedding=library.embedding)
    await library.add("a.txt", "One.\fTwo.")
    await library.add("b.txt", "Three.")
    other = FakeEmbeddingModel(dimensions=16)
    steps: list[int] = []
    total = await reindex(
        state=library.state, index=library.index, embedding=other, progress=steps.append
    )
    assert (total, sum(steps)) == (3, 3)
    assert {len(chunk.vector) for chunk in library.index.chunks.values()} == {16}
    await refuse_changed_embedding(state=library.state, embedding=other)
    assert await violations(state=library.state, index=library.index) == []


async def test_an_interrupted_reindex_is_seen_at_the_next_start(library: WiredLibrary) -> None:
    await refuse_changed_embedding(state=library.state, embedding=library.embedding)
    await library.add("a.txt", "One.")

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await reindex(
            state=library.state, index=library.index, embedding=library.embedding, progress=stop
        )
    with pytest.raises(EmbeddingModelChanged, match="interrupted"):
        await refuse_changed_embedding(state=library.state, embedding=library.embedding)
