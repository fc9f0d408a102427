"""The files inside a job's upload that could not be read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "ingest_jobs", sa.Column("unread", sa.JSON, nullable=False, server_default=sa.text("'[]'"))
    )


def downgrade() -> None:
    op.drop_column("ingest_jobs", "unread")
