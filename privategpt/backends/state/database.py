"""Connections: transactions to write, single statements to read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from anyio import CancelScope
from pydantic_core import from_json
from sqlalchemy import URL, Connection, Executable, Row, Select, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from privategpt.backends.state.errors import translated
from privategpt.backends.state.folder import FolderLock
from privategpt.backends.state.reading import NO_PARAMETERS, DriverReader, Reader, ThreadReader

T = TypeVar("T")

SQLITE_READERS = 4
POSTGRES_CONNECTIONS = 5
WAIT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 60.0

SQLITE_PRAGMAS = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA journal_mode = WAL",
    # FULL: what was acknowledged survives a power cut; NORMAL would lose the last commits.
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # A large ingestion must not leave its write-ahead log on the disk for ever.
    "PRAGMA journal_size_limit = 67108864",
)


class Database:
    """A writer and a reader of one database, shared by all stores that keep tables in it.

    Both hide parameters: an error that reaches a log must not carry a document's text.

    The reader's connections commit by themselves, so a read is one round trip and never holds
    back a write; the writer's open a transaction that already holds the write lock.
    """

    def __init__(
        self, *, writer: AsyncEngine, reader: Reader, folder_lock: FolderLock | None = None
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._folder_lock = folder_lock

    @property
    def is_ours_alone(self) -> bool:
        """True where no other process can be at work in it."""
        return self._folder_lock is not None

    async def rows(
        self, statement: Executable, parameters: Mapping[str, Any] = NO_PARAMETERS
    ) -> Sequence[Row[Any]]:
        """What a statement that changes nothing finds."""
        return await self._reader.rows(statement, parameters)

    async def values(
        self, statement: Select[Any], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Any]]:
        """The same without names, as quickly as can be."""
        return await self._reader.values(statement, parameters)

    async def write(self, transaction: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `transaction` and commit it, or roll it back if it raises.

        A cancellation of the caller reaches it only at its next await: it always learns whether
        the change has been made, and will not clean up behind a commit that succeeded.
        """
        return await _settle(self._transact(transaction))

    async def _transact(self, transaction: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        with translated():
            async with self._writer.begin() as connection:
                return await transaction(connection)

    async def close(self) -> None:
        """Close all connections and let go of the folder."""
        await self._reader.close()
        await self._writer.dispose()
        if self._folder_lock is not None:
            self._folder_lock.release()


async def _settle(operation: Coroutine[Any, Any, T]) -> T:
    """Run `operation` to its end; what cancels the caller meanwhile is put off."""
    task = asyncio.create_task(operation)
    interruption: asyncio.CancelledError | None = None
    # The scope holds back anyio's cancellation, the loop asyncio's own.
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                interruption = error
    caller = asyncio.current_task()
    if interruption is not None and caller is not None:
        # Asked anew, not a second time: `asyncio.timeout` counts the requests.
        caller.uncancel()
        caller.cancel(*interruption.args)
    return task.result()


def sqlite_database(file: Path, *, folder_lock: FolderLock | None) -> Database:
    """SQLite: one writer, since it knows no more, and readers that never wait for it."""
    writer = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(file)),
        hide_parameters=True,
        # Python's driver shall leave transactions alone: `_begin_immediate` opens them.
        connect_args={"isolation_level": None},
        pool_size=1,
        max_overflow=0,
        pool_timeout=WAIT_S,
    )
    reader = create_engine(
        URL.create("sqlite+pysqlite", database=str(file)),
        hide_parameters=True,
        json_deserializer=from_json,
        # A connection reads on one thread, and is closed by another.
        connect_args={"check_same_thread": False},
        isolation_level="AUTOCOMMIT",
        skip_autocommit_rollback=True,
        pool_size=SQLITE_READERS,
        max_overflow=0,
    )
    event.listen(writer.sync_engine, "connect", _set_pragmas)
    event.listen(writer.sync_engine, "begin", _begin_immediate)
    event.listen(reader, "connect", _set_pragmas)
    event.listen(reader, "connect", _refuse_writes)
    return Database(
        writer=writer,
        reader=ThreadReader(engine=reader, threads=SQLITE_READERS, wait_s=WAIT_S),
        folder_lock=folder_lock,
    )


def postgres_database(url: URL) -> Database:
    """PostgreSQL through asyncpg; several processes may share it."""
    url, connect_args = _asyncpg_dialect(url)
    writer = create_async_engine(
        url,
        hide_parameters=True,
        connect_args=connect_args,
        pool_size=POSTGRES_CONNECTIONS,
        pool_pre_ping=True,
    )
    reader = create_async_engine(
        url,
        hide_parameters=True,
        connect_args=connect_args,
        json_deserializer=from_json,
        isolation_level="AUTOCOMMIT",
        skip_autocommit_rollback=True,
        pool_size=POSTGRES_CONNECTIONS,
        pool_pre_ping=True,
        pool_use_lifo=True,
    )
    return Database(writer=writer, reader=DriverReader(engine=reader))


def _asyncpg_dialect(url: URL) -> tuple[URL, dict[str, Any]]:
    arguments: dict[str, Any] = {
        "timeout": CONNECT_TIMEOUT_S,
        "command_timeout": STATEMENT_TIMEOUT_S,
    }
    # libpq's name for it, in nearly every address a provider hands out; asyncpg calls it ssl.
    if (ssl_mode := url.query.get("sslmode")) is not None:
        arguments["ssl"] = ssl_mode
    return url.difference_update_query(["sslmode"]).set(drivername="postgresql+asyncpg"), arguments


def _set_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in SQLITE_PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _refuse_writes(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only = ON")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A transaction that starts by reading could not be promoted to writing after another's commit.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
