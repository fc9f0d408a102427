"""Alembic's entry: runs revisions on the connection it is handed in `attributes`."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

# The last table's module: it brings all tables before it into the one schema.
from privategpt.backends.state.quota_table import search_quota

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=search_quota.metadata)
with context.begin_transaction():
    context.run_migrations()
