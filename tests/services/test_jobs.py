"""Background ingestions over the real ingestion; what is behind the ports is fake."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from privategpt.domain.documents import UnreadFile
from privategpt.domain.errors import (
    CorruptFile,
    EngineUnavailable,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    TooManyRequests,
    Unavailable,
)
from privategpt.domain.jobs import Job, JobFailure, JobState, Progress
from privategpt.domain.library import StoredFile
from privategpt.domain.observing import Unobserved
from privategpt.domain.ports import Embeddings
from privategpt.services.ingestion import IngestRequest
from privategpt.services.job_outcome import DEADLY, GONE, LOST, MAX_ATTEMPTS, OUR_FAULT
from privategpt.services.jobs import JobLimits, Jobs
from privategpt.services.limits import Limits, Storage, TenantLimits
from privategpt.services.listening import Listener
from tests.fakes.clock import NOON, Clock
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.jobs import FakeJobStore, FakeUploads, new_job
from tests.fakes.wired import WiredLibrary

HOME = "home-1"


class Moves(Unobserved):
    """Notes where jobs went."""

    def __init__(self) -> None:
        self.seen: list[tuple[str | None, str]] = []

    def job_moved(self, before: JobState | None, after: JobState) -> None:
        self.seen.append((before and before.value, after.value))


class GatedEmbedding(FakeEmbeddingModel):
    """Says when it is asked, and answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = asyncio.Event(), asyncio.Event()

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        self.entered.set()
        await self.gate.wait()
        return await super().embed_passages(texts)


@dataclass
class Background:
    """What one data folder holds, whichever process opens it."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    store: FakeJobStore = field(default_factory=FakeJobStore)
    moves: Moves = field(default_factory=Moves)
    limits: JobLimits = field(default_factory=lambda: JobLimits(at_once=1))
    stored_bytes: int | None = None
    paused: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.library = WiredLibrary(folder=self.folder)
        self.uploads = FakeUploads(folder=self.folder / "kept")
        self._numbers = itertools.count(1)

    def jobs(self, ingestion: object = None, *, home: str = HOME) -> Jobs:
        """A process's, not started."""
        limits = TenantLimits(of_all=Limits(stored_bytes=self.stored_bytes))
        return Jobs(
            ingestion=ingestion or self.library.ingestion,  # type: ignore[arg-type]
            store=self.store,
            uploads=self.uploads,
            home=home,
            now=self.clock,
            new_id=lambda: f"job-{next(self._numbers)}",
            limits=self.limits,
            room=Storage(limits=limits, used=self._used).room,
            observer=self.moves,
            pause=self._pause,
        )

    @asynccontextmanager
    async def running(self, *, alone: bool = False) -> AsyncGenerator[Jobs]:
        """A process that works, until the end of the context interrupts it."""
        jobs = self.jobs()
        await jobs.start(alone=alone)
        try:
            yield jobs
        finally:
            await jobs.close()

    async def _used(self, tenant: str) -> int:
        documents = await self.library.state.list_documents(tenant)
        return sum(int(str(info.metadata["file_size"])) for info in documents)

    async def _pause(self, seconds: float) -> None:
        self.paused.set()
        await asyncio.sleep(0)

    def request(self, name: str = "a.txt", text: str = "One.", **more: object) -> IngestRequest:
        return self.library.request(name, text, **more)  # type: ignore[arg-type]


@pytest.fixture
def background(tmp_path: Path) -> Background:
    return Background(folder=tmp_path)


async def ended(jobs: Jobs, job: Job) -> Job:
    """The job when nothing more happens to it."""
    async with asyncio.timeout(20):
        return [now async for now in jobs.watch(job.tenant, job.job_id)][-1]


async def names(background: Background, tenant: str = "ann") -> list[str]:
    found = await background.library.state.list_documents(tenant)
    return [str(info.metadata["file_name"]) for info in found]


# From the upload to the end


async def test_a_job_becomes_documents_and_its_upload_goes(background: Background) -> None:
    async with background.running() as jobs:
        queued = await jobs.submit(background.request(text="One.\fTwo."))
        assert (queued.state, queued.file_name, queued.size_bytes) == ("queued", "a.txt", 9)
        job = await ended(jobs, queued)
    documents = await background.library.state.list_documents("ann")
    assert job == replace(
        queued,
        state=JobState.DONE,
        attempts=1,
        started_at=NOON,
        indexing_since=NOON,
        updated_at=NOON,
        finished_at=NOON,
        progress=Progress(pages_done=2, pages_total=2, chunks_done=2, chunks_total=2),
        doc_ids=tuple(info.doc_id for info in documents),
    )
    assert await background.store.find("ann", job.job_id) == job
    assert await background.uploads.names() == frozenset()
    assert background.moves.seen == [(None, "queued"), ("queued", "running"), ("running", "done")]


