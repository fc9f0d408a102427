"""Background ingestions as clients see them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from privategpt.api.wire.replies import ErrorBody, Reply, SkippedFile
from privategpt.domain.jobs import JobState


class CountReply(Reply):
    """How many are done, and of how many; `total` is null until the file has been read."""

    done: int
    total: int | None


class JobReply(Reply):
    """The ingestion of one file in the background. Times are RFC 3339, in UTC.

    `doc_ids` are the documents, once it is done; `error` says why it failed; `seconds_left` is an
    estimate, while it runs. A cancelled job may run on for a moment. `skipped` is there where files
    inside the upload could not be read.
    """

    object: Literal["ingest.job"]
    job_id: str = Field(examples=["1f0f6f0e-6f0c-4a55-9d3e-4a7a1c2b3d4e"])
    state: JobState = Field(strict=False)
    file_name: str = Field(examples=["Sales Report Q3 2023.pdf"])
    size_bytes: int
    pages: CountReply
    chunks: CountReply
    seconds_left: float | None
    created_at: str = Field(examples=["2026-03-01T12:00:00+00:00"])
    started_at: str | None
    finished_at: str | None
    error: ErrorBody | None
    doc_ids: list[str]
    skipped: list[SkippedFile] | None = None


class JobsReply(Reply):
    """Jobs, the newest first. `has_more` is true where the list was cut by `limit`."""

    object: Literal["list"]
    model: Literal["private-gpt"]
    data: list[JobReply]
    has_more: bool


JOB_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A job in every `data:` line; the last one has ended",
        "content": {"text/event-stream": {}},
    }
}
"""Without a schema, as every stream's (`replies.STREAMED`)."""
