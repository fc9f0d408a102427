"""Background ingestions: the use case for tests of the edge, and the ports for tests of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from privategpt.domain.errors import Conflict, NotFound, Unavailable
from privategpt.domain.jobs import Job, JobFailure, JobState
from privategpt.services.ingestion import IngestRequest
from tests.fakes.leases import FakeLeaseStore

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def new_job(job_id: str = "job-1", *, tenant: str = "ann", home: str = "home-1") -> Job:
    """A job that waits."""
    return Job(
        job_id=job_id,
        tenant=tenant,
        home=home,
        file_name=f"{job_id}.txt",
        media_type="text/plain",
        size_bytes=4,
        created_at=NOON,
    )


@dataclass
class FakeJobs:
    """What the edge calls. `steps` are what a watched job becomes, one after the other; an
    `asyncio.Event` among them is waited for, an error raised.
    """

    submitted: list[tuple[IngestRequest, bytes]] = field(
        default_factory=list[tuple[IngestRequest, bytes]]
    )
    known: dict[str, Job] = field(default_factory=dict[str, Job])
    steps: Sequence[Job | asyncio.Event | Unavailable] = ()
    error: Exception | None = None

    async def submit(self, request: IngestRequest) -> Job:
        """A job with the file's name."""
        if self.error is not None:
            raise self.error
        self.submitted.append((request, request.upload.path.read_bytes()))
        job = new_job(f"job-{len(self.submitted)}", tenant=request.tenant)
        job = self.known[job.job_id] = replace(job, file_name=request.upload.name)
        return job

    async def job(self, tenant: str, job_id: str) -> Job:
        """One that is known."""
        if (job := self.known.get(job_id)) is None or job.tenant != tenant:
            raise NotFound("There is nothing with that id")
        return job

    async def jobs(self, tenant: str, *, limit: int, after: str | None = None) -> list[Job]:
        """The last ones first."""
        newest = [job for job in reversed(self.known.values()) if job.tenant == tenant]
        return _page(newest, limit=limit, after=after)

    async def watch(self, tenant: str, job_id: str) -> AsyncGenerator[Job]:
        """The steps."""
        yield await self.job(tenant, job_id)
        for step in self.steps:
            if isinstance(step, Job):
                yield step
            elif isinstance(step, Unavailable):
                raise step
            else:
                await step.wait()

    async def cancel(self, tenant: str, job_id: str) -> Job:
        """Cancelled at once."""
        job = replace(await self.job(tenant, job_id), state=JobState.CANCELLED)
        self.known[job_id] = job
        return job


class FakeJobStore:
    """A `JobStore` in memory; while `failure` is set, what writes raises it."""

    def __init__(self, *, leases: FakeLeaseStore | None = None) -> None:
        self.leases = leases or FakeLeaseStore()
        self.failure: Unavailable | None = None
        self.rows: dict[str, Job] = {}
        self.saved: list[Job] = []

    async def add(self, job: Job) -> None:
        self._fail_if_told()
        if job.job_id in self.rows:
            raise Conflict("The state store already holds something of that id")
        self.rows[job.job_id] = job

    async def save(self, job: Job) -> bool:
        self._fail_if_told()
        stored = self.rows.get(job.job_id)
        if stored is None or stored.state.is_final:
            return False
        self.saved.append(job)
        self.rows[job.job_id] = replace(job, home=stored.home, cancel_asked=stored.cancel_asked)
        return stored.cancel_asked

    async def find(self, tenant: str, job_id: str) -> Job:
        job = self.rows.get(job_id)
        if job is None or job.tenant != tenant:
            raise NotFound("There is nothing with that id")
        return job

    async def page(self, tenant: str, *, limit: int, after: str | None = None) -> list[Job]:
        newest = [job for job in reversed(self.rows.values()) if job.tenant == tenant]
        return _page(newest, limit=limit, after=after)

    async def unfinished(self, home: str) -> list[Job]:
        return [job for job in self._unfinished() if job.home == home]

    async def adopt(self, home: str) -> None:
        self._put(replace(job, home=home) for job in self._unfinished())

    async def ask_cancel(self, tenant: str, job_id: str) -> Job:
        self._fail_if_told()
        job = await self.find(tenant, job_id)
        if not job.state.is_final:
            job = self.rows[job_id] = replace(job, cancel_asked=True)
        return job

    async def cancels_asked(self, home: str) -> frozenset[str]:
        return frozenset(
            job.job_id for job in self._unfinished() if job.home == home and job.cancel_asked
        )

    async def fail_lost(
        self, failure: JobFailure, *, created_before: datetime, at: datetime, but: str
    ) -> int:
        lost = [
            replace(job, state=JobState.FAILED, failure=failure, finished_at=at, password=None)
            for job in self._unfinished()
            if job.home != but
            and job.created_at < created_before
            and not self.leases.holds(job.home, at=at)
        ]
        self._put(lost)
        return len(lost)

    async def forget_ended(self, *, before: datetime, most: int) -> None:
        left: dict[str, int] = {}
        for job in list(reversed(self.rows.values())):
            if not job.state.is_final:
                continue
            left[job.tenant] = left.get(job.tenant, 0) + 1
            is_old = job.finished_at is not None and job.finished_at < before
            if is_old or left[job.tenant] > most:
                del self.rows[job.job_id]

    def _unfinished(self) -> list[Job]:
        return [job for job in self.rows.values() if not job.state.is_final]

    def _put(self, jobs: Iterable[Job]) -> None:
        for job in list(jobs):
            self.rows[job.job_id] = job

    def _fail_if_told(self) -> None:
        if self.failure is not None:
            raise self.failure


class FakeUploads:
    """`KeptUploads` in a folder of the test's; while `failure` is set, nothing can be kept."""

    def __init__(self, *, folder: Path) -> None:
        self.failure: Unavailable | None = None
        self._folder = folder
        folder.mkdir(exist_ok=True)

    async def keep(self, job_id: str, path: Path) -> None:
        if self.failure is not None:
            raise self.failure
        await asyncio.to_thread(path.rename, self.path(job_id))

    def path(self, job_id: str) -> Path:
        return self._folder / job_id

    async def names(self) -> frozenset[str]:
        return frozenset(path.name for path in self._folder.iterdir())

    async def drop(self, job_ids: AbstractSet[str]) -> None:
        for job_id in job_ids:
            self.path(job_id).unlink(missing_ok=True)


def _page(newest: list[Job], *, limit: int, after: str | None) -> list[Job]:
    if after is None:
        return newest[:limit]
    ids = [job.job_id for job in newest]
    if after not in ids:
        raise NotFound("There is nothing with that id")
    start = ids.index(after) + 1
    return newest[start : start + limit]
