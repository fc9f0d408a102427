"""Brings a database to the schema that this version works with."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from privategpt.domain.errors import StartRefused

REVISIONS = Path(__file__).parent / "migrations"
# Any number does, as long as all processes use the same one.
POSTGRES_LOCK = text("SELECT pg_advisory_xact_lock(7320491)")


async def upgrade(connection: AsyncConnection) -> None:
    """Apply all missing revisions inside the connection's transaction.

    Raises `StartRefused` where a newer version has been at work.
    """
    if connection.dialect.name == "postgresql":
        await connection.execute(POSTGRES_LOCK)
    await connection.run_sync(_upgrade)


def configuration(connection: Connection) -> Config:
    """What Alembic's commands need to work on `connection`."""
    config = Config()
    # Alembic's options interpolate `%`, which a folder's name may hold.
    config.set_main_option("script_location", str(REVISIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection) -> None:
    try:
        command.upgrade(configuration(connection), "head")
    except CommandError as error:
        raise StartRefused(
            "The state store was written by a newer version of privategpt; start that one"
        ) from error
