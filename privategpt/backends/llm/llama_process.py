"""Starts the child process that runs llama.cpp's server, and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from privategpt.backends.llm import llama_child
from privategpt.domain.errors import EngineUnavailable

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 300.0
"""Large models load for minutes from a slow disk."""
STOP_TIMEOUT_S = 3.0
LOG_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class LlamaOptions:
    """What to load and how; `context_tokens` is each slot's own window.

    `threads` write the reply, `prompt_threads` read the prompt.
    """

    model_path: Path
    alias: str
    context_tokens: int
    slots: int
    threads: int
    prompt_threads: int


class LlamaProcess:
    """A running llama.cpp server on a free port of loopback, behind a key of its own."""

    def __init__(
        self, process: asyncio.subprocess.Process, *, api_key: str, log_tail: deque[str]
    ) -> None:
        self._process = process
        self._log_tail = log_tail
        self._log_reader = asyncio.ensure_future(_read_log(process, log_tail))
        self.api_key = api_key
        self.url = ""

    @property
    def process_id(self) -> int:
        """The child's process id."""
        return self._process.pid

    async def wait(self) -> int:
        """Return the exit status once the child has ended (negative: the signal)."""
        return await self._process.wait()

    async def wait_until_listening(self, options: LlamaOptions) -> None:
        """Hand over the configuration and wait for the address.

        Raises `EngineUnavailable` if the child ends before it listens.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - both are pipes
        assert stdout is not None  # noqa: S101
        # The key goes through the pipe: arguments and environment can be read by other users.
        config = {
            "model_path": str(options.model_path),
            "alias": options.alias,
            "api_key": self.api_key,
            "slots": options.slots,
            "context_tokens": options.context_tokens,
            "threads": options.threads,
            "prompt_threads": options.prompt_threads,
        }
        with contextlib.suppress(ConnectionError):  # then there is no address either
            stdin.write(json.dumps(config).encode() + b"\n")
            await stdin.drain()
        line = await stdout.readline()
        if not line:
            await self._process.wait()
            await self._log_reader
            logger.error("The embedded engine did not start: %s", " | ".join(self._log_tail))
            raise EngineUnavailable("The embedded engine did not start; its log says why")
        self.url = json.loads(line)["url"]

    async def stop(self) -> None:
        """End the child; returns when it is gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await self._log_reader


async def start_process(
    options: LlamaOptions, *, program: Path | None = None, start_timeout_s: float = START_TIMEOUT_S
) -> LlamaProcess:
    """Start a child and wait until it listens; raises `EngineUnavailable` if it does not.

    `program` is the script to run; only tests run another than ours.
    """
    process = await _spawn(program or Path(llama_child.__file__))
    started = LlamaProcess(
        process, api_key=secrets.token_hex(16), log_tail=deque(maxlen=LOG_TAIL_LINES)
    )
    try:
        async with asyncio.timeout(start_timeout_s):
            await started.wait_until_listening(options)
    except TimeoutError as error:
        await started.stop()
        raise EngineUnavailable(
            f"The embedded engine was not ready after {start_timeout_s:g} s"
        ) from error
    except (EngineUnavailable, asyncio.CancelledError):
        await started.stop()
        raise
    return started


async def _spawn(program: Path) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # a file named like a module in the working folder is not ours to run
            str(program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal goes to the whole group: the engine must live through our grace.
            start_new_session=True,
        )
    except OSError as error:
        raise EngineUnavailable(
            f"No process can be started for the embedded engine: {error.strerror}"
        ) from error


async def _read_log(process: asyncio.subprocess.Process, tail: deque[str]) -> None:
    """Pass llama.cpp's log on at DEBUG: it has a line per request, and may quote prompts."""
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    while data := await process.stderr.read(65_536):
        for line in data.decode("utf-8", "replace").splitlines():
            tail.append(line)
            logger.debug("llama.cpp: %s", line)
