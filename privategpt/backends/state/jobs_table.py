"""The tables of background ingestions and of who is alive."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
)

from privategpt.backends.state.tables import UtcDateTime, schema

# Literals, as the partial index below needs them.
_QUEUED: ColumnElement[str] = literal_column("'queued'", String)
_RUNNING: ColumnElement[str] = literal_column("'running'", String)
UNFINISHED = (_QUEUED, _RUNNING)

ingest_jobs = Table(
    "ingest_jobs",
    schema,
    # The order of arrival; SQLite counts only a primary key up by itself.
    Column("sequence", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("job_id", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("home", String, nullable=False),
    Column("state", String, nullable=False),
    Column("file_name", String, nullable=False),
    Column("media_type", String),
    Column("size_bytes", BigInteger, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("replaces", Boolean, nullable=False),
    # Only until the job has ended.
    Column("password", String),
    Column("attempts", Integer, nullable=False),
    Column("pages_done", Integer, nullable=False),
    Column("pages_total", Integer),
    Column("chunks_done", Integer, nullable=False),
    Column("chunks_total", Integer),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("indexing_since", UtcDateTime),
    Column("updated_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("failure_kind", String),
    Column("failure_message", Text),
    Column("doc_ids", JSON, nullable=False),
    Column("cancel_asked", Boolean, nullable=False),
    Column("unread", JSON, nullable=False, server_default=text("'[]'")),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="state"),
    UniqueConstraint("job_id"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    schema,
    Column("owner", String, primary_key=True),
    Column("until", UtcDateTime, nullable=False),
)

Index("ix_ingest_jobs_tenant", ingest_jobs.c.tenant, ingest_jobs.c.sequence)
Index(
    "ix_ingest_jobs_unfinished",
    ingest_jobs.c.home,
    ingest_jobs.c.sequence,
    sqlite_where=ingest_jobs.c.state.in_(UNFINISHED),
    postgresql_where=ingest_jobs.c.state.in_(UNFINISHED),
)
