"""A TCP proxy on loopback that spoils what comes back: cuts it, holds it, or lets it trickle.

    async with FaultProxy(upstream_port) as proxy:
        proxy.fault = Fault(after=200, then=Then.RESET)

It knows nothing of HTTP, so that every byte of an answer can be the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import Self

_READ_BYTES = 65_536


class Then(Enum):
    """What happens after the last byte that is let through."""

    CLOSE = auto()
    """An orderly end of the answer (FIN)."""
    RESET = auto()
    """The connection is dropped (RST)."""
    HANG = auto()
    """Nothing: the connection stays open, half-open to the client."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Let through `after` bytes of an answer (None: all), `packet` at a time (None: as they come).

    `accept` False takes the connection and reads nothing, as a machine does that hangs.
    """

    after: int | None = None
    then: Then = Then.CLOSE
    packet: int | None = None
    accept: bool = True


HEALTHY = Fault()


class FaultProxy:
    """Between a client and `127.0.0.1:upstream`; `fault` and `upstream` hold for connections made
    from now on.
    """

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.fault = HEALTHY
        self.port = 0

    @property
    def base_url(self) -> str:
        """What an OpenAI client is given."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.refuse()

    async def listen(self) -> None:
        """Take connections, on the same port as before."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Drop every connection and take no more."""
        if self._server is not None:
            self._server.close()
        await self.drop()

    async def drop(self) -> None:
        """Drop every connection, idle ones too."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fault = self.fault
        try:
            if not fault.accept:
                await asyncio.Event().wait()
            there, upstream = await asyncio.open_connection("127.0.0.1", self.upstream)
            asking = asyncio.ensure_future(_copy(reader, upstream, HEALTHY))
            answering = asyncio.ensure_future(_copy(there, writer, fault))
            try:
                await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (asking, answering):
                    task.cancel()
                await asyncio.gather(asking, answering, return_exceptions=True)
                upstream.close()
        except ConnectionError:
            pass
        finally:
            if fault.then is Then.RESET:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, linger
                )
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault) -> None:
    left = fault.after
    with contextlib.suppress(ConnectionError):
        while left != 0 and (data := await reader.read(_READ_BYTES)):
            data = data if left is None else data[:left]
            left = None if left is None else left - len(data)
            step = fault.packet or len(data)
            for start in range(0, len(data), step):
                writer.write(data[start : start + step])
                await writer.drain()
                await asyncio.sleep(0)
    if left == 0 and fault.then is Then.HANG:
        await asyncio.Event().wait()
