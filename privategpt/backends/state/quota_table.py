"""The table of searches per tenant and UTC day."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Date, Integer, String, Table

from privategpt.backends.state.tables import schema

search_quota = Table(
    "search_quota",
    schema,
    Column("tenant", String, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("used", Integer, nullable=False),
    CheckConstraint("used >= 0", name="used"),
)
