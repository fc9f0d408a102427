"""A server of ours in a process of its own, as an operator starts it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import RequestFailed, connection

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.02
LLM_CHILD = "llama_child"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that is ready; `ready_s` counts from the start of its process."""

    url: str
    process_id: int
    ready_s: float

    def resident_mb(self, *, children: bool, kind: str = "VmRSS") -> float:
        """Resident memory now, the LLM's child never counted; the other children on demand.

        `kind` is the kernel's: RssAnon leaves out pages of files, which it can drop at any time.
        """
        processes = [self.process_id]
        if children:
            processes += [
                child for child in _descendants(self.process_id) if LLM_CHILD not in _command(child)
            ]
        return sum(_resident_bytes(process, kind) for process in processes) / 1e6


@asynccontextmanager
async def running_server(data_dir: Path) -> AsyncGenerator[RunningServer]:
    """Start a server with the settings of settings.yaml over `data_dir`, and stop it at the end."""
    port = _free_port()
    options = ["--host", "127.0.0.1", "--port", str(port), "--data-dir", str(data_dir)]
    log = data_dir.with_suffix(".log")
    with log.open("wb") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(  # noqa: ASYNC220 - a millisecond, and counted
            [sys.executable, "-m", "privategpt", "serve", *options],
            env={name: value for name, value in os.environ.items() if "PRIVATEGPT_" not in name},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        await _wait_until_ready(url, process, log=log)
        yield RunningServer(url, process.pid, time.perf_counter() - started)
    finally:
        process.terminate()
        await asyncio.to_thread(_wait, process)


async def _wait_until_ready(url: str, process: subprocess.Popen[bytes], *, log: Path) -> None:
    deadline = time.perf_counter() + START_TIMEOUT_S
    while process.poll() is None and time.perf_counter() < deadline:
        try:
            async with connection(url) as asked:
                await asked.get("/health/ready")
        except (ConnectionError, asyncio.IncompleteReadError, RequestFailed):
            await asyncio.sleep(POLL_S)
        else:
            return
    tail = await asyncio.to_thread(log.read_text, errors="replace")
    raise RequestFailed(f"The server did not become ready:\n{tail[-2000:]}")


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _descendants(process_id: int) -> Iterator[int]:
    """The processes below, as the kernel lists them; none where it does not (Linux does)."""
    for listed in Path(f"/proc/{process_id}/task").glob("*/children"):
        for child in map(int, listed.read_text().split()):
            yield child
            yield from _descendants(child)


def _command(process_id: int) -> str:
    return Path(f"/proc/{process_id}/cmdline").read_text(errors="replace")


def _resident_bytes(process_id: int, kind: str) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise RequestFailed(f"The kernel tells no resident memory of process {process_id}")
