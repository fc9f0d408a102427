"""The library's tables: files, their documents, their chunks, and what is known of the index.

A file or document is visible only where its state is `ready`; the partial indexes below rely on
the states being written into the statements as literals, so compare with `READY`, never with a
bound parameter.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    literal_column,
    text,
)

schema = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

PENDING = literal_column("'pending'", String)
READY = literal_column("'ready'", String)
DELETING = literal_column("'deleting'", String)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002 (SQLAlchemy's signature)
    ) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002 (SQLAlchemy's signature)
    ) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


files = Table(
    "files",
    schema,
    # The order of ingestion; SQLite counts only a primary key up by itself.
    Column("sequence", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("file_id", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("name", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("media_type", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("state", String, nullable=False),
    # The process that ingests it, while it is pending: see `jobs_table.leases`.
    Column("owner", String),
    CheckConstraint("state IN ('pending', 'ready', 'deleting')", name="state"),
    UniqueConstraint("file_id"),
    sqlite_autoincrement=True,
)

documents = Table(
    "documents",
    schema,
    Column("doc_id", String, primary_key=True),
    Column(
        "file_id",
        String,
        ForeignKey("files.file_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("position", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("metadata", JSON, nullable=False),
    # The long columns stand last: SQLite walks a row's pages in order, and reading the metadata
    # of a 3 MB document must not walk its text.
    Column("headings", JSON, nullable=False),
    Column("text", Text, nullable=False),
    CheckConstraint("state IN ('ready', 'deleting')", name="state"),
    UniqueConstraint("file_id", "position"),
)

# Beside `documents`, as a column added to that would stand behind the long ones.
inner_documents = Table(
    "inner_documents",
    schema,
    Column(
        "doc_id",
        String,
        ForeignKey("documents.doc_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    # The file inside the upload; of the upload's own documents there is no row.
    Column("inner_file_id", String, nullable=False),
)

chunks = Table(
    "chunks",
    schema,
    Column("chunk_id", String, primary_key=True),
    Column(
        "doc_id",
        String,
        ForeignKey("documents.doc_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("position", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    # A copy of `documents.text[start:end]`: answering with ten chunks must not read ten books.
    Column("text", Text, nullable=False),
    Column("heading_path", JSON, nullable=False),
    Column("context", Text, nullable=False, server_default=text("''")),
    UniqueConstraint("doc_id", "position"),
)

meta = Table(
    "meta",
    schema,
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)

Index("ix_inner_documents_inner_file_id", inner_documents.c.inner_file_id)
Index("ix_files_tenant_name", files.c.tenant, files.c.name)
Index(
    "uq_files_ready_content",
    files.c.tenant,
    files.c.name,
    files.c.sha256,
    unique=True,
    sqlite_where=files.c.state == READY,
    postgresql_where=files.c.state == READY,
)
Index(
    "ix_files_ready",
    files.c.tenant,
    files.c.sequence,
    sqlite_where=files.c.state == READY,
    postgresql_where=files.c.state == READY,
)
Index(
    "ix_files_hidden",
    files.c.tenant,
    files.c.file_id,
    sqlite_where=files.c.state != READY,
    postgresql_where=files.c.state != READY,
)
Index(
    "ix_documents_hidden",
    documents.c.file_id,
    documents.c.doc_id,
    sqlite_where=documents.c.state != READY,
    postgresql_where=documents.c.state != READY,
)
