"""Background ingestions over SQL; `domain.jobs.JobStore` says what each method promises."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Row, bindparam, delete, exists, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from privategpt.backends.state.database import Database
from privategpt.backends.state.errors import can_be_an_id, not_found
from privategpt.backends.state.jobs_table import UNFINISHED, ingest_jobs, leases
from privategpt.domain.documents import UnreadFile
from privategpt.domain.jobs import Job, JobFailure, JobState, Progress

_jobs = ingest_jobs.c
_this = _jobs.job_id == bindparam("by_job_id")
_mine = _jobs.tenant == bindparam("by_tenant")
_unfinished = _jobs.state.in_(UNFINISHED)

ADD = insert(ingest_jobs)
SAVE = update(ingest_jobs).where(_this, _unfinished).returning(_jobs.cancel_asked)
FIND = select(ingest_jobs).where(_this, _mine)
PAGE = select(ingest_jobs).where(_mine).order_by(_jobs.sequence.desc()).limit(bindparam("size"))
PAGE_AFTER = PAGE.where(
    _jobs.sequence < select(_jobs.sequence).where(_this, _mine).scalar_subquery()
)
UNFINISHED_IN = (
    select(ingest_jobs)
    .where(_jobs.home == bindparam("by_home"), _unfinished)
    .order_by(_jobs.sequence)
)
ADOPT = update(ingest_jobs).where(_unfinished).values(home=bindparam("new_home"))
ASK_CANCEL = update(ingest_jobs).where(_this, _mine, _unfinished).values(cancel_asked=True)
CANCELS_ASKED = select(_jobs.job_id).where(
    _jobs.home == bindparam("by_home"), _unfinished, _jobs.cancel_asked
)
FAIL_LOST = (
    update(ingest_jobs)
    .where(
        _unfinished,
        _jobs.home != bindparam("but"),
        _jobs.created_at < bindparam("created_before"),
        ~exists().where(leases.c.owner == _jobs.home, leases.c.until > bindparam("at")),
    )
    .values(
        state=JobState.FAILED,
        finished_at=bindparam("at"),
        failure_kind=bindparam("kind"),
        failure_message=bindparam("message"),
        password=None,
    )
)
FORGET_OLD = delete(ingest_jobs).where(~_unfinished, _jobs.finished_at < bindparam("before"))
_ranked = (
    select(
        _jobs.sequence,
        func.row_number()
        .over(partition_by=_jobs.tenant, order_by=_jobs.sequence.desc())
        .label("rank"),
    )
    .where(~_unfinished)
    .subquery()
)
FORGET_MANY = delete(ingest_jobs).where(
    _jobs.sequence.in_(select(_ranked.c.sequence).where(_ranked.c.rank > bindparam("most")))
)

FIXED = frozenset({"job_id", "tenant", "home", "file_name", "created_at", "cancel_asked"})
"""What `save` leaves as it is."""


class SqlJobStore:
    """A `JobStore` in the state store's database; it is the store's to close."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, job: Job) -> None:
        await self._database.write(partial(_run, statement=ADD, values=_row(job)))

    async def save(self, job: Job) -> bool:
        return await self._database.write(partial(_save, job=job))

    async def find(self, tenant: str, job_id: str) -> Job:
        if not can_be_an_id(job_id):
            raise not_found()
        rows = await self._database.rows(FIND, {"by_job_id": job_id, "by_tenant": tenant})
        if not rows:
            raise not_found()
        return _read(rows[0])

    async def page(self, tenant: str, *, limit: int, after: str | None = None) -> list[Job]:
        place: dict[str, Any] = {"by_tenant": tenant, "size": limit}
        if after is not None:
            await self.find(tenant, after)
            place["by_job_id"] = after
        rows = await self._database.rows(PAGE if after is None else PAGE_AFTER, place)
        return [_read(row) for row in rows]

    async def unfinished(self, home: str) -> list[Job]:
        return [_read(row) for row in await self._database.rows(UNFINISHED_IN, {"by_home": home})]

    async def adopt(self, home: str) -> None:
        await self._database.write(partial(_run, statement=ADOPT, values={"new_home": home}))

    async def ask_cancel(self, tenant: str, job_id: str) -> Job:
        job = await self.find(tenant, job_id)
        if not job.state.is_final:
            place = {"by_job_id": job_id, "by_tenant": tenant}
            await self._database.write(partial(_run, statement=ASK_CANCEL, values=place))
        return await self.find(tenant, job_id)

    async def cancels_asked(self, home: str) -> frozenset[str]:
        rows = await self._database.rows(CANCELS_ASKED, {"by_home": home})
        return frozenset(job_id for (job_id,) in rows)

    async def fail_lost(
        self, failure: JobFailure, *, created_before: datetime, at: datetime, but: str
    ) -> int:
        values = {
            "kind": failure.kind,
            "message": failure.message,
            "created_before": created_before,
            "at": at,
            "but": but,
        }
        return await self._database.write(partial(_run, statement=FAIL_LOST, values=values))

    async def forget_ended(self, *, before: datetime, most: int) -> None:
        await self._database.write(partial(_forget, before=before, most=most))


