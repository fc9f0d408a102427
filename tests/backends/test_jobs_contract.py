"""What stores of jobs and leases and the folder of uploads promise; see `domain.jobs`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from privategpt.backends.state.database import Database
from privategpt.backends.state.jobs import SqlJobStore
from privategpt.backends.state.leases import SqlLeaseStore
from privategpt.backends.state.opening import open_database
from privategpt.backends.state.store import SqlStateStore
from privategpt.backends.state.uploads import open_uploads
from privategpt.domain.documents import UnreadFile
from privategpt.domain.errors import Conflict, FolderInUse, NotFound, Unavailable
from privategpt.domain.jobs import JobFailure, JobState, JobStore, LeaseStore, Progress
from privategpt.domain.library import Deletion, StateStore
from privategpt.services.ingestion import Ingestion
from privategpt.services.tending import LEASE, Tending
from tests.fakes.clock import NOON, Clock
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.jobs import FakeJobStore, FakeUploads, new_job
from tests.fakes.library import ingestion
from tests.fakes.parser import FakeParser
from tests.fakes.postgres import postgres_database
from tests.fakes.state import FakeStateStore
from tests.fakes.vectors import FakeVectorIndex

ODD_IDS = ["", "unknown", "nul\0", "lone \ud800", "' OR 1=1 --", "é" * 3000]
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Stores:
    """All of one database."""

    jobs: JobStore
    leases: LeaseStore
    state: StateStore


def _sql(database: Database) -> Stores:
    return Stores(
        jobs=SqlJobStore(database=database),
        leases=SqlLeaseStore(database=database),
        state=SqlStateStore(database=database),
    )


@pytest.fixture(params=["fake", "sqlite", "postgres"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stores]:
    if request.param == "fake":
        state = FakeStateStore()
        yield Stores(FakeJobStore(leases=state.leases), state.leases, state)
    elif request.param == "sqlite":
        database = await open_database(tmp_path)
        assert database.is_ours_alone
        yield _sql(database)
        await database.close()
    else:
        async with postgres_database() as url:
            database = await open_database(url)
            assert not database.is_ours_alone
            yield _sql(database)
            await database.close()


# Jobs


async def test_a_job_is_kept_whole(stores: Stores) -> None:
    job = replace(
        new_job(),
        file_name="Zürich 東京.pdf",
        size_bytes=5_000_000_000,
        metadata={"year": 1999, "draft": False, "share": 0.5, "title": "ä", "none": None},
        replaces=True,
        password="sesame",
        created_at=NOON + timedelta(microseconds=1),
    )
    await stores.jobs.add(job)
    assert await stores.jobs.find("ann", "job-1") == job
    changed = replace(
        job,
        state=JobState.RUNNING,
        attempts=2,
        progress=Progress(1, 2, 3, 4),
        started_at=NOON,
        indexing_since=NOON + MINUTE,
        updated_at=NOON + 2 * MINUTE,
    )
    assert await stores.jobs.save(changed) is False
    assert await stores.jobs.find("ann", "job-1") == changed
    failed = replace(
        changed,
        state=JobState.FAILED,
        failure=JobFailure("", "ä"),
        doc_ids=("a", "b"),
        unread=(UnreadFile("x/東.pdf", "ä"), UnreadFile("b", "")),
        password=None,
        finished_at=NOON,
    )
    await stores.jobs.save(failed)
    assert await stores.jobs.find("ann", "job-1") == failed


async def test_a_job_that_has_ended_is_overwritten_no_more(stores: Stores) -> None:
    await stores.jobs.add(new_job())
    ended = replace(new_job(), state=JobState.CANCELLED)
    await stores.jobs.save(ended)
    await stores.jobs.save(replace(new_job(), state=JobState.RUNNING))
    assert await stores.jobs.find("ann", "job-1") == ended
    assert await stores.jobs.ask_cancel("ann", "job-1") == ended
    assert await stores.jobs.save(new_job("never")) is False


async def test_an_id_is_taken_once(stores: Stores) -> None:
    await stores.jobs.add(new_job())
    with pytest.raises(Conflict):
        await stores.jobs.add(new_job())


async def test_an_unknown_job_is_not_found_nor_anothers(stores: Stores) -> None:
    await stores.jobs.add(new_job())
    asked = [("bob", "job-1"), *(("ann", job_id) for job_id in ODD_IDS)]
    for tenant, job_id in asked:
        for asking in (stores.jobs.find, stores.jobs.ask_cancel):
            with pytest.raises(NotFound):
                await asking(tenant, job_id)
        with pytest.raises(NotFound):
            await stores.jobs.page(tenant, limit=1, after=job_id)


async def test_pages_go_from_the_newest_to_the_oldest_of_one_tenant(stores: Stores) -> None:
    for number in range(5):
        await stores.jobs.add(new_job(f"job-{number}"))
        await stores.jobs.add(new_job(f"bobs-{number}", tenant="bob"))
    first = await stores.jobs.page("ann", limit=2)
    second = await stores.jobs.page("ann", limit=9, after=first[-1].job_id)
    assert [job.job_id for job in first] == ["job-4", "job-3"]
    assert [job.job_id for job in second] == ["job-2", "job-1", "job-0"]
    assert await stores.jobs.page("ann", limit=9, after="job-0") == []


async def test_what_is_unfinished_in_a_home_is_told_the_oldest_first(stores: Stores) -> None:
    await stores.jobs.add(new_job("one"))
    await stores.jobs.add(new_job("two", tenant="bob"))
    await stores.jobs.add(new_job("three"))
    await stores.jobs.add(new_job("elsewhere", home="home-2"))
    await stores.jobs.save(replace(new_job("two", tenant="bob"), state=JobState.RUNNING))
    await stores.jobs.save(replace(new_job("three"), state=JobState.DONE))
    assert [job.job_id for job in await stores.jobs.unfinished("home-1")] == ["one", "two"]
    await stores.jobs.adopt("home-3")
    found = await stores.jobs.unfinished("home-3")
    assert [job.job_id for job in found] == ["one", "two", "elsewhere"]
    assert (await stores.jobs.find("ann", "three")).home == "home-1"


async def test_a_word_to_cancel_is_heard_by_who_saves_and_who_asks(stores: Stores) -> None:
    await stores.jobs.add(new_job())
    await stores.jobs.add(new_job("other"))
    assert (await stores.jobs.ask_cancel("ann", "job-1")).cancel_asked
    assert await stores.jobs.cancels_asked("home-1") == {"job-1"}
    assert await stores.jobs.cancels_asked("home-2") == frozenset()
    running = replace(new_job(), state=JobState.RUNNING)
    assert await stores.jobs.save(running) is True
    assert await stores.jobs.find("ann", "job-1") == replace(running, cancel_asked=True)
    await stores.jobs.save(replace(running, state=JobState.CANCELLED))
    assert await stores.jobs.cancels_asked("home-1") == frozenset()


async def test_old_jobs_of_homes_without_a_lease_fail(stores: Stores) -> None:
    await stores.leases.renew("alive", until=NOON + MINUTE)
    await stores.leases.renew("dead", until=NOON)
    for home in ("alive", "dead", "never", "own"):
        await stores.jobs.add(replace(new_job(home, home=home), password="sesame"))
    await stores.jobs.add(replace(new_job("young", home="dead"), created_at=NOON + MINUTE))
    await stores.jobs.add(new_job("done", home="dead"))
    await stores.jobs.save(replace(new_job("done", home="dead"), state=JobState.DONE))

    failure = JobFailure("Unavailable", "gone")
    lost = await stores.jobs.fail_lost(failure, created_before=NOON + MINUTE, at=NOON, but="own")

    assert lost == 2
    found = {job.job_id: job for job in await stores.jobs.page("ann", limit=9)}
    assert {name for name, job in found.items() if job.state is JobState.FAILED} == {
        "dead",
        "never",
    }
    assert (found["dead"].failure, found["dead"].finished_at) == (failure, NOON)
    assert found["dead"].password is None


async def test_what_ended_is_forgotten_by_age_and_by_number(stores: Stores) -> None:
    for number in range(4):
        for tenant in ("ann", "bob"):
            job = new_job(f"{tenant}-{number}", tenant=tenant)
            await stores.jobs.add(job)
            at = NOON + number * MINUTE
            await stores.jobs.save(replace(job, state=JobState.DONE, finished_at=at))
    await stores.jobs.add(new_job("waits"))
    await stores.jobs.forget_ended(before=NOON + MINUTE, most=2)
    kept = [
        job.job_id for tenant in ("ann", "bob") for job in await stores.jobs.page(tenant, limit=9)
    ]
    assert kept == ["waits", "ann-3", "ann-2", "bob-3", "bob-2"]


# Leases


async def test_only_pending_files_without_a_living_owner_are_given_up(stores: Stores) -> None:
    owners = {"a": "alive", "d": "dead", "u": "unknown", "n": None}
    for file_id, owner in owners.items():
        await stores.state.begin_file(ingestion(file_id).file, owner=owner)
    ready = ingestion("r")
    await stores.state.begin_file(ready.file, owner="dead")
    await stores.state.commit_file(ready.file, documents=ready.documents, chunks=ready.chunks)
    await stores.leases.renew("alive", until=NOON)
    await stores.leases.renew("alive", until=NOON + MINUTE)
    await stores.leases.renew("dead", until=NOON)

    assert await stores.state.give_up(at=NOON) == 3

    assert set(await stores.state.abandoned(pending=False)) == {
        Deletion("d"),
        Deletion("u"),
        Deletion("n"),
    }
    assert await stores.state.list_documents("ann") == ready.infos
    alive = ingestion("a")
    await stores.state.commit_file(alive.file, documents=alive.documents, chunks=alive.chunks)
    dead = ingestion("d")
    with pytest.raises(Conflict):
        await stores.state.commit_file(dead.file, documents=dead.documents, chunks=dead.chunks)
    await stores.leases.release("alive")
    await stores.leases.release("never")
    await stores.state.begin_file(ingestion("b").file, owner="alive")
    assert await stores.state.give_up(at=NOON) == 1


class Server:
    """What one of several processes on one database has for its ingestions."""

    def __init__(self, stores: Stores, index: FakeVectorIndex, clock: Clock, owner: str) -> None:
        self.ingestion = Ingestion(
            parser=FakeParser(),
            embedding=FakeEmbeddingModel(),
            index=index,
            state=stores.state,
            now=clock,
            new_id=lambda: owner,
            owner=owner,
        )
        self.tending = Tending(
            ingestion=self.ingestion,
            leases=stores.leases,
            owner=owner,
            now=clock,
            pause=self._never,
        )

    async def _never(self, seconds: float) -> None:
        await asyncio.Event().wait()


async def test_a_second_servers_start_leaves_the_firsts_ingestion_alone(stores: Stores) -> None:
    clock, index = Clock(), FakeVectorIndex()
    first, second = (Server(stores, index, clock, owner) for owner in ("first", "second"))
    await first.tending.begin()
    new = ingestion("f")
    await stores.state.begin_file(new.file, owner="first")

    await second.tending.begin()
    assert await stores.state.abandoned(pending=True) == [Deletion("f")]
    clock.now += LEASE / 2
    await first.tending.round()
    clock.now += LEASE / 2
    await second.tending.round()
    assert await stores.state.abandoned(pending=True) == [Deletion("f")]

    # The first is heard of no more.
    clock.now += LEASE / 2
    await second.tending.round()
    assert await stores.state.abandoned(pending=True) == []
    with pytest.raises(Conflict):
        await stores.state.commit_file(new.file, documents=new.documents, chunks=new.chunks)
    await second.tending.end()
    await first.tending.end()


async def test_what_a_server_left_is_given_up_when_it_starts_again_or_stops(
    stores: Stores,
) -> None:
    clock, index = Clock(), FakeVectorIndex()
    killed = Server(stores, index, clock, "first")
    await killed.tending.begin()
    await stores.state.begin_file(ingestion("f").file, owner="first")
    again = Server(stores, index, clock, "first")
    await again.tending.begin()
    assert await stores.state.abandoned(pending=True) == []
    await stores.state.begin_file(ingestion("g").file, owner="first")
    await again.tending.end()
    assert await stores.state.give_up(at=clock.now) == 1
    await killed.tending.end()


# Uploads


async def test_kept_bytes_are_there_after_reopening_under_the_same_home(tmp_path: Path) -> None:
    arrived = tmp_path / "arrived"
    arrived.write_bytes(b"content")
    uploads = open_uploads(tmp_path / "jobs")
    await uploads.keep("a", arrived)
    assert not arrived.exists()
    home = uploads.home
    await uploads.close()
    again = open_uploads(tmp_path / "jobs")
    assert again.home == home
    assert await again.names() == {"a"}
    assert again.path("a").read_bytes() == b"content"
    await again.drop({"a", "never"})
    assert await again.names() == frozenset()
    await again.close()


async def test_a_folder_of_uploads_belongs_to_one_process(tmp_path: Path) -> None:
    uploads = open_uploads(tmp_path / "jobs")
    with pytest.raises(FolderInUse):
        open_uploads(tmp_path / "jobs")
    await uploads.close()
    await open_uploads(tmp_path / "jobs").close()


async def test_a_disk_that_does_not_take_an_upload_is_told(tmp_path: Path) -> None:
    uploads = open_uploads(tmp_path / "jobs")
    with pytest.raises(Unavailable):
        await uploads.keep("a", tmp_path / "never")
    await uploads.close()


async def test_the_fake_folder_keeps_its_word_too(tmp_path: Path) -> None:
    arrived = tmp_path / "arrived"
    arrived.write_bytes(b"content")
    uploads = FakeUploads(folder=tmp_path / "jobs")
    await uploads.keep("a", arrived)
    assert not arrived.exists()
    assert await uploads.names() == {"a"}
    assert uploads.path("a").read_bytes() == b"content"
    await uploads.drop({"a", "never"})
    assert await uploads.names() == frozenset()
