"""What every state store promises; see `domain.library.StateStore`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privategpt.backends.state.opening import open_state_store
from privategpt.domain.documents import Chunk, DocumentInfo
from privategpt.domain.errors import Conflict, NotFound
from privategpt.domain.library import ChunkHit, Deletion, IndexableChunk, StateStore, StoredFile
from tests.fakes.library import Ingestion, ingest, ingestion
from tests.fakes.postgres import postgres_database
from tests.fakes.state import FakeStateStore

ODD_IDS = ["", "unknown", "nul\0", "lone \ud800", "' OR 1=1 --", "%", "é" * 3000]


@pytest.fixture(params=["fake", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[StateStore]:
    if request.param == "fake":
        yield FakeStateStore()
    elif request.param == "sqlite":
        opened = await open_state_store(tmp_path)
        yield opened
        await opened.close()
    else:
        async with postgres_database() as url:
            opened = await open_state_store(url)
            yield opened
            await opened.close()


async def everything_visible(store: StateStore, tenant: str, new: Ingestion) -> list[object]:
    """What each reading method shows of `new` to `tenant`; empty where it shows nothing."""
    shown: list[object] = []
    shown += await store.list_documents(tenant)
    shown += await store.chunks(tenant, [chunk.chunk_id for chunk in new.chunks])
    for chunk in new.chunks:
        before, after = await store.neighbours(tenant, chunk, reach=10)
        shown += [*before, *after]
    found = await store.find_file(tenant, name=new.file.name, sha256=new.file.sha256)
    shown += [] if found is None else [found]
    for doc_id in new.doc_ids:
        with pytest.raises(NotFound):
            shown.append(await store.document(tenant, doc_id))
        with pytest.raises(NotFound):
            shown.append(await store.list_documents(tenant, after=doc_id))
    return shown


async def reindexed(store: StateStore) -> list[IndexableChunk]:
    return [chunk async for batch in store.chunks_for_reindex() for chunk in batch]


# Ingestion


async def test_a_committed_file_is_returned_whole(store: StateStore) -> None:
    new = ingestion("f", documents=3)

    assert await ingest(store, new) == new.stored

    assert await store.list_documents("ann") == new.infos
    assert [await store.document("ann", doc_id) for doc_id in new.doc_ids] == list(new.documents)
    assert await store.hidden("ann") == frozenset()
    assert await store.abandoned(pending=True) == []


async def test_a_pending_file_is_hidden_and_shown_nowhere(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await store.begin_file(new.file)

    assert await everything_visible(store, "ann", new) == []
    assert await store.hidden("ann") == {"f"}
    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]
    assert await store.chunk_totals() == {}
    assert await reindexed(store) == []


async def test_the_facts_found_while_parsing_are_kept(store: StateStore) -> None:
    new = ingestion("f")
    parsed = replace(new.file, media_type="application/pdf")
    await store.begin_file(new.file)
    await store.commit_file(parsed, documents=new.documents, chunks=new.chunks)

    found = await store.find_file("ann", name=parsed.name, sha256=parsed.sha256)

    assert found == StoredFile(file=parsed, documents=tuple(new.infos))


async def test_documents_come_in_file_order_however_they_were_given(store: StateStore) -> None:
    new = ingestion("f", documents=3)
    turned = replace(new, documents=new.documents[::-1])

    assert await ingest(store, turned) == new.stored
    assert await store.list_documents("ann") == new.infos


async def test_a_commit_that_breaks_off_leaves_the_file_pending(store: StateStore) -> None:
    new = ingestion("f", documents=2, chunks=3000)

    def breaking() -> Iterator[Chunk]:
        yield from new.chunks[:-1]
        raise RuntimeError("the source broke off")

    await store.begin_file(new.file)
    with pytest.raises(RuntimeError, match="broke off"):
        await store.commit_file(new.file, documents=new.documents, chunks=breaking())

    assert await everything_visible(store, "ann", replace(new, chunks=new.chunks[:5])) == []
    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]
    stored = await store.commit_file(new.file, documents=new.documents, chunks=new.chunks)
    assert stored == new.stored
    assert await store.chunk_totals() == {"f/0": 3000, "f/1": 3000}


async def test_an_ingestion_that_came_to_nothing_is_hidden_unless_it_is_ready(
    store: StateStore,
) -> None:
    pending, ready = ingestion("f"), ingestion("g")
    await store.begin_file(pending.file)
    await ingest(store, ready)
    assert await store.abandon(pending.file.file_id)
    assert await store.abandon(pending.file.file_id)
    assert await store.abandon("never begun")
    assert not await store.abandon(ready.file.file_id)
    assert await store.abandoned(pending=False) == [Deletion(pending.file.file_id)]
    with pytest.raises(Conflict):
        await store.commit_file(pending.file, documents=pending.documents, chunks=pending.chunks)
    assert await store.list_documents("ann") == ready.infos


async def test_the_same_file_id_cannot_begin_twice(store: StateStore) -> None:
    new = ingestion("f")
    await store.begin_file(new.file)
    with pytest.raises(Conflict):
        await store.begin_file(new.file)


async def test_a_file_that_was_never_begun_or_was_swept_cannot_be_committed(
    store: StateStore,
) -> None:
    new = ingestion("f")
    with pytest.raises(Conflict, match=r"f\.txt"):
        await store.commit_file(new.file, documents=new.documents, chunks=new.chunks)

    await store.begin_file(new.file)
    await store.forget(Deletion(file_id="f"))
    with pytest.raises(Conflict, match=r"f\.txt"):
        await store.commit_file(new.file, documents=new.documents, chunks=new.chunks)

    assert await store.list_documents("ann") == []


async def test_a_ready_file_cannot_be_committed_again(store: StateStore) -> None:
    new = ingestion("f")
    await ingest(store, new)
    with pytest.raises(Conflict):
        await store.commit_file(new.file, documents=new.documents, chunks=new.chunks)
    assert await store.list_documents("ann") == new.infos


# The same file again


async def test_the_same_bytes_under_the_same_name_land_once(store: StateStore) -> None:
    first = ingestion("one", content="a", documents=2)
    second = ingestion("two", content="a", documents=2)
    await ingest(store, first)

    assert await ingest(store, second) == first.stored

    assert await store.list_documents("ann") == first.infos
    assert await store.hidden("ann") == {"two"}
    assert await store.abandoned(pending=True) == [Deletion(file_id="two")]


@pytest.mark.parametrize(
    "other",
    [
        ingestion("two", content="b").named("a.txt"),
        ingestion("two", content="a").named("b.txt"),
        ingestion("two", content="a", tenant="ben"),
    ],
    ids=["other bytes", "another name", "another tenant"],
)
async def test_what_differs_lands_beside_it(store: StateStore, other: Ingestion) -> None:
    first = ingestion("one", content="a")
    await ingest(store, first)

    assert await ingest(store, other) == other.stored

    assert await store.abandoned(pending=True) == []
    assert len((await store.chunk_totals()).keys()) == 2


async def test_replacing_hides_every_other_file_of_that_name(store: StateStore) -> None:
    old = ingestion("old", content="a")
    older = ingestion("older", content="b").named("a.txt")
    namesake = ingestion("namesake", content="a", tenant="ben")
    another = ingestion("another", content="c")
    for there in (old, older, namesake, another):
        await ingest(store, there)

    new = ingestion("new", content="a", documents=2)
    assert await ingest(store, new, replaces=True) == new.stored

    assert await store.list_documents("ann") == another.infos + new.infos
    assert await store.list_documents("ben") == namesake.infos
    assert await store.hidden("ann") == {"old", "older"}
    assert await store.find_file("ann", name="a.txt", sha256=new.file.sha256) == new.stored


async def test_a_failed_replacement_leaves_the_old_file(store: StateStore) -> None:
    old = ingestion("old", content="a")
    new = ingestion("new", content="b", chunks=2).named("a.txt")
    await ingest(store, old)
    await store.begin_file(new.file)

    with pytest.raises(ZeroDivisionError):
        await store.commit_file(
            new.file,
            documents=new.documents,
            chunks=(chunk for chunk in new.chunks if 1 // chunk.position),
            replaces=True,
        )

    assert await store.list_documents("ann") == old.infos


async def test_a_deleted_file_can_be_ingested_again(store: StateStore) -> None:
    first = ingestion("one", content="a")
    again = ingestion("two", content="a")
    await ingest(store, first)
    await store.begin_delete("ann", "one")

    assert await store.find_file("ann", name="a.txt", sha256=first.file.sha256) is None
    assert await ingest(store, again) == again.stored
    assert await store.list_documents("ann") == again.infos


async def test_the_same_file_twice_at_once_lands_once(store: StateStore) -> None:
    twins = [ingestion(f"twin{number}", content="a", documents=2) for number in range(8)]

    stored = await asyncio.gather(*(ingest(store, twin) for twin in twins))

    assert len({one.file.file_id for one in stored}) == 1
    assert await store.list_documents("ann") == list(stored[0].documents)
    assert len(await store.hidden("ann")) == 7


async def test_replacements_at_once_leave_exactly_one(store: StateStore) -> None:
    rivals = [ingestion(f"r{number}", content=f"{number}").named("a.txt") for number in range(6)]

    await asyncio.gather(*(ingest(store, rival, replaces=True) for rival in rivals))

    (left,) = await store.list_documents("ann")
    assert await store.hidden("ann") == {rival.file.file_id for rival in rivals} - {left.file_id}


async def test_sixteen_tasks_of_twenty_files_all_land_once(store: StateStore) -> None:
    async def upload(task: int) -> None:
        for number in range(20):
            await ingest(store, ingestion(f"{task}-{number}", chunks=2))

    await asyncio.gather(*map(upload, range(16)))

    expected = {f"{task}-{number}/0" for task in range(16) for number in range(20)}
    listed = [info.doc_id for info in await store.list_documents("ann")]
    assert len(listed) == 320
    assert set(listed) == expected
    assert await store.chunk_totals() == dict.fromkeys(expected, 2)
    assert await store.abandoned(pending=True) == []


# Reading


async def test_chunks_come_with_their_documents_and_the_unknown_are_absent(
    store: StateStore,
) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)
    wanted = [new.chunks[4], new.chunks[0]]

    found = await store.chunks("ann", [chunk.chunk_id for chunk in wanted] + ODD_IDS)

    assert found == {
        "f/1/1": ChunkHit(chunk=wanted[0], document=new.infos[1]),
        "f/0/0": ChunkHit(chunk=wanted[1], document=new.infos[0]),
    }
    assert await store.chunks("ann", []) == {}
    assert await store.chunks("ann", ODD_IDS) == {}


async def test_a_chunk_is_its_range_of_the_stored_text(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)
    for document in [await store.document("ann", doc_id) for doc_id in new.doc_ids]:
        ids = [chunk.chunk_id for chunk in new.chunks if chunk.doc_id == document.doc_id]
        for hit in (await store.chunks("ann", ids)).values():
            assert document.text[hit.chunk.start : hit.chunk.end] == hit.chunk.text


@pytest.mark.parametrize(
    ("position", "reach", "before", "after"),
    [
        (2, 1, [1], [3]),
        (2, 2, [0, 1], [3, 4]),
        (0, 2, [], [1, 2]),
        (4, 10, [0, 1, 2, 3], []),
        (2, 0, [], []),
    ],
)
async def test_neighbours_are_taken_by_position_within_the_document(
    store: StateStore, position: int, reach: int, before: list[int], after: list[int]
) -> None:
    new = ingestion("f", documents=3, chunks=5)
    await ingest(store, new)
    chunks = [chunk for chunk in new.chunks if chunk.doc_id == "f/1"]

    assert await store.neighbours("ann", chunks[position], reach=reach) == (
        tuple(chunks[index] for index in before),
        tuple(chunks[index] for index in after),
    )


async def test_a_missing_neighbour_is_skipped(store: StateStore) -> None:
    whole = ingestion("f", chunks=5)
    await ingest(store, replace(whole, chunks=(*whole.chunks[:1], *whole.chunks[2:])))

    before, after = await store.neighbours("ann", whole.chunks[2], reach=2)

    assert before == (whole.chunks[0],)
    assert after == (whole.chunks[3], whole.chunks[4])


async def test_lists_are_in_order_of_ingestion(store: StateStore) -> None:
    late, early = ingestion("late", documents=2), ingestion("early", documents=2)
    await store.begin_file(early.file)
    await ingest(store, late)
    await store.commit_file(early.file, documents=early.documents, chunks=early.chunks)

    assert await store.list_documents("ann") == early.infos + late.infos


async def test_a_page_starts_behind_the_document_named(store: StateStore) -> None:
    files = [ingestion(f"f{number}", documents=2) for number in range(3)]
    for new in files:
        await ingest(store, new)
    listed = [info for new in files for info in new.infos]

    assert await store.list_documents("ann", limit=3) == listed[:3]
    assert await store.list_documents("ann", limit=3, after="f1/0") == listed[3:]
    assert await store.list_documents("ann", limit=2, after="f0/1") == listed[2:4]
    assert await store.list_documents("ann", after="f2/1") == []


TENANTS = count()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sizes=st.lists(st.integers(1, 4), max_size=6),
    deleted=st.sets(st.integers(0, 23), max_size=8),
    pages=st.lists(st.integers(1, 7), min_size=1, max_size=4),
)
async def test_pages_of_any_size_make_the_whole_list(
    store: StateStore, sizes: list[int], deleted: set[int], pages: list[int]
) -> None:
    tenant = f"tenant{next(TENANTS)}"
    expected: list[DocumentInfo] = []
    for number, size in enumerate(sizes):
        new = ingestion(f"{tenant}-{number}", tenant=tenant, documents=size, chunks=1)
        await ingest(store, new)
        expected += new.infos
    for index in sorted(deleted & set(range(len(expected)))):
        await store.begin_delete(tenant, expected[index].doc_id)
    expected = [info for index, info in enumerate(expected) if index not in deleted]

    paged: list[DocumentInfo] = []
    for limit in pages * (len(expected) + 1):
        after = paged[-1].doc_id if paged else None
        page = await store.list_documents(tenant, limit=limit, after=after)
        assert len(page) == min(limit, len(expected) - len(paged))
        paged += page

    assert paged == expected
    assert await store.list_documents(tenant) == expected


# Deleting


async def test_a_deleted_file_disappears_before_its_rows_do(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)

    assert await store.begin_delete("ann", "f") == Deletion(file_id="f")

    assert await everything_visible(store, "ann", new) == []
    assert await store.hidden("ann") == {"f"}
    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]
    await store.forget(Deletion(file_id="f"))
    assert await store.hidden("ann") == frozenset()
    assert await store.abandoned(pending=True) == []
    assert await ingest(store, new) == new.stored


async def test_a_deleted_document_leaves_the_others(store: StateStore) -> None:
    new = ingestion("f", documents=3)
    await ingest(store, new)
    deletion = Deletion(file_id="f", doc_id="f/1")

    assert await store.begin_delete("ann", "f/1") == deletion

    left = [new.infos[0], new.infos[2]]
    assert await store.hidden("ann") == {"f/1"}
    assert await store.abandoned(pending=True) == [deletion]
    await store.forget(deletion)
    assert await store.hidden("ann") == frozenset()
    assert await store.abandoned(pending=True) == []
    assert await store.list_documents("ann") == left
    assert await store.chunk_totals() == {"f/0": 3, "f/2": 3}
    assert {chunk.chunk.doc_id for chunk in await reindexed(store)} == {"f/0", "f/2"}
    found = await store.find_file("ann", name=new.file.name, sha256=new.file.sha256)
    assert found == StoredFile(file=new.file, documents=tuple(left))


async def test_a_deleted_document_is_read_by_no_method(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)
    await store.begin_delete("ann", "f/1")
    gone = [chunk for chunk in new.chunks if chunk.doc_id == "f/1"]

    assert await store.list_documents("ann") == new.infos[:1]
    assert await store.chunks("ann", [chunk.chunk_id for chunk in gone]) == {}
    assert await store.neighbours("ann", gone[1], reach=2) == ((), ())
    assert await store.chunk_totals() == {"f/0": 3}
    assert all(chunk.chunk.doc_id == "f/0" for chunk in await reindexed(store))
    with pytest.raises(NotFound):
        await store.document("ann", "f/1")
    with pytest.raises(NotFound):
        await store.list_documents("ann", after="f/1")


async def test_the_last_document_takes_its_file_along(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)
    await store.begin_delete("ann", "f/0")

    assert await store.begin_delete("ann", "f/1") == Deletion(file_id="f")

    assert await everything_visible(store, "ann", new) == []
    assert "f" in await store.hidden("ann")
    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]
    await store.forget(Deletion(file_id="f"))
    assert await store.hidden("ann") == frozenset()


async def test_all_documents_deleted_at_once_take_their_file_along_once(
    store: StateStore,
) -> None:
    new = ingestion("f", documents=6)
    await ingest(store, new)

    deletions = await asyncio.gather(*(store.begin_delete("ann", d) for d in new.doc_ids))

    assert deletions.count(Deletion(file_id="f")) == 1
    assert len(set(deletions)) == 6
    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]


async def test_files_inside_a_file_are_kept_apart(store: StateStore) -> None:
    new = ingestion("f", documents=3).holding(None, "f+a", "f+b")
    assert await ingest(store, new) == new.stored
    assert await store.list_documents("ann") == new.infos
    assert await store.document("ann", "f/1") == new.documents[1]
    assert {one.chunk.doc_id: one.inner_file_id for one in await reindexed(store)} == {
        "f/0": None,
        "f/1": "f+a",
        "f/2": "f+b",
    }
    hit = (await store.chunks("ann", ["f/2/0"]))["f/2/0"]
    assert hit.document == new.infos[2]


async def test_a_deleted_file_inside_another_leaves_the_others(store: StateStore) -> None:
    new = ingestion("f", documents=4).holding(None, "f+a", "f+a", "f+b")
    await ingest(store, new)
    deletion = Deletion(file_id="f", inner_file_id="f+a")

    assert await store.begin_delete("ann", "f+a") == deletion

    left = [new.infos[0], new.infos[3]]
    assert await store.list_documents("ann") == left
    assert await store.hidden("ann") == {"f/1", "f/2"}
    swept = await store.abandoned(pending=True)
    assert set(swept) == {Deletion(file_id="f", doc_id=doc_id) for doc_id in ("f/1", "f/2")}
    with pytest.raises(NotFound):
        await store.begin_delete("ann", "f+a")
    await store.forget(deletion)
    assert await store.hidden("ann") == frozenset()
    assert await store.abandoned(pending=True) == []
    assert await store.list_documents("ann") == left
    assert await store.chunk_totals() == {"f/0": 3, "f/3": 3}


async def test_what_is_left_of_a_file_inside_another_is_deleted_by_its_id(
    store: StateStore,
) -> None:
    await ingest(store, ingestion("f", documents=3).holding(None, "f+a", "f+a"))
    await store.begin_delete("ann", "f/1")
    deletion = Deletion(file_id="f", inner_file_id="f+a")
    assert await store.begin_delete("ann", "f+a") == deletion
    await store.forget(deletion)
    assert await store.chunk_totals() == {"f/0": 3}
    assert await store.abandoned(pending=True) == []


async def test_the_last_file_inside_another_takes_it_along(store: StateStore) -> None:
    new = ingestion("f", documents=2).holding("f+a", "f+b")
    await ingest(store, new)
    await store.begin_delete("ann", "f+a")
    assert await store.begin_delete("ann", "f+b") == Deletion(file_id="f")
    assert await everything_visible(store, "ann", new) == []


async def test_what_is_visible_of_a_file_inside_another_is_never_forgotten(
    store: StateStore,
) -> None:
    new = ingestion("f", documents=2).holding(None, "f+a")
    await ingest(store, new)
    await store.forget(Deletion(file_id="f", inner_file_id="f+a"))
    assert await store.list_documents("ann") == new.infos


async def test_a_file_inside_a_foreign_one_is_not_found(store: StateStore) -> None:
    new = ingestion("f", documents=2).holding(None, "f+a")
    await ingest(store, new)
    with pytest.raises(NotFound):
        await store.begin_delete("bob", "f+a")
    assert await store.list_documents("ann") == new.infos


async def test_what_is_deleted_once_is_not_found_again(store: StateStore) -> None:
    await ingest(store, ingestion("f", documents=3))
    await store.begin_delete("ann", "f/0")
    with pytest.raises(NotFound):
        await store.begin_delete("ann", "f/0")
    await store.begin_delete("ann", "f")
    for item_id in ("f", "f/1"):
        with pytest.raises(NotFound):
            await store.begin_delete("ann", item_id)


async def test_a_pending_file_cannot_be_deleted(store: StateStore) -> None:
    await store.begin_file(ingestion("f").file)
    with pytest.raises(NotFound):
        await store.begin_delete("ann", "f")


async def test_what_is_ready_is_never_forgotten(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)

    await store.forget(Deletion(file_id="f"))
    await store.forget(Deletion(file_id="f", doc_id="f/0"))
    await store.forget(Deletion(file_id="unknown"))
    await store.forget(Deletion(file_id="unknown", doc_id="unknown"))

    assert await store.list_documents("ann") == new.infos
    assert await store.chunk_totals() == {"f/0": 3, "f/1": 3}


# Tenants


async def test_nothing_of_one_tenant_is_read_by_another(store: StateStore) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)
    await store.begin_file(ingestion("pending").file)

    assert await everything_visible(store, "ben", new) == []
    assert await store.hidden("ben") == frozenset()


@pytest.mark.parametrize("item_id", ["f", "f/0", *ODD_IDS])
async def test_foreign_and_unknown_ids_answer_alike(store: StateStore, item_id: str) -> None:
    new = ingestion("f", documents=2)
    await ingest(store, new)

    with pytest.raises(NotFound) as deleting:
        await store.begin_delete("ben", item_id)
    with pytest.raises(NotFound) as reading:
        await store.document("ben", item_id)
    with pytest.raises(NotFound) as listing:
        await store.list_documents("ben", after=item_id)

    messages = {error.value.message for error in (deleting, reading, listing)}
    assert messages == {"There is nothing with that id"}
    assert await store.list_documents("ann") == new.infos


async def test_a_file_of_an_odd_name_is_not_found(store: StateStore) -> None:
    for name in ODD_IDS:
        assert await store.find_file("ann", name=name, sha256="0") is None


async def test_a_tenant_cannot_commit_anothers_file(store: StateStore) -> None:
    mine = ingestion("f")
    await store.begin_file(mine.file)
    theirs = replace(mine.file, tenant="ben")

    with pytest.raises(Conflict):
        await store.commit_file(theirs, documents=mine.documents, chunks=mine.chunks)

    assert await store.list_documents("ben") == []
    assert await store.hidden("ann") == {"f"}


# For reindex, check and start


async def test_reindexing_reads_every_ready_chunk_file_by_file_in_bounded_batches(
    store: StateStore,
) -> None:
    files = [
        ingestion("small"),
        ingestion("large", tenant="ben", documents=3, chunks=500),
        ingestion("deleted"),
        ingestion("last", documents=2),
    ]
    for new in files:
        await ingest(store, new)
    await store.begin_delete("ann", "deleted")
    await store.begin_file(ingestion("pending").file)

    batches = [batch async for batch in store.chunks_for_reindex()]

    metadata = {info.doc_id: info.metadata for new in files for info in new.infos}
    assert [chunk for batch in batches for chunk in batch] == [
        IndexableChunk(
            chunk=chunk,
            tenant=new.file.tenant,
            file_id=new.file.file_id,
            metadata=metadata[chunk.doc_id],
        )
        for new in files
        if new.file.file_id != "deleted"
        for chunk in new.chunks
    ]
    assert max(map(len, batches)) <= 512


async def test_totals_count_the_chunks_of_every_ready_document(store: StateStore) -> None:
    bare = ingestion("bare", tenant="ben")
    await ingest(store, ingestion("f", documents=2, chunks=4))
    await ingest(store, replace(bare, chunks=()))

    assert await store.chunk_totals() == {"f/0": 4, "f/1": 4, "bare/0": 0}


async def test_the_oldest_and_the_newest_file_are_known_by_their_chunks(store: StateStore) -> None:
    assert await store.chunks_of_ends() == {}
    await store.begin_file(ingestion("before").file)
    await ingest(store, ingestion("first", documents=2, chunks=4))
    assert await store.chunks_of_ends() == {"first": 8}
    await ingest(store, ingestion("middle", tenant="ben"))
    last = ingestion("last", tenant="ben", documents=2, chunks=5)
    await ingest(store, last)
    await store.begin_file(ingestion("behind").file)
    assert await store.chunks_of_ends() == {"first": 8, "last": 10}

    await store.begin_delete("ben", last.doc_ids[0])
    await store.begin_delete("ann", "first")
    assert await store.chunks_of_ends() == {"middle": 3, "last": 5}
    await store.begin_delete("ben", "last")
    bare = ingestion("bare")
    await ingest(store, replace(bare, chunks=()))
    assert await store.chunks_of_ends() == {"middle": 3, "bare": 0}


async def test_the_sweeper_sees_what_all_tenants_left(store: StateStore) -> None:
    for tenant in ("ann", "ben"):
        await store.begin_file(ingestion(f"pending-{tenant}", tenant=tenant).file)
        for name in ("whole", "part"):
            await ingest(store, ingestion(f"{name}-{tenant}", tenant=tenant, documents=2))
        await store.begin_delete(tenant, f"whole-{tenant}")
        await store.begin_delete(tenant, f"part-{tenant}/1")

    left = await store.abandoned(pending=True)

    assert set(left) == {
        deletion
        for tenant in ("ann", "ben")
        for deletion in (
            Deletion(file_id=f"pending-{tenant}"),
            Deletion(file_id=f"whole-{tenant}"),
            Deletion(file_id=f"part-{tenant}", doc_id=f"part-{tenant}/1"),
        )
    }
    assert len(left) == 6
    running = {Deletion(file_id="pending-ann"), Deletion(file_id="pending-ben")}
    assert set(await store.abandoned(pending=False)) == set(left) - running
    for deletion in left:
        await store.forget(deletion)
    assert await store.abandoned(pending=True) == []
    assert await store.chunk_totals() == {"part-ann/0": 3, "part-ben/0": 3}


async def test_the_fingerprint_is_what_was_set_last(store: StateStore) -> None:
    assert await store.embedding_fingerprint() is None
    await store.set_embedding_fingerprint("one")
    await store.set_embedding_fingerprint("two")
    assert await store.embedding_fingerprint() == "two"


async def test_an_open_store_checks_well(store: StateStore) -> None:
    await store.check()
