"""A client at the level of ASGI messages: it sees every piece as it is sent, and can leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Scope

TIMEOUT_S = 20.0


@dataclass
class Exchange:
    """One request under way. `sent` receives the app's messages, in order."""

    incoming: asyncio.Queue[Message] = field(default_factory=asyncio.Queue[Message])
    sent: asyncio.Queue[Message] = field(default_factory=asyncio.Queue[Message])
    task: asyncio.Task[None] | None = None
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reading.set()

    def body(self, data: bytes, *, more: bool = False) -> None:
        """Send a piece of the body."""
        self.incoming.put_nowait({"type": "http.request", "body": data, "more_body": more})

    def leave(self) -> None:
        """Close the connection."""
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def next_message(self) -> Message:
        """What the app sends next."""
        async with asyncio.timeout(TIMEOUT_S):
            return await self.sent.get()

    async def next_text(self) -> str:
        """The next piece of the response's body."""
        message = await self.next_message()
        assert message["type"] == "http.response.body", message
        return bytes(message["body"]).decode()

    async def status(self) -> int:
        """The status of the response, once it starts."""
        message = await self.next_message()
        assert message["type"] == "http.response.start", message
        return int(message["status"])

    async def rest(self) -> str:
        """The whole body from here."""
        text = b""
        while True:
            message = await self.next_message()
            text += message.get("body", b"")
            if not message.get("more_body", False):
                return bytes(text).decode()

    async def ended(self) -> None:
        """Wait until the app has returned."""
        assert self.task is not None
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.wait({self.task})


@asynccontextmanager
async def exchange(
    app: ASGIApp, path: str, *, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> AsyncGenerator[Exchange]:
    """Start a request whose body the test sends piece by piece."""
    under_way = Exchange()
    given = {"content-type": "application/json", **(headers or {})}
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("gpt.test", 80),
        "state": {},
    }

    async def send(message: Message) -> None:
        await under_way.reading.wait()
        under_way.sent.put_nowait(message)

    async def call() -> None:
        await app(scope, under_way.incoming.get, send)

    under_way.task = asyncio.create_task(call())
    try:
        yield under_way
    finally:
        under_way.task.cancel()
        await asyncio.gather(under_way.task, return_exceptions=True)


@asynccontextmanager
async def posted(app: ASGIApp, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Exchange]:
    """Start a request with a whole JSON body."""
    async with exchange(app, path) as under_way:
        under_way.body(json.dumps(body).encode())
        yield under_way


def chunks_of(text: str) -> list[Any]:
    """The JSON of every `data:` line of a stream, without the end marker."""
    lines = [line for line in text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines), lines
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]
