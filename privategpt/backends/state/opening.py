"""Opens the state store: the data folder or server, its schema, its connections."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from privategpt.backends.state.database import Database, postgres_database, sqlite_database
from privategpt.backends.state.folder import lock_folder
from privategpt.backends.state.migrating import upgrade
from privategpt.backends.state.store import SqlStateStore
from privategpt.domain.errors import FolderInUse, InvalidSettings

SQLITE_FILE = "state.db"


async def open_state_store(location: Path | str) -> SqlStateStore:
    """The store in `location`: a data folder, or a `postgresql://` or `sqlite:///` address.

    Creates what is missing and brings the schema up to date. Raises `FolderInUse`,
    `InvalidSettings` or `Unavailable`.
    """
    return SqlStateStore(database=await open_database(location))


async def open_database(location: Path | str) -> Database:
    """The database in `location`, locked and up to date, for the stores that share it."""
    database = _database(location)
    try:
        await database.write(upgrade)
    except BaseException:
        await database.close()
        raise
    return database


async def open_database_beside(location: Path | str) -> Database:
    """The database in `location` for a short command, also while a server holds its folder.

    What the server holds is left as it is, its schema included.
    """
    try:
        return await open_database(location)
    except FolderInUse:
        return sqlite_database(_sqlite_file(location), folder_lock=None)


def _sqlite_file(location: Path | str) -> Path:
    if isinstance(location, Path):
        return location / SQLITE_FILE
    return Path(_parse(location).database or "")


def _database(location: Path | str) -> Database:
    if isinstance(location, Path):
        return _in_folder(_sqlite_file(location))
    url = _parse(location)
    match url.get_backend_name():
        case "sqlite":
            if not url.database or url.database == ":memory:":
                raise InvalidSettings("Setting 'state.url': name a file, as in sqlite:///state.db")
            return _in_folder(Path(url.database))
        case "postgresql" | "postgres":
            _require_asyncpg()
            return postgres_database(url)
        case other:
            raise InvalidSettings(
                f"Setting 'state.url': {other!r} is not supported; use postgresql:// or sqlite:///"
            )


def _in_folder(file: Path) -> Database:
    return sqlite_database(file, folder_lock=lock_folder(file.parent))


def _parse(location: str) -> URL:
    try:
        return make_url(location)
    except (ArgumentError, ValueError) as error:
        # The address may hold a password, so it is not repeated.
        raise InvalidSettings("Setting 'state.url' is not a database address") from error


def _require_asyncpg() -> None:
    if importlib.util.find_spec("asyncpg") is None:
        raise InvalidSettings(
            "Setting 'state.url': PostgreSQL needs a driver: pip install 'privategpt[postgres]'"
        )
