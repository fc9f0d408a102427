"""Background ingestions, and who works on a pending file."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UNFINISHED = sa.text("state IN ('queued', 'running')")


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.add_column("files", sa.Column("owner", sa.String))
    op.create_table(
        "leases",
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("until", moment, nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_leases"),
    )
    op.create_table(
        "ingest_jobs",
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("job_id", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("home", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("file_name", sa.String, nullable=False),
        sa.Column("media_type", sa.String),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("replaces", sa.Boolean, nullable=False),
        sa.Column("password", sa.String),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("pages_done", sa.Integer, nullable=False),
        sa.Column("pages_total", sa.Integer),
        sa.Column("chunks_done", sa.Integer, nullable=False),
        sa.Column("chunks_total", sa.Integer),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("started_at", moment),
        sa.Column("indexing_since", moment),
        sa.Column("updated_at", moment),
        sa.Column("finished_at", moment),
        sa.Column("failure_kind", sa.String),
        sa.Column("failure_message", sa.Text),
        sa.Column("doc_ids", sa.JSON, nullable=False),
        sa.Column("cancel_asked", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_ingest_jobs"),
        sa.UniqueConstraint("job_id", name="uq_ingest_jobs_job_id"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')",
            name="ck_ingest_jobs_state",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_ingest_jobs_tenant", "ingest_jobs", ["tenant", "sequence"])
    op.create_index(
        "ix_ingest_jobs_unfinished",
        "ingest_jobs",
        ["home", "sequence"],
        sqlite_where=UNFINISHED,
        postgresql_where=UNFINISHED,
    )


def downgrade() -> None:
    op.drop_table("ingest_jobs")
    op.drop_table("leases")
    op.drop_column("files", "owner")
