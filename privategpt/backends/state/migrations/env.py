"""Alembic's entry: runs revisions on the connection it is handed in `attributes`."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from privategpt.backends.state.tables import schema

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=schema)
with context.begin_transaction():
    context.run_migrations()
