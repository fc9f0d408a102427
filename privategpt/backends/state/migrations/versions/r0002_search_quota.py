"""Searches per tenant and UTC day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "search_quota",
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "day", name="pk_search_quota"),
        sa.CheckConstraint("used >= 0", name="ck_search_quota_used"),
    )


def downgrade() -> None:
    op.drop_table("search_quota")