async def _run(connection: AsyncConnection, *, statement: Any, values: Mapping[str, Any]) -> int:
    return int((await connection.execute(statement, values)).rowcount)


async def _save(connection: AsyncConnection, *, job: Job) -> bool:
    changed = {name: value for name, value in _row(job).items() if name not in FIXED}
    result = await connection.execute(SAVE.values(changed), {"by_job_id": job.job_id})
    return bool(result.scalar())


async def _forget(connection: AsyncConnection, *, before: datetime, most: int) -> None:
    await connection.execute(FORGET_OLD, {"before": before})
    await connection.execute(FORGET_MANY, {"most": most})


def _row(job: Job) -> dict[str, Any]:
    progress, failure = job.progress, job.failure
    return {
        "job_id": job.job_id,
        "tenant": job.tenant,
        "home": job.home,
        "state": job.state.value,
        "file_name": job.file_name,
        "media_type": job.media_type,
        "size_bytes": job.size_bytes,
        "metadata": dict(job.metadata),
        "replaces": job.replaces,
        "password": job.password,
        "attempts": job.attempts,
        "pages_done": progress.pages_done,
        "pages_total": progress.pages_total,
        "chunks_done": progress.chunks_done,
        "chunks_total": progress.chunks_total,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "indexing_since": job.indexing_since,
        "updated_at": job.updated_at,
        "finished_at": job.finished_at,
        "failure_kind": None if failure is None else failure.kind,
        "failure_message": None if failure is None else failure.message,
        "doc_ids": list(job.doc_ids),
        "cancel_asked": job.cancel_asked,
        "unread": [[one.path, one.reason] for one in job.unread],
    }


def _read(row: Row[Any]) -> Job:
    failed = row.failure_message is not None
    return Job(
        job_id=row.job_id,
        tenant=row.tenant,
        home=row.home,
        state=JobState(row.state),
        file_name=row.file_name,
        media_type=row.media_type,
        size_bytes=row.size_bytes,
        metadata=row.metadata,
        replaces=row.replaces,
        password=row.password,
        attempts=row.attempts,
        progress=Progress(
            pages_done=row.pages_done,
            pages_total=row.pages_total,
            chunks_done=row.chunks_done,
            chunks_total=row.chunks_total,
        ),
        created_at=row.created_at,
        started_at=row.started_at,
        indexing_since=row.indexing_since,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        failure=JobFailure(row.failure_kind, row.failure_message) if failed else None,
        doc_ids=tuple(row.doc_ids),
        cancel_asked=row.cancel_asked,
        unread=tuple(UnreadFile(path, reason) for path, reason in row.unread),
    )
