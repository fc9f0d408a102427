"""Files, documents, chunks, and what is known of the index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

READY = sa.text("state = 'ready'")
HIDDEN = sa.text("state != 'ready'")


def upgrade() -> None:
    _create_files()
    _create_documents()
    _create_chunks()
    op.create_table(
        "meta",
        sa.Column("key", sa.String, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_meta"),
    )


def downgrade() -> None:
    for table in ("meta", "chunks", "documents", "files"):
        op.drop_table(table)


def _create_files() -> None:
    op.create_table(
        "files",
        sa.Column(
            "sequence",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("file_id", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("sha256", sa.String, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("media_type", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_files"),
        sa.UniqueConstraint("file_id", name="uq_files_file_id"),
        sa.CheckConstraint("state IN ('pending', 'ready', 'deleting')", name="ck_files_state"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_files_tenant_name", "files", ["tenant", "name"])
    op.create_index(
        "uq_files_ready_content",
        "files",
        ["tenant", "name", "sha256"],
        unique=True,
        sqlite_where=READY,
        postgresql_where=READY,
    )
    op.create_index(
        "ix_files_ready",
        "files",
        ["tenant", "sequence"],
        sqlite_where=READY,
        postgresql_where=READY,
    )
    op.create_index(
        "ix_files_hidden",
        "files",
        ["tenant", "file_id"],
        sqlite_where=HIDDEN,
        postgresql_where=HIDDEN,
    )


def _create_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("doc_id", sa.String, nullable=False),
        sa.Column("file_id", sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("headings", sa.JSON, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("doc_id", name="pk_documents"),
        sa.UniqueConstraint("file_id", "position", name="uq_documents_file_id_position"),
        sa.ForeignKeyConstraint(
            ["file_id"], ["files.file_id"], name="fk_documents_file_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint("state IN ('ready', 'deleting')", name="ck_documents_state"),
    )
    op.create_index(
        "ix_documents_hidden",
        "documents",
        ["file_id", "doc_id"],
        sqlite_where=HIDDEN,
        postgresql_where=HIDDEN,
    )


def _create_chunks() -> None:
    op.create_table(
        "chunks",
        sa.Column("chunk_id", sa.String, nullable=False),
        sa.Column("doc_id", sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("heading_path", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("chunk_id", name="pk_chunks"),
        sa.UniqueConstraint("doc_id", "position", name="uq_chunks_doc_id_position"),
        sa.ForeignKeyConstraint(
            ["doc_id"], ["documents.doc_id"], name="fk_chunks_doc_id", ondelete="CASCADE"
        ),
    )
