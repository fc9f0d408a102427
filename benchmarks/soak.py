"""Load that hurts, then rest: what a server still answers, and whether it gives everything back.

    python -m benchmarks.soak --seconds 120

Thirty clients leave large streams at once, two hundred chat, fifty read slowly, a hundred stream
at an engine's pace. /health is asked all the while, and so is a bare server that does nothing else.
The engine is scripted and in a process of its own, as are the servers and this: four on what
processors there are, so read the figures beside those of the bare server, and of the engine asked
directly, in the same run. The loads come twice: what the first leaves behind is what the memory
allocator keeps, what the second adds is a leak.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.types import Receive, Scope, Send

from tests.e2e.processes import Use, descriptors, family
from tests.e2e.stacks import ours

LEAVING, CHATTING, SLOW, PACED = 30, 200, 50, 100
TOKENS_PER_S = 20
CHAT_TOKENS = 64
ENDLESS = 1_000_000
CEILING_TOKENS = 200
SLOW_READ_BYTES = 512
PROBE_S = 0.05
HEALTHY_S = 0.2
GROWTH = 0.05


async def serve_engine() -> None:
    """The scripted engine: the last message says, as JSON, how many tokens and how fast."""
    open_now = 0

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b"/v1/chat/completions" in head:
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                open_now += 1
                try:
                    await _write_reply(writer, json.loads(body["messages"][-1]["content"]))
                finally:
                    open_now -= 1
            else:
                text = json.dumps({"data": [], "open": open_now}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _write_reply(writer: asyncio.StreamWriter, asked: dict[str, float]) -> None:
    loop = asyncio.get_running_loop()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    began, pace_s = loop.time(), asked.get("pace_s", 0.0)
    for number in range(int(asked["tokens"])):
        if pace_s:
            await asyncio.sleep(max(0.0, began + number * pace_s - loop.time()))
        elif number % 16 == 0:
            await asyncio.sleep(0)  # As many as ask are served at the same time.
        writer.write(_chunk({"content": "word "}, None))
        await writer.drain()
    writer.write(_chunk({}, "stop") + b"data: [DONE]\n\n")
    await writer.drain()


def _chunk(delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return b"data: " + json.dumps({**frame, "choices": [choice]}).encode() + b"\n\n"


async def serve_bare() -> None:
    """A server as ours is run, with an application that only says that it is there."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    bound = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    serving = asyncio.create_task(uvicorn.Server(config).serve(sockets=[bound]))
    print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    serving.cancel()


ROLES = {"engine": serve_engine, "bare": serve_bare}


