"""Two servers to hold against one bar: ours, and the plain one of `tests/fakes/plain_app.py`."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import httpx

from tests.e2e.server import running_server, untraced
from tests.fakes.llm_server import ScriptedServer

PLAIN_MEMORY_BYTES = 2_000_000_000
"""The plain server may not take the machine down with it."""
START_S = 30.0

Server: TypeAlias = "tuple[str, subprocess.Popen[str]]"
Launch: TypeAlias = Callable[..., AbstractContextManager[Server]]
"""Starts a server: its data folder and its engine in, its base URL and process out."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running server, its folder, and the engine behind it."""

    url: str
    process: subprocess.Popen[str]
    data_dir: Path
    engine: ScriptedServer

    @property
    def address(self) -> tuple[str, int]:
        """Where to connect."""
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def client(self, timeout_s: float = 60.0) -> httpx.AsyncClient:
        """An HTTP client of the server."""
        return httpx.AsyncClient(base_url=self.url, timeout=timeout_s, trust_env=False)


@contextmanager
def ours(data_dir: Path, engine_url: str, **environ: str) -> Generator[Server]:
    """`privategpt serve` with bundled embeddings and the engine at that address."""
    settings = {
        "PRIVATEGPT_LLM__MODE": "openai",
        "PRIVATEGPT_LLM__BASE_URL": engine_url,
        "PRIVATEGPT_LLM__MODEL": "scripted",
        "PRIVATEGPT_LLM__CONTEXT_TOKENS": "8192",
        "PRIVATEGPT_SERVER__SHUTDOWN_GRACE_S": "1",
        "PRIVATEGPT_SERVER__BODY_GRACE_S": "1",
    }
    with running_server(data_dir, **(settings | environ)) as server:
        yield server.base_url, server.process


@contextmanager
def plain(data_dir: Path, engine_url: str, **environ: str) -> Generator[Server]:
    """The plain server, within bounds of memory."""
    port = _free_port()
    limits = (PLAIN_MEMORY_BYTES, PLAIN_MEMORY_BYTES)
    with subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "tests.fakes.plain_app:app", "--port", str(port)],
        env={
            **untraced(os.environ),
            "PLAIN_ENGINE": engine_url,
            "PLAIN_FOLDER": str(data_dir),
            **environ,
        },
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_AS, limits)
        try:
            _wait_until_listening(port)
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.kill()  # A polite signal would wait for its open streams, for ever.


@asynccontextmanager
async def stack(
    launch: Launch, data_dir: Path, engine: ScriptedServer, **environ: str
) -> AsyncGenerator[Stack]:
    """A server started and stopped beside the loop, on which its engine answers meanwhile."""
    server = launch(data_dir, engine.base_url, **environ)
    url, process = await asyncio.to_thread(server.__enter__)
    try:
        yield Stack(url=url, process=process, data_dir=data_dir, engine=engine)
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_listening(port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > deadline:
            raise TimeoutError("The plain server did not start")
        time.sleep(0.05)