async def test_an_acknowledged_job_is_in_the_store_with_its_bytes_in_the_folder(
    background: Background,
) -> None:
    request = background.request(text="One.", metadata={"year": 1999}, replaces=True)
    given = replace(request, upload=replace(request.upload, password="sesame"))
    job = await background.jobs().submit(given)
    assert background.store.rows == {job.job_id: job}
    assert (job.metadata, job.replaces, job.password) == ({"year": 1999}, True, "sesame")
    assert "sesame" not in repr(job)
    assert background.uploads.path(job.job_id).read_text() == "One."
    assert not request.upload.path.exists()


async def test_the_request_is_ingested_as_it_was_given(background: Background) -> None:
    await background.library.add("a.txt", "The old text.")
    request = background.request(text="The new.", metadata={"author": "Ann"}, replaces=True)
    async with background.running() as jobs:
        await ended(jobs, await jobs.submit(request))
    (info,) = await background.library.state.list_documents("ann")
    assert info.metadata["author"] == "Ann"
    assert [c.chunk.text for c in background.library.index.chunks.values()] == ["The new."]


async def test_a_watched_job_tells_how_far_it_is(background: Background) -> None:
    background.library.embedding = embedding = GatedEmbedding()
    async with background.running() as jobs:
        job = await jobs.submit(background.request(text="One.\fTwo."))
        seen: list[tuple[str, Progress]] = []
        async for now in jobs.watch("ann", job.job_id):
            seen.append((now.state.value, now.progress))
            if now.progress.chunks_total is not None:
                embedding.gate.set()
    assert seen[0] == ("queued", Progress())
    assert ("running", Progress(0, 2, 0, 2)) in seen
    assert seen[-1] == ("done", Progress(2, 2, 2, 2))


async def test_time_left_follows_from_the_pace(background: Background) -> None:
    job = replace(
        new_job(),
        state=JobState.RUNNING,
        progress=Progress(0, 1, 50, 200),
        indexing_since=NOON,
        updated_at=NOON + timedelta(seconds=10),
    )
    assert job.seconds_left == 30.0
    unknown = [
        replace(job, state=JobState.DONE),
        replace(job, progress=Progress(0, 1, 0, 200)),
        replace(job, progress=Progress(0, None, 50, None)),
        replace(job, indexing_since=None),
        replace(job, updated_at=None),
        replace(job, updated_at=NOON - timedelta(seconds=1)),
    ]
    assert [each.seconds_left for each in unknown] == [None] * 6


async def test_a_file_that_cannot_be_read_fails_with_its_reason(background: Background) -> None:
    background.library.parser.refusals["a.txt"] = CorruptFile("broken")
    async with background.running() as jobs:
        job = await ended(jobs, await jobs.submit(background.request()))
    assert (job.state, job.failure) == ("failed", JobFailure("CorruptFile", "broken"))
    assert (job.password, job.doc_ids) == (None, ())
    assert await background.uploads.names() == frozenset()


async def test_a_job_tells_of_the_files_inside_that_could_not_be_read(
    background: Background,
) -> None:
    unread = (UnreadFile("x/plan.pdf", "The PDF is damaged"),)
    background.library.parser.unread["a.txt"] = unread
    async with background.running() as jobs:
        job = await ended(jobs, await jobs.submit(background.request()))
    assert (job.state, job.unread) == ("done", unread)
    assert await background.store.find("ann", job.job_id) == job


async def test_a_reason_can_be_stored_whatever_it_quotes(background: Background) -> None:
    background.library.parser.refusals["a.txt"] = CorruptFile("nul \0, lone \ud800, é")
    async with background.running() as jobs:
        job = await ended(jobs, await jobs.submit(background.request()))
    assert job.failure == JobFailure("CorruptFile", "nul , lone ?, é")


