"""Ingestions in the background: a queue whose jobs survive the process.

A job is a durable row and its upload kept in the data folder; only then is it acknowledged. What a
process leaves unfinished the next one on that folder begins anew, from the file's first page: the
pending generation of before is nobody's any more and is swept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from privategpt.domain.errors import (
    PrivateGptError,
    QuotaExceeded,
    TooManyRequests,
    Unavailable,
)
from privategpt.domain.jobs import Job, JobState, JobStore, KeptUploads
from privategpt.domain.library import StoredFile
from privategpt.domain.observing import UNOBSERVED, Observer
from privategpt.domain.ports import Upload
from privategpt.services.ingestion import IngestRequest, Room, endless_room
from privategpt.services.job_outcome import (
    DEADLY,
    GONE,
    LOST,
    MAX_ATTEMPTS,
    cancelled,
    done,
    failed,
    failure_of,
    outcome,
    queued_again,
)
from privategpt.services.job_queue import Entry, TurnQueue
from privategpt.services.listening import Listener

KEPT_PER_TENANT = 1000
"""Ended jobs that can still be looked up; their documents stay, whatever becomes of the job."""

SAVE_S = 1.0
"""How often progress is written down, for readers in other processes and after a restart."""

LOOK_S = 1.0
"""How often a job that another process works on is looked at for whoever follows it."""

RETRY_S = 30

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """`at_once` jobs are in work; `most`, of `most_bytes` together, may be unfinished. What has
    ended can be looked up for `kept`.
    """

    at_once: int = 2
    most: int = 1000
    most_bytes: int = 10_000_000_000
    kept: timedelta = timedelta(days=7)


class Ingests(Protocol):
    """What ingests; the same for the background and the foreground."""

    async def find(self, request: IngestRequest) -> StoredFile | None:
        """See `services.ingestion.Ingestion.find`."""
        ...

    async def ingest(
        self, request: IngestRequest, *, listener: Listener, has_room: bool
    ) -> StoredFile:
        """See `services.ingestion.Ingestion.ingest`."""
        ...


class Jobs:
    """Takes files in, works on them, and tells how far they are, one tenant at a time.

    `start` begins the work, `close` interrupts it; `pause` waits for so many seconds.
    """

    def __init__(
        self,
        *,
        ingestion: Ingests,
        store: JobStore,
        uploads: KeptUploads,
        home: str,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        limits: JobLimits | None = None,
        room: Room = endless_room,
        observer: Observer = UNOBSERVED,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ingestion = ingestion
        self._store = store
        self._uploads = uploads
        self._home = home
        self._now = now
        self._new_id = new_id
        self._limits = limits or JobLimits()
        self._room = room
        self._observer = observer
        self._pause = pause
        self._entries: dict[str, Entry] = {}
        self._unsaved: dict[str, Job] = {}
        self._queue = TurnQueue()
        self._workers: list[asyncio.Task[None]] = []

    async def start(self, *, alone: bool) -> None:
        """Take up what was left in this home, and begin to work.

        `alone` where no other process can have jobs in the store: then all are taken up.
        """
        if alone:
            await self._store.adopt(self._home)
        left = await self._store.unfinished(self._home)
        kept = await self._uploads.names()
        await self._uploads.drop(kept - {job.job_id for job in left})
        for job in left:
            await self._resume(job, is_kept=job.job_id in kept)
        await self._forget_old()
        self._workers = [asyncio.create_task(self._serve()) for _ in range(self._limits.at_once)]

    async def close(self) -> None:
        """Interrupt what is in work; it goes on after the next start."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        for entry in list(self._entries.values()):
            await entry.room.aclose()

    async def tend(self) -> None:
        """Now and then: hear what other processes were asked, and forget what is old."""
        for job in list(self._unsaved.values()):
            if await self._note(job) and job.state.is_final:
                await self._drop_upload(job)
        for job_id in await self._store.cancels_asked(self._home):
            if (entry := self._entries.get(job_id)) is not None:
                await self._cancel(entry)
        await self._forget_old()

    async def submit(self, request: IngestRequest) -> Job:
        """Keep the upload and queue its ingestion. The file at the upload's path is taken away.

        What is there already is done at once. Raises `TooManyRequests` where as many wait as may,
        `QuotaExceeded`, `Unavailable`, and `InvalidRequest` as `Ingestion.ingest` does.
        """
        known = await self._ingestion.find(request)
        job = self._new_job(request)
        if known is not None and not request.replaces:
            job = done(job, known, at=self._now())
            await self._store.add(job)
            self._observer.job_moved(None, job.state)
            return job
        self._refuse_beyond_limits(job)
        # Counted from here on, though it is not in the store yet.
        entry = self._entries[job.job_id] = Entry(job=job, now=self._now)
        try:
            await self._enter_room(entry)
            await self._uploads.keep(job.job_id, request.upload.path)
            await self._store.add(job)
        except BaseException as error:
            await asyncio.shield(self._withdraw(entry, error))
            raise
        self._enqueue(entry)
        if entry.job.cancel_asked:  # while it was being stored
            self._queue.remove(entry)
            await self._end(entry, cancelled(entry.job, at=self._now()))
        return entry.job

    async def job(self, tenant: str, job_id: str) -> Job:
        """A job as it is now. Raises `NotFound`."""
        known = self._known(job_id)
        if known is not None and known.tenant == tenant:
            return known
        return await self._store.find(tenant, job_id)

    async def jobs(self, tenant: str, *, limit: int, after: str | None = None) -> list[Job]:
        """The newest first; `after` is a job's id. Raises `NotFound` for an unknown one."""
        stored = await self._store.page(tenant, limit=limit, after=after)
        return [self._known(job.job_id) or job for job in stored]

    async def watch(self, tenant: str, job_id: str) -> AsyncGenerator[Job]:
        """The job now and after every change, until it has ended. Raises `NotFound`."""
        last: Job | None = None
        while last is None or not last.state.is_final:
            entry = self._entries.get(job_id)
            # Taken before the job is read, so that no change between the two is missed.
            changed = None if entry is None else entry.changed
            job = await self.job(tenant, job_id)
            if job != last:
                last = job
                yield job
            elif changed is None:
                await self._pause(LOOK_S)
            else:
                await changed.wait()

    async def cancel(self, tenant: str, job_id: str) -> Job:
        """Stop a job; nothing of its file is left. One that has ended stays as it is.

        A job of another process is stopped when that one hears of it. Raises `NotFound`.
        """
        job = await self.job(tenant, job_id)
        entry = self._entries.get(job_id)
        if entry is not None:
            await self._cancel(entry)
            return entry.job
        return job if job.state.is_final else await self._store.ask_cancel(tenant, job_id)

    # The queue

    def _new_job(self, request: IngestRequest) -> Job:
        upload = request.upload
        return Job(
            job_id=self._new_id(),
            tenant=request.tenant,
            home=self._home,
            file_name=upload.name,
            media_type=upload.media_type,
            size_bytes=upload.path.stat().st_size,
            created_at=self._now(),
            metadata=request.metadata,
            replaces=request.replaces,
            password=upload.password,
        )

    def _refuse_beyond_limits(self, job: Job) -> None:
        size_bytes = job.size_bytes + sum(each.job.size_bytes for each in self._entries.values())
        if len(self._entries) >= self._limits.most or size_bytes > self._limits.most_bytes:
            raise TooManyRequests(
                "As many files as this server keeps for later are waiting; try again in a while",
                retry_after_s=RETRY_S,
            )

    async def _enter_room(self, entry: Entry) -> None:
        job = entry.job
        await entry.room.enter_async_context(self._room(job.tenant, job.size_bytes))

    def _enqueue(self, entry: Entry) -> None:
        self._observer.job_moved(None, entry.job.state)
        self._entries[entry.job.job_id] = entry
        self._queue.add(entry)

    async def _withdraw(self, entry: Entry, error: BaseException) -> None:
        """End what is not acknowledged, also in the store: a commit's answer can be lost, and the
        client may leave before it.
        """
        left = isinstance(error, asyncio.CancelledError)
        job, at = entry.job, self._now()
        ended = cancelled(job, at=at) if left else failed(job, failure_of(error), at=at)
        await entry.room.aclose()
        await self._note(ended)
        del self._entries[job.job_id]
        entry.become(ended)
        entry.ended.set()
        await self._drop_upload(ended)

    async def _resume(self, job: Job, *, is_kept: bool) -> None:
        entry = Entry(job=queued_again(job), now=self._now)
        ended = await self._ended_before_its_turn(entry, is_kept=is_kept)
        if ended is None:
            self._enqueue(entry)
            await self._note(entry.job)
            return
        self._observer.job_moved(None, ended.state)
        if await self._note(ended):
            await self._drop_upload(ended)

    async def _ended_before_its_turn(self, entry: Entry, *, is_kept: bool) -> Job | None:
        """What the job of an earlier process has become, if it cannot or should not be begun."""
        job, at = entry.job, self._now()
        if job.cancel_asked:
            return cancelled(job, at=at)
        if not is_kept:
            return failed(job, GONE, at=at)
        if job.attempts >= MAX_ATTEMPTS:
            return failed(job, DEADLY, at=at)
        try:
            await self._enter_room(entry)
        except QuotaExceeded as error:
            return failed(job, failure_of(error), at=at)
        return None

    # The work

    async def _serve(self) -> None:
        while True:
            await self._work(await self._queue.next())

    async def _work(self, entry: Entry) -> None:
        job = entry.job
        begun = replace(
            job, state=JobState.RUNNING, attempts=job.attempts + 1, started_at=self._now()
        )
        self._observer.job_moved(job.state, begun.state)
        entry.become(begun)
        task = entry.task = asyncio.create_task(
            self._ingestion.ingest(self._request(begun), listener=entry, has_room=True)
        )
        try:
            await self._note_until_done(entry, task)
        finally:
            # In vain unless this worker is being stopped.
            task.cancel()
            await asyncio.wait({task})
            ended = outcome(entry.job, task, stored=entry.result, at=self._now())
            await self._end(entry, ended)

    async def _note_until_done(self, entry: Entry, task: asyncio.Task[StoredFile]) -> None:
        noted = None
        while not task.done():
            if entry.job != noted:
                noted = entry.job
                await self._note(noted)
            await asyncio.wait({task}, timeout=SAVE_S)

    def _request(self, job: Job) -> IngestRequest:
        return IngestRequest(
            upload=Upload(
                path=self._uploads.path(job.job_id),
                name=job.file_name,
                media_type=job.media_type,
                password=job.password,
            ),
            tenant=job.tenant,
            metadata=job.metadata,
            replaces=job.replaces,
        )

    async def _cancel(self, entry: Entry) -> None:
        """Return when it has ended, one way or the other."""
        entry.become(replace(entry.job, cancel_asked=True))
        if entry.task is not None:
            entry.task.cancel()
        elif self._queue.remove(entry):
            await self._end(entry, cancelled(entry.job, at=self._now()))
        await entry.ended.wait()

    async def _end(self, entry: Entry, job: Job) -> None:
        await entry.room.aclose()
        saved = await self._note(job)
        self._observer.job_moved(entry.job.state, job.state)
        self._entries.pop(job.job_id, None)
        entry.become(job)
        entry.ended.set()
        if saved and job.state.is_final:
            await self._drop_upload(job)
        _log.info("job %s is %s", job.job_id, job.state.value)

    # The store

    async def _note(self, job: Job) -> bool:
        """Save a job, or keep it for `tend` to save; True where it is saved now.

        No worker may end over it, whatever the store refuses.
        """
        try:
            asked = await self._store.save(job)
        except PrivateGptError as error:
            _log.warning("job %s could not be noted: %s", job.job_id, error.message)
            self._unsaved[job.job_id] = job
            return False
        self._unsaved.pop(job.job_id, None)
        entry = self._entries.get(job.job_id)
        if asked and entry is not None and not entry.job.cancel_asked and entry.task is not None:
            entry.become(replace(entry.job, cancel_asked=True))
            entry.task.cancel()
        return True

    async def _drop_upload(self, job: Job) -> None:
        try:
            await self._uploads.drop({job.job_id})
        except Unavailable as error:
            _log.warning("the upload of job %s stays: %s", job.job_id, error.message)

    async def _forget_old(self) -> None:
        now, kept = self._now(), self._limits.kept
        await self._store.fail_lost(LOST, created_before=now - kept, at=now, but=self._home)
        await self._store.forget_ended(before=now - kept, most=KEPT_PER_TENANT)

    def _known(self, job_id: str) -> Job | None:
        entry = self._entries.get(job_id)
        return self._unsaved.get(job_id) if entry is None else entry.job
