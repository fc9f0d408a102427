"""Search engines, a quota and scripted HTTP servers for the tests of web search."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from privategpt.domain.errors import Unavailable
from privategpt.domain.websearch import WebResult

LISBON = (
    WebResult(
        "Lisbon weather: weekend outlook",
        "https://weather.example/lisbon/weekend",
        "Saturday in Lisbon is forecast to be sunny with a high near 24 °C.",
    ),
    WebResult(
        "Sunday forecast for Lisbon",
        "https://forecast.example/pt/lisbon/sunday",
        "Sunday turns cloudy, with a chance of light rain in the afternoon.",
    ),
    WebResult(
        "Portugal: the week ahead",
        "https://news.example/portugal/weather-week",
        "Storms are expected in the Azores by Wednesday.",
    ),
)
FORECAST = (
    "Saturday in Lisbon is forecast to be sunny with a high near 24 °C [1]. "
    "Sunday turns cloudy, with a chance of light rain in the afternoon [2]."
)
"""What the search of seed 003 found, in titles and addresses, and its answer, word for word."""


class FakeQuota:
    """A `Quota` in memory."""

    def __init__(self) -> None:
        self._used: Counter[tuple[str, date]] = Counter()

    async def reserve(self, tenant: str, day: date, *, limit: int) -> bool:
        if self._used[tenant, day] >= limit:
            return False
        self._used[tenant, day] += 1
        return True

    async def refund(self, tenant: str, day: date) -> None:
        self._used[tenant, day] = max(0, self._used[tenant, day] - 1)

    async def used(self, tenant: str, day: date) -> int:
        return self._used[tenant, day]


class FakeSearchEngine:
    """A `SearchEngine` that finds `found`, or raises it, or waits for ever where it is None."""

    name = "fake"

    def __init__(self, found: Sequence[WebResult] | Unavailable | None = ()) -> None:
        self.found = found
        self.queries: list[str] = []
        self.asked = asyncio.Event()
        self.closed = False

    async def search(self, query: str, *, limit: int) -> list[WebResult]:
        self.queries.append(query)
        self.asked.set()
        if self.found is None:
            await asyncio.Event().wait()
            raise AssertionError
        if isinstance(self.found, Unavailable):
            raise self.found
        return list(self.found[:limit])

    async def close(self) -> None:
        self.closed = True


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """What a loopback server was asked; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return _first_values(urlsplit(self.target).query)

    @property
    def form(self) -> dict[str, str]:
        return _first_values(self.body.decode())

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def _first_values(encoded: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(encoded, keep_blank_values=True).items()}


Answer = Callable[[SeenRequest, asyncio.StreamWriter], Coroutine[None, None, None]]
"""Writes a whole HTTP response, or whatever a broken server writes."""


def reply(
    body: bytes | Mapping[str, Any] | Sequence[Any],
    *,
    status: str = "200 OK",
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An answer with that body (objects as JSON), in one piece."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def answer(_request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        lines = {
            "Content-Type": media_type,
            "Content-Length": str(len(payload)),
            **(headers or {}),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + payload)
        await writer.drain()

    return answer


def raw(*pieces: bytes) -> Answer:
    """These bytes, and then the connection is closed."""

    async def answer(_request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()

    return answer


def endless(piece: bytes = b" " * 1024) -> Answer:
    """A body that never ends, as fast as the reader takes it."""

    async def answer(_request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(piece)
            await writer.drain()

    return answer


def silence(*pieces: bytes) -> Answer:
    """These bytes, and then nothing, with the connection open."""

    async def answer(_request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
        await writer.drain()
        await asyncio.Event().wait()

    return answer


class _Reader(asyncio.StreamReader):
    """Tells when the client has left, without reading ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


@dataclass(slots=True)
class LoopbackServer:
    """A server that gives every request the same answer and remembers what it was asked."""

    url: str
    answer: Answer
    requests: list[SeenRequest] = field(default_factory=list[SeenRequest])
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    departures: asyncio.Event = field(default_factory=asyncio.Event)
    serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _Reader)
        self.connections += 1
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        try:
            while not writer.is_closing():
                request = await _read_request(reader)
                self.requests.append(request)
                self.asked.set()
                if not await _unless_gone(reader, self.answer(request, writer)):
                    self.departures.set()
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the server is closed at the end of the test
        finally:
            writer.close()


async def _unless_gone(reader: _Reader, answering: Coroutine[None, None, None]) -> bool:
    """Run `answering` to its end, or until the client leaves: then False."""
    writing, leaving = asyncio.create_task(answering), asyncio.create_task(reader.gone.wait())
    try:
        await asyncio.wait([writing, leaving], return_when=asyncio.FIRST_COMPLETED)
        return writing.done() and writing.exception() is None
    finally:
        writing.cancel()
        leaving.cancel()
        await asyncio.gather(writing, leaving, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> SeenRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, value in (line.split(":", 1) for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return SeenRequest(method=method, target=target, headers=headers, body=body)


@asynccontextmanager
async def loopback_server(answer: Answer) -> AsyncGenerator[LoopbackServer]:
    """A server on a free port; its `answer` can be changed while it runs."""
    server = LoopbackServer(url="", answer=answer)
    listening = await asyncio.get_running_loop().create_server(
        lambda: asyncio.StreamReaderProtocol(_Reader(), server.serve), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listening.close()
        for task in server.serving:
            task.cancel()
        await asyncio.gather(*server.serving)
