"""Ingestions that go on after their request has been answered, and who may clear up behind whom."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from privategpt.domain.documents import Metadata, Scalar, UnreadFile


class JobState(StrEnum):
    """Where a job is. From the last three it does not move."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """True where nothing more will happen."""
        return self not in {JobState.QUEUED, JobState.RUNNING}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the ingestion of a file is. Totals are None until the file has been read.

    A page is a document of the file; a text without pages has one.
    """

    pages_done: int = 0
    pages_total: int | None = None
    chunks_done: int = 0
    chunks_total: int | None = None


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Why a job failed: `kind` is the name of the error's class, "" for a fault of ours."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    """The ingestion of one file in the background.

    `home` is the id of the data folder that keeps its upload: that server alone works on it.
    `attempts` counts the times that it was begun, so that a file which ends the process does not
    end it for ever. `password` is kept until the job has ended. `doc_ids` and `unread` are what it
    came to: the documents, and the files inside that could not be read.
    """

    job_id: str
    tenant: str
    home: str
    file_name: str
    media_type: str | None
    size_bytes: int
    created_at: datetime
    metadata: Metadata = field(default_factory=dict[str, Scalar | None])
    replaces: bool = False
    password: str | None = field(default=None, repr=False)
    state: JobState = JobState.QUEUED
    attempts: int = 0
    progress: Progress = Progress()
    started_at: datetime | None = None
    indexing_since: datetime | None = None
    updated_at: datetime | None = None
    finished_at: datetime | None = None
    failure: JobFailure | None = None
    doc_ids: tuple[str, ...] = ()
    unread: tuple[UnreadFile, ...] = ()
    cancel_asked: bool = False

    @property
    def seconds_left(self) -> float | None:
        """How long it will take if it goes on at its pace; None where that is not known yet."""
        done, total = self.progress.chunks_done, self.progress.chunks_total
        if self.state is not JobState.RUNNING or not done or total is None:
            return None
        if self.indexing_since is None or self.updated_at is None:
            return None
        since = (self.updated_at - self.indexing_since).total_seconds()
        # The clock may have been set back meanwhile.
        return since / done * (total - done) if since >= 0 else None


class JobStore(Protocol):
    """Keeps jobs for all processes that share the state store."""

    async def add(self, job: Job) -> None:
        """Durable when it returns. Raises `Conflict` for an id that is there."""
        ...

    async def save(self, job: Job) -> bool:
        """Overwrite what has changed of a job that is not final in the store.

        True where somebody has asked for its cancellation, which `save` does not overwrite.
        """
        ...

    async def find(self, tenant: str, job_id: str) -> Job:
        """Raises `NotFound`."""
        ...

    async def page(self, tenant: str, *, limit: int, after: str | None = None) -> list[Job]:
        """The newest jobs first; `after` is the last job of the page before.

        Raises `NotFound` for an unknown `after`.
        """
        ...

    async def unfinished(self, home: str) -> list[Job]:
        """The jobs of all tenants that are kept in `home` and not final, the oldest first."""
        ...

    async def adopt(self, home: str) -> None:
        """Make `home` the home of all jobs that are not final: only where no other is alive."""
        ...

    async def ask_cancel(self, tenant: str, job_id: str) -> Job:
        """Leave a word for the server that works on it. Raises `NotFound`."""
        ...

    async def cancels_asked(self, home: str) -> frozenset[str]:
        """The ids of jobs in `home` that are not final and for which there is such a word."""
        ...

    async def fail_lost(
        self, failure: JobFailure, *, created_before: datetime, at: datetime, but: str
    ) -> int:
        """End what was created before then and whose home holds no lease; how many.

        The jobs of the home `but` are left alone.
        """
        ...

    async def forget_ended(self, *, before: datetime, most: int) -> None:
        """Remove jobs that ended before then, and all but each tenant's `most` newest."""
        ...


class LeaseStore(Protocol):
    """Who is alive: an owner's pending files are left alone until its lease has ended."""

    async def renew(self, owner: str, *, until: datetime) -> None:
        """Take or extend a lease."""
        ...

    async def release(self, owner: str) -> None:
        """End a lease now; it is no error if there is none."""
        ...


class KeptUploads(Protocol):
    """The bytes of jobs that have not ended, one file for each. Raises `Unavailable`."""

    async def keep(self, job_id: str, path: Path) -> None:
        """Take the file at `path` away and keep it; durable when it returns."""
        ...

    def path(self, job_id: str) -> Path:
        """Where it is."""
        ...

    async def names(self) -> frozenset[str]:
        """The ids of all that are kept."""
        ...

    async def drop(self, job_ids: AbstractSet[str]) -> None:
        """Remove them; it is no error if one is not there."""
        ...
