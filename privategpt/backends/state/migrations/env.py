"""Alembic's entry: runs revisions on the connection it is handed in `attributes`."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from privategpt.backends.state import jobs_table, keys_table, quota_table, tables

# Every module with tables stands here, so that `schema` is whole when it is compared.
TABLES = (tables, quota_table, keys_table, jobs_table)

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=tables.schema)
with context.begin_transaction():
    context.run_migrations()
