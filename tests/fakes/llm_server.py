"""A scripted HTTP server on loopback: an LLM server whose every byte the test decides.

    async with ScriptedServer() as server:
        server.on("POST /v1/chat/completions", sse(text_chunk("Hi"), finish_chunk()))

It speaks HTTP/1.1 over a bare socket, so that replies can be cut anywhere, trickle byte by byte,
stop half-way, or be no HTTP at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self, TypeAlias

Json: TypeAlias = Mapping[str, Any]
CHAT = "POST /v1/chat/completions"


class End(Enum):
    """What the server does after the last byte of a reply."""

    KEEP = auto()
    """Wait for the next request on the connection."""
    CLOSE = auto()
    """Close in an orderly way."""
    RESET = auto()
    """Drop the connection (RST)."""
    HANG = auto()
    """Send nothing more and keep the connection open."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes of one reply, and how they go out.

    A gate holds the reply back until the test sets it; it stands before the piece at its index.
    `packet` is the number of bytes per write; `cut_at` ends the reply after so many bytes.
    """

    pieces: tuple[bytes, ...]
    end: End = End.KEEP
    packet: int | None = None
    cut_at: int | None = None
    gates: Mapping[int, asyncio.Event] = field(default_factory=dict[int, asyncio.Event])

    @property
    def size(self) -> int:
        """All bytes, head included."""
        return sum(len(piece) for piece in self.pieces)

    def with_end(self, end: End) -> Reply:
        """The same bytes, ended otherwise."""
        return replace(self, end=end)

    def cut(self, at: int, end: End = End.CLOSE) -> Reply:
        """Only the first `at` bytes."""
        return replace(self, cut_at=at, end=end)

    def in_packets(self, size: int) -> Reply:
        """The same bytes, `size` per write."""
        return replace(self, packet=size)

    def held_at(self, piece: int, gate: asyncio.Event) -> Reply:
        """Wait for `gate` before that piece (0 is the head)."""
        return replace(self, gates={**self.gates, piece: gate})

    def without_last(self, count: int) -> Reply:
        """Leave out the last pieces."""
        return replace(self, pieces=self.pieces[: len(self.pieces) - count])


def sse(*chunks: Json | str, done: bool = True, head: bytes | None = None) -> Reply:
    """A stream of events in chunked encoding, one piece for each; a string is a raw event."""
    events = [
        chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
        for chunk in chunks
    ]
    if done:
        events.append("data: [DONE]\n\n")
    default = _head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
    body = [_http_chunk(event.encode()) for event in events]
    return Reply((default if head is None else head, *body, b"0\r\n\r\n"))


def whole(status: int, body: Json | str = "", *, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply in one piece: JSON, or a string as HTML."""
    content_type = "text/html" if isinstance(body, str) else "application/json"
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    fields = {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}
    return Reply((_head(status, fields), data))


def delta_chunk(delta: Json | None, *, finish: str | None = None, **extra: Any) -> Json:
    """A chat.completion.chunk with that delta."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **extra}
    return {**_FRAME, "choices": [choice]}


def text_chunk(text: str) -> Json:
    """A chunk of text."""
    return delta_chunk({"content": text})


def finish_chunk(reason: str = "stop") -> Json:
    """The chunk that ends the reply."""
    return delta_chunk({}, finish=reason)


def usage_chunk(prompt: int = 11, completion: int = 3, **details: Any) -> Json:
    """The chunk with the engine's count."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {**_FRAME, "choices": [], "usage": {**counts, **details}}


def answer(*texts: str, finish: str = "stop") -> Reply:
    """A whole, well-formed streamed answer."""
    role = delta_chunk({"role": "assistant", "content": None})
    return sse(role, *map(text_chunk, texts), finish_chunk(finish), usage_chunk())


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came in."""

    route: str
    headers: Mapping[str, str]
    body: Any


Answering: TypeAlias = Callable[[Received], Reply]


class ScriptedServer:
    """Serves replies by "METHOD /path"; of several for one route each is used once, the last on.

    `requests` is what came in. `left` is set when a client closes while a reply is under way or
    held back; a new event in its place hears of requests only that came after it.
    """

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.left = asyncio.Event()
        self.arrived = asyncio.Event()
        self.connections = 0
        self._replies: dict[str, list[Reply | Answering]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """What an OpenAI client is given."""
        return f"http://127.0.0.1:{self.port}/v1"

    def on(self, route: str, *replies: Reply | Answering) -> Self:
        """Set the replies of a route; a function makes each from its request."""
        self._replies[route] = list(replies)
        return self

    def received(self, route: str = CHAT) -> list[Received]:
        """The requests of a route."""
        return [request for request in self.requests if request.route == route]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def idle(self) -> None:
        """Wait until no connection is open."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._converse(_Connection(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: _Connection) -> None:
        self.connections += 1
        try:
            while (request := await connection.receive()) is not None:
                self.requests.append(request)
                left = self.left
                self.arrived.set()
                reply = self._reply_to(request)
                if not await connection.send(reply):
                    left.set()
                    return
                if reply.end is not End.KEEP:
                    return
        finally:
            self.connections -= 1
            connection.close()

    def _reply_to(self, request: Received) -> Reply:
        replies = self._replies.get(request.route)
        if not replies:
            return whole(404, {"error": {"message": "not found", "type": "not_found_error"}})
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return reply if isinstance(reply, Reply) else reply(request)


class _Connection:
    """One client's connection, which is read while a reply is written so that a close is seen."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ahead = b""

    async def receive(self) -> Received | None:
        """The next request, None when the client has closed."""
        try:
            head = self._ahead + await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self._ahead = b""
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (ln.partition(":") for ln in lines)
        }
        try:
            data = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except asyncio.IncompleteReadError:  # the client left in the middle of its request
            return None
        return Received(f"{method} {path}", headers, json.loads(data) if data else None)

    async def send(self, reply: Reply) -> bool:
        """Whether the reply went out before the client closed."""
        watching = asyncio.ensure_future(self._watch())
        sending = asyncio.ensure_future(self._send(reply))
        await asyncio.wait({watching, sending}, return_when=asyncio.FIRST_COMPLETED)
        gone = not sending.done()
        for task in (watching, sending):
            task.cancel()
        await asyncio.gather(watching, sending, return_exceptions=True)
        if reply.end is End.RESET and not gone:
            linger = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
        return not gone

    def close(self) -> None:
        """Close at once."""
        self._writer.close()

    async def _watch(self) -> None:
        """Return when the client closes."""
        while True:
            with contextlib.suppress(ConnectionError):
                if data := await self._reader.read(1):
                    self._ahead += data
                    await asyncio.Event().wait()  # the next request: it will be received later
            return

    async def _send(self, reply: Reply) -> None:
        left = reply.size if reply.cut_at is None else reply.cut_at
        with contextlib.suppress(ConnectionError):
            for index, piece in enumerate(reply.pieces):
                if gate := reply.gates.get(index):
                    await gate.wait()
                for packet in _packets(piece[:left], reply.packet):
                    self._writer.write(packet)
                    await self._writer.drain()
                    await asyncio.sleep(0)
                left -= len(piece[:left])
        if reply.end is End.HANG:
            await asyncio.Event().wait()


_FRAME: Json = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "scripted",
    "system_fingerprint": "fp_1",
}


def _packets(data: bytes, size: int | None) -> Sequence[bytes]:
    step = size or max(1, len(data))
    return [data[start : start + step] for start in range(0, len(data), step)]


def _http_chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {v}" for name, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
