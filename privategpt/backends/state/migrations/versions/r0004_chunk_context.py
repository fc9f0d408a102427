"""What must be read before a chunk: the header row of the table that it continues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "chunks", sa.Column("context", sa.Text, nullable=False, server_default=sa.text("''"))
    )


def downgrade() -> None:
    op.drop_column("chunks", "context")
