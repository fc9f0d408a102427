"""Single statements that change nothing, off the event loop."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from sqlalchemy import Connection, Engine, Executable, Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from privategpt.backends.gathering import Gathering
from privategpt.backends.state.errors import translated

NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})

READS_AT_ONCE = 8
"""Statements on one connection before it is somebody else's turn."""

_Read: TypeAlias = tuple[Executable, Mapping[str, Any]]
_Rows: TypeAlias = Sequence[Row[Any]]


class Reader(Protocol):
    """Runs statements, each by itself."""

    async def rows(self, statement: Executable, parameters: Mapping[str, Any]) -> _Rows:
        """What the statement finds. Raises `Unavailable`."""
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
        self._reads: Gathering[_Read, _Rows] = Gathering(
            self._read,
            threads=threads,
            at_most=READS_AT_ONCE,
            name="state store",
            wait_s=wait_s,
        )

    async def rows(self, statement: Executable, parameters: Mapping[str, Any]) -> _Rows:
        """See `Reader`."""
        with translated():
            return await self._reads.ask((statement, parameters))

    async def close(self) -> None:
        """See `Reader`."""
        self._reads.close()
        for connection in self._connections:
            connection.close()
        self._engine.dispose()

    def _read(self, reads: Sequence[_Read]) -> list[_Rows]:
        with translated():
            connection = self._connection()
            try:
                return [
                    connection.execute(statement, dict(parameters)).all()
                    for statement, parameters in reads
                ]
            except SQLAlchemyError:
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
