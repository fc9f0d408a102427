"""Which file inside an upload a document is of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "inner_documents",
        sa.Column("doc_id", sa.String, nullable=False),
        sa.Column("inner_file_id", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("doc_id", name="pk_inner_documents"),
        sa.ForeignKeyConstraint(
            ["doc_id"],
            ["documents.doc_id"],
            name="fk_inner_documents_doc_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_inner_documents_inner_file_id", "inner_documents", ["inner_file_id"])


def downgrade() -> None:
    op.drop_table("inner_documents")
