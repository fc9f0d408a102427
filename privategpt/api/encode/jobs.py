"""A background ingestion as JSON; `wire/jobs.py` describes it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from privategpt.api.encode.views import skipped_json
from privategpt.api.errors import failure_body
from privategpt.domain.jobs import Job


def job_json(job: Job) -> dict[str, Any]:
    """The job as it is now."""
    progress, left = job.progress, job.seconds_left
    body: dict[str, Any] = {
        "object": "ingest.job",
        "job_id": job.job_id,
        "state": job.state.value,
        "file_name": job.file_name,
        "size_bytes": job.size_bytes,
        "pages": {"done": progress.pages_done, "total": progress.pages_total},
        "chunks": {"done": progress.chunks_done, "total": progress.chunks_total},
        "seconds_left": None if left is None else round(left, 1),
        "created_at": job.created_at.isoformat(),
        "started_at": _moment(job.started_at),
        "finished_at": _moment(job.finished_at),
        "error": failure_body(job.failure.kind, job.failure.message) if job.failure else None,
        "doc_ids": list(job.doc_ids),
    }
    if job.unread:
        body["skipped"] = skipped_json(job.file_name, job.unread)
    return body


class JobEvents:
    """A job's changes as events; in silence the last one again, which every reader understands."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def encode(self, job: Job) -> Iterator[dict[str, Any]]:
        """The one event of a change."""
        self._last = job_json(job)
        yield self._last

    def heartbeat(self) -> dict[str, Any]:
        """What was sent last."""
        return self._last


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
