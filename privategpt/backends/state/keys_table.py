"""The table of API keys."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, String, Table

from privategpt.backends.state.tables import UtcDateTime, schema

api_keys = Table(
    "api_keys",
    schema,
    Column("key_id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    # Of the secret only its SHA-256 is kept.
    Column("digest", LargeBinary, nullable=False),
    # Names in order, with one blank between.
    Column("scopes", String, nullable=False),
    Column("label", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
)
