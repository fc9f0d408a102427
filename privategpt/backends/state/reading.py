"""Single statements that change nothing, off the event loop."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, cast

from sqlalchemy import Connection, Dialect, Engine, Executable, Row, Select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from privategpt.backends.gathering import Gathering
from privategpt.backends.state.errors import translated

NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})

READS_AT_ONCE = 8
"""Statements on one connection before it is somebody else's turn."""

_Read: TypeAlias = Callable[[Connection], Sequence[Any]]
_Rows: TypeAlias = Sequence[Row[Any]]
_Values: TypeAlias = Sequence[Sequence[Any]]


class Reader(Protocol):
    """Runs statements, each by itself."""

    async def rows(self, statement: Executable, parameters: Mapping[str, Any]) -> _Rows:
        """What the statement finds. Raises `Unavailable`."""
        ...

    async def values(self, statement: Select[Any], parameters: Mapping[str, Any]) -> _Values:
        """The same, with names for no column, and as quickly as can be: for every search."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class DriverReader:
    """For a database whose driver waits without a thread."""

    def __init__(self, *, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(self, statement: Executable, parameters: Mapping[str, Any]) -> _Rows:
        """See `Reader`."""
        with translated():
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, dict(parameters))).all()

    async def values(self, statement: Select[Any], parameters: Mapping[str, Any]) -> _Values:
        """See `Reader`."""
        return await self.rows(statement, parameters)

    async def close(self) -> None:
        """See `Reader`."""
        await self._engine.dispose()


class ThreadReader:
    """For SQLite, which blocks, though mostly for a tenth of a millisecond only.

    Its asynchronous driver hands over to a thread for every step of a statement, which takes a
    millisecond of the processors; here it is done once, for all that is asked at a time. Each
    thread keeps its connection, for to borrow one from a pool takes as long as such a read.
    """

    def __init__(self, *, engine: Engine, threads: int, wait_s: float) -> None:
        self._engine = engine
        self._kept = threading.local()
        self._connections: list[Connection] = []
        self._prepared: dict[Select[Any], _Prepared] = {}
        self._reads: Gathering[_Read, Sequence[Any]] = Gathering(
            self._read,
            threads=threads,
            at_most=READS_AT_ONCE,
            name="state store",
            wait_s=wait_s,
        )

    async def rows(self, statement: Executable, parameters: Mapping[str, Any]) -> _Rows:
        """See `Reader`."""
        with translated():
            return await self._reads.ask(partial(_rows, statement, parameters))

    async def values(self, statement: Select[Any], parameters: Mapping[str, Any]) -> _Values:
        """See `Reader`. Straight from the driver: behind an embedding, which leaves nothing in
        the processor's caches, SQLAlchemy's code takes several times as long as the reading.
        """
        prepared = self._prepared.get(statement)
        if prepared is None:
            prepared = self._prepared[statement] = _prepare(statement, self._engine.dialect)
        with translated():
            return await self._reads.ask(partial(prepared.values, parameters))

    async def close(self) -> None:
        """See `Reader`."""
        self._reads.close()
        for connection in self._connections:
            connection.close()
        self._engine.dispose()

    def _read(self, reads: Sequence[_Read]) -> list[Sequence[Any]]:
        with translated():
            connection = self._connection()
            try:
                return [read(connection) for read in reads]
            except (SQLAlchemyError, sqlite3.Error):
                # Whatever is wrong with it, the next read has another.
                self._kept.connection = None
                self._connections.remove(connection)
                connection.close()
                raise

    def _connection(self) -> Connection:
        """This thread's own."""
        kept: Connection | None = getattr(self._kept, "connection", None)
        if kept is None:
            kept = self._kept.connection = self._engine.connect()
            self._connections.append(kept)
        return kept


def _rows(
    statement: Executable, parameters: Mapping[str, Any], connection: Connection
) -> Sequence[Row[Any]]:
    return connection.execute(statement, dict(parameters)).all()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A statement as the driver takes it: its text, its parameters in order, and for each column
    what makes a stored value the one that is meant, if anything has to."""

    text: str
    parameters: Sequence[str]
    readers: Sequence[Callable[[Any], Any] | None]

    def values(self, parameters: Mapping[str, Any], connection: Connection) -> _Values:
        driver = cast("sqlite3.Connection", connection.connection.dbapi_connection)
        ordered = [parameters[name] for name in self.parameters]
        return [
            [
                value if read is None else read(value)
                for read, value in zip(self.readers, row, strict=True)
            ]
            for row in driver.execute(self.text, ordered)
        ]


def _prepare(statement: Select[Any], dialect: Dialect) -> _Prepared:
    compiled = statement.compile(dialect=dialect)
    return _Prepared(
        text=str(compiled),
        parameters=tuple(compiled.positiontup or ()),
        readers=tuple(
            column.type.dialect_impl(dialect).result_processor(dialect, None)
            for column in statement.selected_columns
        ),
    )
