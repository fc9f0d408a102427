"""As little HTTP client as there can be, since it runs on the processors that are measured.

A client library takes about a millisecond for a request, which is half of what some rows allow.
The same client asks our server and the bare engine's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 300.0
BUFFER_BYTES = 2**20
BOUNDARY = "benchmark-boundary"


class RequestFailed(Exception):
    """An answer that is not the one that was to be measured."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """What a stream sent: its `data:` lines' objects and when they came, from the request on."""

    first_byte_s: float
    chunks: tuple[tuple[float, Mapping[str, Any]], ...]

    @property
    def first_text_s(self) -> float:
        """When the first words came."""
        for seconds, chunk in self.chunks:
            choices: list[dict[str, Any]] = chunk.get("choices") or []
            if choices and choices[0]["delta"].get("content"):
                return seconds
        raise RequestFailed("The stream has no text")

    @property
    def prompt_tokens(self) -> int:
        """By the engine's own count."""
        for _, chunk in reversed(self.chunks):
            if usage := chunk.get("usage"):
                return int(usage["prompt_tokens"])
        raise RequestFailed("The stream has no usage")


class Connection:
    """One connection, kept alive, one request at a time."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        host: str,
        api_key: str | None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host
        self._key = f"Authorization: Bearer {api_key}\r\n" if api_key else ""

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer's JSON."""
        return json.loads(await self.post_bytes(path, json.dumps(body).encode()))

    async def post_bytes(
        self, path: str, body: bytes, *, content_type: str = "application/json"
    ) -> bytes:
        """The answer's body as it came."""
        return await self._request("POST", path, body, content_type)

    async def get(self, path: str) -> bytes:
        """The answer's body as it came."""
        return await self._request("GET", path, b"", "application/json")

    async def delete(self, path: str) -> None:
        """Return when it is gone."""
        await self._request("DELETE", path, b"", "application/json")

    async def upload(self, path: str, name: str, content: bytes) -> Any:
        """The JSON that answers a form with one file."""
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"'
            "\r\n\r\n"
        )
        form = head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
        label = f"multipart/form-data; boundary={BOUNDARY}"
        return json.loads(await self.post_bytes(path, form, content_type=label))

    async def stream(self, path: str, body: Mapping[str, Any]) -> Streamed:
        """Read a stream of events to its end."""
        data = json.dumps(body).encode()
        async with asyncio.timeout(TIMEOUT_S):
            started = time.perf_counter()
            self._send("POST", path, data, "application/json")
            arrived: list[tuple[float, bytes]] = []
            async for piece in self._body(await self._head()):
                arrived.append((time.perf_counter() - started, piece))  # noqa: PERF401 - timed
        chunks = [
            (seconds, json.loads(line.removeprefix(b"data: ")))
            for seconds, piece in arrived
            for line in piece.split(b"\n\n")
            if line.startswith(b"data: {")
        ]
        return Streamed(first_byte_s=arrived[0][0], chunks=tuple(chunks))

    async def _request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        async with asyncio.timeout(TIMEOUT_S):
            self._send(method, path, body, content_type)
            headers = await self._head()
            return b"".join([piece async for piece in self._body(headers)])

    def _send(self, method: str, path: str, body: bytes, content_type: str) -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n{self._key}"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)

    async def _head(self) -> Mapping[str, str]:
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        if status.split()[1] != "200":
            body = b"".join([piece async for piece in self._body(headers)])
            raise RequestFailed(f"{status}: {body[:500]!r}")
        return headers

    async def _body(self, headers: Mapping[str, str]) -> AsyncGenerator[bytes]:
        if headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(headers["content-length"]))
            return
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)


@asynccontextmanager
async def connections(url: str, count: int) -> AsyncGenerator[list[Connection]]:
    """That many to one server, for as many clients."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connection(url)) for _ in range(count)]


@asynccontextmanager
async def connection(url: str, *, api_key: str | None = None) -> AsyncGenerator[Connection]:
    """Connect to a server of this machine. A turn opens its own, before its clock starts: servers
    close a connection that was idle while the others had their turns.
    """
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=BUFFER_BYTES)
    try:
        yield Connection(reader, writer, host=parts.netloc, api_key=api_key)
    finally:
        writer.close()