@asynccontextmanager
async def role(name: str) -> AsyncGenerator[str]:
    """One of the `ROLES` in a process of its own; yields its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.soak", "--role", name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None  # noqa: S101 - both are pipes
    assert process.stdin is not None  # noqa: S101
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


@asynccontextmanager
async def streamed(
    url: str, tokens: int, pace_s: float = 0.0
) -> AsyncGenerator[AsyncIterator[bytes]]:
    """The lines of a streamed answer of so many tokens."""
    content = json.dumps({"tokens": tokens, "pace_s": pace_s})
    asked = {"messages": [{"role": "user", "content": content}], "stream": True}
    body = json.dumps(asked).encode()
    reader, writer = await _connect(url)
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    try:
        yield reader
    finally:
        writer.close()


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


async def _get(url: str, path: str) -> bytes:
    reader, writer = await _connect(url)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


async def tokens_of(url: str, tokens: int, pace_s: float = 0.0) -> int:
    """Read an answer to its end; how many tokens came."""
    async with streamed(url, tokens, pace_s) as lines:
        return sum([_tokens_in(line) async for line in lines])


def _tokens_in(line: bytes) -> int:
    return line.count(b'"word "')


async def leave_at_once(url: str, _: float) -> str:
    """Large streams, all left in the same moment."""
    async with contextlib.AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(streamed(url, ENDLESS)) for _ in range(LEAVING)]
        await asyncio.gather(*(anext(aiter(reader)) for reader in readers))
    return f"{LEAVING} left"


async def chat(url: str, _: float) -> str:
    """Many short chats at the same time."""
    asked = [tokens_of(url, CHAT_TOKENS, 1 / TOKENS_PER_S) for _ in range(CHATTING)]
    whole = sum(count == CHAT_TOKENS for count in await asyncio.gather(*asked))
    return f"{whole} of {CHATTING} whole"


async def read_slowly(url: str, seconds: float) -> str:
    """Clients that take a little now and then of streams that have no end."""

    async def crawl() -> int:
        async with streamed(url, ENDLESS) as lines:
            assert isinstance(lines, asyncio.StreamReader)  # noqa: S101
            until, taken = time.monotonic() + seconds, 0
            while time.monotonic() < until:
                taken += len(await lines.read(SLOW_READ_BYTES))
                await asyncio.sleep(0.5)
            return taken

    taken = await asyncio.gather(*(crawl() for _ in range(SLOW)))
    return f"{sum(taken) // SLOW} bytes each"


PHASES = {"leaving at once": leave_at_once, "chatting": chat, "reading slowly": read_slowly}


@dataclass(slots=True)
class Probe:
    """Asks /health again and again, and keeps how long each answer took."""

    url: str
    seconds: list[float] = field(default_factory=list[float])

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            began = time.monotonic()
            answered = await _get(self.url, "/health")
            self.seconds.append(time.monotonic() - began)
            if b" 200 " not in answered[:20]:
                self.seconds[-1] = float("inf")
            await asyncio.sleep(PROBE_S)

    def p99(self) -> float:
        """Of what was asked since the last call."""
        taken, self.seconds = sorted(self.seconds), []
        return taken[min(len(taken) - 1, len(taken) * 99 // 100)] if taken else float("nan")


@dataclass(frozen=True, slots=True)
class Holds:
    """What a server has at one moment."""

    resident_mb: float
    descriptors: int
    threads: int
    upstream: int

    def __str__(self) -> str:
        return (
            f"{self.resident_mb:.0f} MB resident, {self.descriptors} descriptors, "
            f"{self.threads} threads, {self.upstream} upstream streams"
        )


def own(pid: int) -> Use:
    """What that process alone uses."""
    return next(use for use in family(pid) if use.pid == pid)


async def holds(pid: int, engine_url: str) -> Holds:
    """What the server's own process has now, and how many streams the engine has open."""
    own_use = own(pid)
    body = (await _get(engine_url, "/v1/models")).rpartition(b"\r\n\r\n")[2]
    return Holds(
        resident_mb=own_use.resident_bytes / 1e6,
        descriptors=descriptors(pid),
        threads=own_use.threads,
        upstream=int(json.loads(body)["open"]),
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """What a hundred paced streams kept, from each one's first token on, and its wait for that."""

    kept: float
    first_token_s: float

    def __str__(self) -> str:
        return f"{self.kept:.1%} (first token after {self.first_token_s:.2f} s)"


async def pace_of(url: str, seconds: float) -> Pace:
    """The mean of a hundred streams at once, each paced by the engine."""
    tokens = int(seconds * TOKENS_PER_S)

    async def one() -> Pace:
        began = time.monotonic()
        seen: list[float] = []
        async with streamed(url, tokens, 1 / TOKENS_PER_S) as lines:
            async for line in lines:
                seen += [time.monotonic()] * _tokens_in(line)
        kept = (len(seen) - 1) / (seen[-1] - seen[0]) / TOKENS_PER_S
        return Pace(kept=kept, first_token_s=seen[0] - began)

    streams = await asyncio.gather(*(one() for _ in range(PACED)))
    return Pace(
        kept=sum(stream.kept for stream in streams) / PACED,
        first_token_s=sum(stream.first_token_s for stream in streams) / PACED,
    )


async def ceiling(url: str) -> float:
    """Tokens a second of a hundred streams together from an engine that does not pause."""
    began = time.monotonic()
    counts = await asyncio.gather(*(tokens_of(url, CEILING_TOKENS) for _ in range(PACED)))
    return sum(counts) / (time.monotonic() - began)


@dataclass(slots=True)
class Soak:
    """One run: a server, its engine, a bare server. `kept` is whether all promises were."""

    url: str
    pid: int
    engine_url: str
    bare_url: str
    kept: bool = True

    async def loads(self, share_s: float) -> Holds:
        """Every load once, /health asked meanwhile; what the server holds at the end."""
        ours_probe, bare_probe = Probe(self.url), Probe(self.bare_url)
        probing = [asyncio.create_task(probe.run()) for probe in (ours_probe, bare_probe)]
        for name, phase in PHASES.items():
            told = await phase(self.url, share_s)
            p99_s, bare_s = ours_probe.p99(), bare_probe.p99()
            # What a bare server takes as well is the machine's doing.
            self.kept = self.kept and p99_s <= HEALTHY_S + bare_s
            print(
                f"{name:15} /health p99 {p99_s * 1000:.0f} ms, bare {bare_s * 1000:.0f} ms; "
                f"{told}; {await self.holds()}",
                flush=True,
            )
        for task in probing:
            task.cancel()
        return await self.holds()

    async def memory(self, share_s: float, idle_s: float) -> None:
        """The loads twice, with a rest behind each."""
        resident: list[float] = []
        for round_ in ("first", "second"):
            await self.loads(share_s)
            await asyncio.sleep(idle_s)
            now = await self.holds()
            resident.append(now.resident_mb)
            print(f"{round_} rest     {now}", flush=True)
        self.kept = self.kept and resident[1] <= resident[0] * (1 + GROWTH)

    async def pace(self, share_s: float) -> None:
        """What is kept of the engine's pace, and how fast it goes without one."""
        paced, direct_pace = (
            await pace_of(self.url, share_s),
            await pace_of(self.engine_url, share_s),
        )
        self.kept = self.kept and paced.kept >= 0.95
        print(f"pace kept       {paced} through the server, {direct_pace} direct")
        before_s = own(self.pid).processor_s
        through, direct = await ceiling(self.url), await ceiling(self.engine_url)
        each_us = (own(self.pid).processor_s - before_s) / (PACED * CEILING_TOKENS) * 1e6
        print(f"ceiling         {through:.0f} tokens/s, {direct:.0f} direct", flush=True)
        print(f"                {each_us:.0f} us of the server's processor time for a token")

    async def holds(self) -> Holds:
        """See `holds`."""
        return await holds(self.pid, self.engine_url)


async def soak(seconds: float, idle_s: float) -> bool:
    """Run everything and print it; whether all that is promised was kept."""
    share_s = max(5.0, seconds / (2 * len(PHASES) + 3))
    with tempfile.TemporaryDirectory() as folder:
        async with role("engine") as engine_url, role("bare") as bare_url:
            server = ours(Path(folder) / "data", f"{engine_url}/v1")
            url, process = await asyncio.to_thread(server.__enter__)
            try:
                run = Soak(url, process.pid, engine_url, bare_url)
                await asyncio.gather(*(tokens_of(url, 5) for _ in range(20)))
                await asyncio.sleep(2)
                print(f"before          {await run.holds()}", flush=True)
                await run.memory(share_s, idle_s)
                await run.pace(share_s)
            finally:
                await asyncio.to_thread(server.__exit__, None, None, None)
    return run.kept


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="for all loads together")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds of rest after them")
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        asyncio.run(ROLES[options.role]())
    elif not asyncio.run(soak(options.seconds, options.idle)):
        sys.exit("/health took 200 ms longer than bare, memory grew, or the pace was not kept")


if __name__ == "__main__":
    main()