async def test_a_fault_of_ours_ends_its_job_and_the_next_goes_on(
    background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    background.library.embedding.failure = RuntimeError("a secret of the machine")
    async with background.running() as jobs:
        job = await ended(jobs, await jobs.submit(background.request()))
        assert (job.state, job.failure) == ("failed", OUR_FAULT)
        assert "a secret of the machine" in caplog.text
        background.library.embedding.failure = None
        assert (await ended(jobs, await jobs.submit(background.request("b.txt")))).state == "done"


async def test_what_is_there_already_is_done_at_once(background: Background) -> None:
    stored = await background.library.add("a.txt", "One.")
    jobs = background.jobs()
    job = await jobs.submit(background.request())
    assert (job.state, job.doc_ids) == ("done", tuple(d.doc_id for d in stored.documents))
    assert await jobs.job("ann", job.job_id) == job
    assert await background.uploads.names() == frozenset()


async def test_the_same_file_twice_in_the_queue_is_one_file(background: Background) -> None:
    async with background.running() as jobs:
        both = [await jobs.submit(background.request()) for _ in range(2)]
        first, second = [await ended(jobs, job) for job in both]
    assert (first.state, second.state) == ("done", "done")
    assert first.doc_ids == second.doc_ids
    assert await names(background) == ["a.txt"]


async def test_metadata_of_ours_is_refused_before_anything_is_kept(background: Background) -> None:
    with pytest.raises(InvalidRequest, match="file_id"):
        await background.jobs().submit(background.request(metadata={"file_id": "mine"}))
    assert (background.store.rows, await background.uploads.names()) == ({}, frozenset())


# Bounds


@pytest.mark.parametrize("limits", [JobLimits(most=2), JobLimits(most_bytes=9)])
async def test_a_full_queue_says_when_to_come_back(
    background: Background, limits: JobLimits
) -> None:
    background.limits = limits
    jobs = background.jobs()
    taken = [await jobs.submit(background.request(name)) for name in ("a.txt", "b.txt")]
    with pytest.raises(TooManyRequests) as refused:
        await jobs.submit(background.request("c.txt"))
    assert refused.value.retry_after_s is not None
    await jobs.cancel("ann", taken[0].job_id)
    await jobs.submit(background.request("c.txt"))


async def test_uploads_that_wait_count_towards_the_tenants_room(background: Background) -> None:
    background.stored_bytes = 10
    jobs = background.jobs()
    first = await jobs.submit(background.request("a.txt", "123456"))
    with pytest.raises(QuotaExceeded):
        await jobs.submit(background.request("b.txt", "123456"))
    assert await background.uploads.names() == {first.job_id}
    assert list(background.store.rows) == [first.job_id]
    await jobs.submit(background.request("b.txt", "123456", tenant="bob"))
    await jobs.cancel("ann", first.job_id)
    await jobs.submit(background.request("b.txt", "123456"))


async def test_a_job_in_work_takes_its_room_once(background: Background) -> None:
    background.stored_bytes = 7
    async with background.running() as jobs:
        assert (await ended(jobs, await jobs.submit(background.request()))).state == "done"


@pytest.mark.parametrize("part", ["store", "uploads"])
async def test_what_cannot_be_kept_is_not_acknowledged(background: Background, part: str) -> None:
    getattr(background, part).failure = Unavailable("full")
    jobs = background.jobs()
    with pytest.raises(Unavailable):
        await jobs.submit(background.request())
    assert (background.store.rows, await background.uploads.names()) == ({}, frozenset())
    getattr(background, part).failure = None
    assert await jobs.jobs("ann", limit=10) == []


async def test_tenants_take_turns(background: Background) -> None:
    jobs = background.jobs()
    many = [await jobs.submit(background.request(f"{n}.txt", f"Text {n}.")) for n in range(3)]
    one = await jobs.submit(background.request("b.txt", tenant="bob"))
    await jobs.start(alone=False)
    for job in (*many, one):
        await ended(jobs, job)
    await jobs.close()
    assert background.library.parser.parsed == ["0.txt", "b.txt", "1.txt", "2.txt"]


# Cancelling


async def test_a_job_that_waits_is_cancelled_and_never_begun(background: Background) -> None:
    jobs = background.jobs()
    job = await jobs.submit(background.request())
    other = await jobs.submit(background.request("b.txt"))
    cancelled = await jobs.cancel("ann", job.job_id)
    assert (cancelled.state, cancelled.finished_at) == ("cancelled", NOON)
    assert await background.uploads.names() == {other.job_id}
    await jobs.start(alone=False)
    await ended(jobs, other)
    await jobs.close()
    assert background.library.parser.parsed == ["b.txt"]


class SlowToAnswer(FakeJobStore):
    """Has stored a job well before it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.stored, self.gate = asyncio.Event(), asyncio.Event()
        self.answer: Exception | None = None

    async def add(self, job: Job) -> None:
        await super().add(job)
        self.stored.set()
        await self.gate.wait()
        if self.answer is not None:
            raise self.answer


async def test_a_job_can_be_cancelled_while_it_is_being_stored(background: Background) -> None:
    background.store = store = SlowToAnswer()
    async with background.running() as jobs:
        submitting = asyncio.create_task(jobs.submit(background.request()))
        await store.stored.wait()
        (job,) = await jobs.jobs("ann", limit=9)
        cancelling = [asyncio.create_task(jobs.cancel("ann", job.job_id)) for _ in range(2)]
        await asyncio.sleep(0)
        store.gate.set()
        ends = [await submitting, *await asyncio.gather(*cancelling)]
        assert [each.state for each in ends] == ["cancelled"] * 3
        other = await ended(jobs, await jobs.submit(background.request("b.txt")))
    assert (other.state, await names(background)) == ("done", ["b.txt"])
    assert (await store.find("ann", job.job_id)).state == "cancelled"
    assert await background.uploads.names() == frozenset()


@pytest.mark.parametrize("left", [True, False])
async def test_a_job_that_is_stored_and_not_acknowledged_ends(
    left: bool, background: Background
) -> None:
    background.store = store = SlowToAnswer()
    async with background.running() as jobs:
        submitting = asyncio.create_task(jobs.submit(background.request()))
        await store.stored.wait()
        (job,) = await jobs.jobs("ann", limit=9)
        watching = asyncio.create_task(ended(jobs, job))
        cancelling = asyncio.create_task(jobs.cancel("ann", job.job_id))
        await asyncio.sleep(0)
        if left:
            submitting.cancel()
        else:
            store.answer = EngineUnavailable("no answer")
            store.gate.set()
        with pytest.raises(asyncio.CancelledError if left else EngineUnavailable):
            await submitting
        state = "cancelled" if left else "failed"
        assert (await watching).state == (await cancelling).state == state
    assert (await store.find("ann", job.job_id)).state == state
    assert await background.uploads.names() == frozenset()


async def test_a_job_in_work_is_cancelled_and_leaves_nothing(background: Background) -> None:
    background.library.embedding = embedding = GatedEmbedding()
    async with background.running() as jobs:
        job = await jobs.submit(background.request())
        await embedding.entered.wait()
        assert await background.library.state.hidden("ann") != frozenset()
        both = await asyncio.gather(*(jobs.cancel("ann", job.job_id) for _ in range(2)))
        assert [each.state for each in both] == ["cancelled", "cancelled"]
        assert (await background.store.find("ann", job.job_id)).state == "cancelled"
    assert await names(background) == []
    assert await background.library.state.abandoned(pending=True) == []
    assert await background.uploads.names() == frozenset()


async def test_a_job_that_has_ended_stays_as_it_is(background: Background) -> None:
    async with background.running() as jobs:
        job = await ended(jobs, await jobs.submit(background.request()))
        assert await jobs.cancel("ann", job.job_id) == job


class CancelledTooLate:
    """Ingests, and is cancelled after the file has become ready."""

    def __init__(self, background: Background) -> None:
        self._ingestion = background.library.ingestion
        self.stored = asyncio.Event()

    async def find(self, request: IngestRequest) -> StoredFile | None:
        return await self._ingestion.find(request)

    async def ingest(
        self, request: IngestRequest, *, listener: Listener, has_room: bool
    ) -> StoredFile:
        await self._ingestion.ingest(request, listener=listener, has_room=has_room)
        self.stored.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_file_that_is_ready_makes_its_job_done_however_late_it_is_cancelled(
    background: Background,
) -> None:
    ingestion = CancelledTooLate(background)
    jobs = background.jobs(ingestion)
    await jobs.start(alone=False)
    job = await jobs.submit(background.request())
    await ingestion.stored.wait()
    assert (await jobs.cancel("ann", job.job_id)).state == "done"
    await jobs.close()
    assert await names(background) == ["a.txt"]


async def in_state(jobs: Jobs, job: Job, state: str) -> None:
    async for now in jobs.watch(job.tenant, job.job_id):
        if now.state == state:
            return
    raise AssertionError(f"it ended without having been {state}")


# Other tenants


async def test_anothers_job_is_as_unknown_as_one_that_never_was(background: Background) -> None:
    jobs = background.jobs()
    job = await jobs.submit(background.request())
    for job_id in (job.job_id, "never"):
        with pytest.raises(NotFound):
            await jobs.job("bob", job_id)
        with pytest.raises(NotFound):
            await jobs.cancel("bob", job_id)
        with pytest.raises(NotFound):
            await anext(jobs.watch("bob", job_id))
    assert await jobs.jobs("bob", limit=10) == []
    assert await jobs.jobs("ann", limit=10) == [job]


async def test_a_list_shows_jobs_as_they_are_now_the_newest_first(background: Background) -> None:
    background.library.parser.gate.clear()
    async with background.running() as jobs:
        made = [await jobs.submit(background.request(f"{n}.txt")) for n in range(3)]
        await in_state(jobs, made[0], "running")
        listed = await jobs.jobs("ann", limit=10)
        assert [(j.file_name, j.state.value) for j in listed] == [
            ("2.txt", "queued"),
            ("1.txt", "queued"),
            ("0.txt", "running"),
        ]
        assert await jobs.jobs("ann", limit=1, after=made[1].job_id) == listed[2:]


# After the process


async def test_an_interrupted_job_begins_anew_after_the_next_start(background: Background) -> None:
    background.library.parser.gate.clear()
    async with background.running() as jobs:
        running = await jobs.submit(background.request())
        waiting = await jobs.submit(background.request("b.txt"))
        await in_state(jobs, running, "running")
    stored = await background.store.find("ann", running.job_id)
    assert (stored.state, stored.attempts) == ("queued", 0)
    assert await background.uploads.names() == {running.job_id, waiting.job_id}
    background.library.parser.gate.set()
    async with background.running() as jobs:
        assert (await ended(jobs, running)).state == "done"
        assert (await ended(jobs, waiting)).state == "done"
    assert await names(background) == ["a.txt", "b.txt"]


def left_running(background: Background, *, attempts: int = 1, **more: object) -> Job:
    """What a process that was killed leaves."""
    job = replace(
        new_job(),
        state=JobState.RUNNING,
        attempts=attempts,
        progress=Progress(3, 9, 30, 90),
        password="sesame",
        **more,  # type: ignore[arg-type]
    )
    background.store.rows[job.job_id] = job
    background.uploads.path(job.job_id).write_text("One.")
    return job


async def test_a_killed_process_counts_as_an_attempt(background: Background) -> None:
    job = left_running(background)
    background.library.parser.gate.clear()
    async with background.running() as jobs:
        await in_state(jobs, job, "running")
        now = await jobs.job("ann", job.job_id)
        assert (now.attempts, now.progress) == (2, Progress())
        background.library.parser.gate.set()
        assert (await ended(jobs, job)).state == "done"


async def test_a_file_that_ended_the_process_too_often_is_given_up(background: Background) -> None:
    job = left_running(background, attempts=MAX_ATTEMPTS)
    async with background.running() as jobs:
        found = await jobs.job("ann", job.job_id)
    assert (found.state, found.failure, found.password) == ("failed", DEADLY, None)
    assert background.library.parser.parsed == []
    assert await background.uploads.names() == frozenset()


async def test_a_job_whose_upload_is_gone_says_so(background: Background) -> None:
    job = left_running(background)
    background.uploads.path(job.job_id).unlink()
    async with background.running() as jobs:
        found = await jobs.job("ann", job.job_id)
    assert (found.state, found.failure) == ("failed", GONE)


async def test_a_job_that_was_to_be_cancelled_is_not_begun_again(background: Background) -> None:
    job = left_running(background, cancel_asked=True)
    async with background.running() as jobs:
        assert (await jobs.job("ann", job.job_id)).state == "cancelled"
    assert await background.uploads.names() == frozenset()


async def test_a_job_for_which_there_is_no_room_any_more_fails(background: Background) -> None:
    job = left_running(background)
    background.stored_bytes = 1
    async with background.running() as jobs:
        found = await jobs.job("ann", job.job_id)
    assert found.failure is not None
    assert (found.state, found.failure.kind) == ("failed", "QuotaExceeded")


async def test_uploads_of_no_job_are_removed_at_the_start(background: Background) -> None:
    background.uploads.path("nobodys").write_text("x")
    async with background.running():
        assert await background.uploads.names() == frozenset()


async def test_another_homes_jobs_are_taken_up_only_by_who_is_alone(background: Background) -> None:
    job = left_running(background, home="home-2")
    async with background.running(alone=False) as jobs:
        assert await jobs.job("ann", job.job_id) == job
    background.uploads.path(job.job_id).write_text("One.")
    async with background.running(alone=True) as jobs:
        assert (await ended(jobs, job)).state == "done"


# The store beside other processes, and without an answer


async def test_a_job_elsewhere_is_watched_and_cancelled_through_the_store(
    background: Background,
) -> None:
    job = replace(new_job(home="home-2"), state=JobState.RUNNING)
    await background.store.add(job)
    jobs = background.jobs()
    asked = await jobs.cancel("ann", job.job_id)
    assert asked == replace(job, cancel_asked=True)
    watched = jobs.watch("ann", job.job_id)
    assert await anext(watched) == asked
    following = asyncio.ensure_future(anext(watched))
    await background.paused.wait()
    await background.store.save(replace(job, state=JobState.CANCELLED))
    assert (await following).state == "cancelled"


async def test_what_another_process_was_asked_is_heard_in_the_next_round(
    background: Background,
) -> None:
    background.library.parser.gate.clear()
    async with background.running() as jobs:
        running = await jobs.submit(background.request())
        waiting = await jobs.submit(background.request("b.txt"))
        await in_state(jobs, running, "running")
        for job in (running, waiting):
            await background.store.ask_cancel("ann", job.job_id)
        await jobs.tend()
        assert {j.state.value for j in await jobs.jobs("ann", limit=10)} == {"cancelled"}


async def test_a_cancellation_that_is_found_when_the_job_begins_stops_it(
    background: Background,
) -> None:
    jobs = background.jobs()
    job = await jobs.submit(background.request())
    await background.store.ask_cancel("ann", job.job_id)
    background.library.parser.gate.clear()
    await jobs.start(alone=False)
    assert (await ended(jobs, job)).state == "cancelled"
    await jobs.close()


async def test_an_end_that_cannot_be_noted_is_known_and_noted_later(
    background: Background,
) -> None:
    jobs = background.jobs()
    job = await jobs.submit(background.request())
    background.store.failure = EngineUnavailable("down")
    await jobs.start(alone=False)
    done = await ended(jobs, job)
    assert done.state == "done"
    assert await jobs.jobs("ann", limit=10) == [done]
    assert (await background.store.find("ann", job.job_id)).state == "queued"
    assert await background.uploads.names() == {job.job_id}
    background.store.failure = None
    await jobs.tend()
    assert await background.store.find("ann", job.job_id) == done
    assert await background.uploads.names() == frozenset()
    await jobs.close()


async def test_what_ended_long_ago_is_forgotten(background: Background) -> None:
    async with background.running() as jobs:
        job = await ended(jobs, await jobs.submit(background.request()))
        background.clock.now += timedelta(days=6)
        await jobs.tend()
        assert await jobs.job("ann", job.job_id) == job
        background.clock.now += timedelta(days=2)
        await jobs.tend()
        with pytest.raises(NotFound):
            await jobs.job("ann", job.job_id)
    assert await names(background) == ["a.txt"]


@pytest.mark.parametrize(
    ("lease", "state"), [(None, "failed"), (timedelta(days=7, minutes=5), "queued")]
)
async def test_a_job_whose_server_does_not_come_back_fails_in_the_end(
    background: Background, lease: timedelta | None, state: str
) -> None:
    await background.store.add(new_job(home="home-2"))
    if lease is not None:
        await background.store.leases.renew("home-2", until=NOON + lease)
    jobs = background.jobs()
    for days in (0, 7):
        assert (await jobs.job("ann", "job-1")).state == "queued"
        background.clock.now = NOON + timedelta(days=days, minutes=1)
        await jobs.tend()
    found = await jobs.job("ann", "job-1")
    assert (found.state, found.failure) == (state, LOST if state == "failed" else None)


async def test_progress_is_written_down_while_a_job_is_in_work(background: Background) -> None:
    async with background.running() as jobs:
        await ended(jobs, await jobs.submit(background.request()))
    assert [job.state.value for job in background.store.saved] == ["running", "done"]
