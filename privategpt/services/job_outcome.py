"""How jobs end."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import datetime

from privategpt.domain.errors import InvalidRequest, PrivateGptError, Unavailable
from privategpt.domain.jobs import Job, JobFailure, JobState, Progress
from privategpt.domain.library import StoredFile

MAX_ATTEMPTS = 3
"""How often a job is begun: a file that ends the process must not end every process after it."""

LOST = JobFailure(Unavailable.__name__, "The server that kept this file has not come back")
GONE = JobFailure(InvalidRequest.__name__, "The upload is not in the data folder any more")
DEADLY = JobFailure(
    Unavailable.__name__, f"The server has stopped {MAX_ATTEMPTS} times while it read this file"
)
OUR_FAULT = JobFailure("", "The server failed over this file; its log names the job")

_log = logging.getLogger(__name__)


def outcome(
    job: Job, task: asyncio.Task[StoredFile], *, stored: StoredFile | None, at: datetime
) -> Job:
    """What becomes of a job whose `task` has ended; `stored` is its file, if it is ready.

    A file that is ready makes its job done, even if somebody cancelled it a moment too late. A job
    that was interrupted, as nobody cancelled it, waits again.
    """
    error = None if task.cancelled() else task.exception()
    if stored is None and not task.cancelled() and error is None:
        stored = task.result()
    if stored is not None:
        return done(job, stored, at=at)
    if error is not None:
        if not isinstance(error, PrivateGptError):
            _log.error("job %s broke off", job.job_id, exc_info=error)
        return failed(job, failure_of(error), at=at)
    if job.cancel_asked:
        return cancelled(job, at=at)
    return queued_again(replace(job, attempts=job.attempts - 1))


def done(job: Job, stored: StoredFile, *, at: datetime) -> Job:
    """The file is in the library."""
    doc_ids = tuple(document.doc_id for document in stored.documents)
    ready = replace(job, state=JobState.DONE, doc_ids=doc_ids, unread=stored.unread)
    return _ended(ready, at=at)


def failed(job: Job, failure: JobFailure, *, at: datetime) -> Job:
    """The file is not in the library, and this is why."""
    return _ended(replace(job, state=JobState.FAILED, failure=failure), at=at)


def cancelled(job: Job, *, at: datetime) -> Job:
    """Nobody wants the file any more."""
    return _ended(replace(job, state=JobState.CANCELLED), at=at)


def queued_again(job: Job) -> Job:
    """From the first page."""
    return replace(job, state=JobState.QUEUED, progress=Progress(), indexing_since=None)


def failure_of(error: BaseException) -> JobFailure:
    """An error as it is stored; of one that is not ours, nothing is told."""
    if isinstance(error, PrivateGptError):
        # It may quote the file's own words: no store takes NUL and lone surrogates.
        message = error.message.replace("\0", "").encode("utf-8", errors="replace").decode()
        return JobFailure(type(error).__name__, message)
    return OUR_FAULT


def _ended(job: Job, *, at: datetime) -> Job:
    return replace(job, finished_at=at, password=None)
