"""The `Parser` of the server: long-lived worker processes that files are read in.

A file may make its reader loop, swell or crash. Then its worker is killed and replaced, the
upload is refused with the reason, and nothing else notices.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import cast

from privategpt.backends.parsers.ocr import OcrOptions
from privategpt.backends.parsers.transfer import (
    PREFIX,
    Frame,
    decode_frame,
    document_of_frame,
    error_of_frame,
    file_of_frames,
    frame_of_upload,
)
from privategpt.domain.documents import ParsedDocument, ParsedFile
from privategpt.domain.errors import (
    CorruptFile,
    EngineUnavailable,
    FileExceedsBounds,
    UnreadableFile,
    UnsupportedFileType,
)
from privategpt.domain.ports import Upload

_SOURCE_FOLDER = Path(__file__).parents[3]
_MODULE = "privategpt.backends.parsers.worker"
_STARTS = 5
"""Workers that may turn out to have ended before one file is given up."""

_OUT_OF_MEMORY = (signal.SIGKILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
"""How native code ends that is refused memory, and how the kernel ends what takes too much."""


class WorkerGone(Exception):
    """The worker ended before it had answered; `begun` where it had taken up the file."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class Worker:
    """One process, reading one file at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._stdin = cast("asyncio.StreamWriter", process.stdin)
        self._stdout = cast("asyncio.StreamReader", process.stdout)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self._process.returncode

    async def read(self, upload: Upload, *, ocr_page: Callable[[], None]) -> ParsedFile:
        """Have the file read. Raises what the worker answers, and `WorkerGone`.

        `ocr_page` is called for every page that is about to be read by OCR.
        """
        begun = False
        try:
            self._stdin.write(frame_of_upload(upload).encode())
            await self._stdin.drain()
            begun = "begun" in (await self._next_frame()).header
            return await self._receive(ocr_page)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise WorkerGone(begun=begun) from error

    async def ready(self) -> None:
        """Wait until it can take a file. Raises `WorkerGone` where it never can."""
        try:
            await self._next_frame()
        except asyncio.IncompleteReadError as error:
            raise WorkerGone(begun=False) from error
        except BaseException:
            self.kill()
            raise

    async def _receive(self, ocr_page: Callable[[], None]) -> ParsedFile:
        documents: list[ParsedDocument] = []
        while True:
            frame = await self._next_frame()
            if "ocr_page" in frame.header:
                ocr_page()
                continue
            if "error" in frame.header:
                raise error_of_frame(frame)
            if "media_type" in frame.header:
                return file_of_frames(documents, frame)
            documents.append(document_of_frame(frame))

    async def _next_frame(self) -> Frame:
        prefix = await self._stdout.readexactly(PREFIX.size)
        header_bytes, text_bytes = PREFIX.unpack(prefix)
        header = await self._stdout.readexactly(header_bytes)
        return decode_frame(header, await self._stdout.readexactly(text_bytes))

    def kill(self) -> None:
        """End it now, whatever it does, and what it has started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> int:
        """Wait until it has ended; how."""
        return await self._process.wait()


class WorkerParser:
    """Reads files in at most `workers` processes at once.

    `timeout_s` and `memory_bytes` are what one file may take, and every page that is read by
    OCR may take its own time on top. A `parse` that is cancelled kills the worker it had. Belongs
    to the event loop that first used it.
    """

    def __init__(
        self,
        *,
        workers: int,
        timeout_s: float,
        memory_bytes: int,
        max_pages: int,
        ocr: OcrOptions | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._ocr = ocr
        self._max_pages = max_pages
        self._arguments = ["--memory-bytes", str(memory_bytes), "--max-pages", str(max_pages)]
        self._arguments += [] if ocr is None else _ocr_arguments(ocr)
        self._slots = asyncio.Semaphore(workers)
        self._idle: list[Worker] = []
        self._living: set[Worker] = set()
        self._closed = False

    @property
    def living(self) -> tuple[Worker, ...]:
        """The workers that have not ended."""
        return tuple(worker for worker in self._living if worker.returncode is None)

    async def warm_up(self) -> None:
        """Start a worker ahead of the first file. Raises `EngineUnavailable` if none starts."""
        if not self._idle and not self._closed:
            try:
                self._idle.append(await self._start())
            except WorkerGone as error:
                raise EngineUnavailable("The parser's process does not start") from error

    async def parse(self, upload: Upload) -> ParsedFile:
        """Read the file. Raises `UnreadableFile`, each kind its own, and `UnsupportedFileType`."""
        async with self._slots:
            for _ in range(_STARTS):
                try:
                    return await self._read(upload, self._take_idle() or await self._start())
                except WorkerGone:
                    continue  # it had ended while it was idle, or before it was ready
            raise EngineUnavailable("The parser's process does not start")

    async def _read(self, upload: Upload, worker: Worker) -> ParsedFile:
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                parsed = await worker.read(upload, ocr_page=self._more_time(limit))
        except (UnreadableFile, UnsupportedFileType):
            self._idle.append(worker)
            raise
        except TimeoutError as error:
            worker.kill()
            raise FileExceedsBounds(
                f"Reading {upload.name!r} took longer than {self._timeout_s:g} seconds"
            ) from error
        except WorkerGone as error:
            if self._closed:
                raise EngineUnavailable("The parser has been stopped") from error
            if error.begun:
                raise _explain(upload.name, await worker.ended()) from error
            raise
        except BaseException:
            # Cancelled, or broken: what it is doing now would be the next file's answer.
            worker.kill()
            raise
        self._idle.append(worker)
        return parsed

    def _more_time(self, limit: asyncio.Timeout) -> Callable[[], None]:
        """Puts a file's limit off by a page's time, as often as a file may have pages."""
        pages = count(1)

        def put_off() -> None:
            when = limit.when()
            if self._ocr is not None and when is not None and next(pages) <= self._max_pages:
                limit.reschedule(when + self._ocr.page_timeout_s)

        return put_off

    async def close(self) -> None:
        """Stop all workers, busy ones too; none is left when this returns."""
        self._closed = True
        self._idle.clear()
        workers = list(self._living)
        for worker in workers:
            worker.kill()
        await asyncio.gather(*(worker.ended() for worker in workers))
        self._living.clear()

    def _take_idle(self) -> Worker | None:
        """A worker that waits for a file and has not ended by itself meanwhile."""
        while self._idle:
            worker = self._idle.pop()
            if worker.returncode is None:
                return worker
        return None

    async def _start(self) -> Worker:
        if self._closed:
            raise EngineUnavailable("The parser has been stopped")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", _MODULE, *self._arguments),
            stdin=PIPE,
            stdout=PIPE,
            env=worker_environment(),
            start_new_session=True,
        )
        worker = Worker(process)
        self._living = {*self.living, worker}
        await worker.ready()
        return worker


def _ocr_arguments(ocr: OcrOptions) -> list[str]:
    languages = [f"--ocr-language={language}" for language in ocr.languages]
    turns = ["--ocr-turns-pages"] if ocr.turns_pages else []
    timeout = f"--ocr-page-timeout-s={ocr.page_timeout_s}"
    return [f"--ocr-command={ocr.command}", timeout, *languages, *turns]


def worker_environment() -> dict[str, str]:
    """The server's own, without its secrets and profiles, and with one thread per library."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIVATEGPT")}
    path = os.pathsep.join(filter(None, (str(_SOURCE_FOLDER), kept.get("PYTHONPATH"))))
    # Allocator arenas and thread pools reserve address space, which the memory limit counts.
    return kept | {"PYTHONPATH": path, "MALLOC_ARENA_MAX": "2", "RAYON_NUM_THREADS": "1"}


def _explain(name: str, returncode: int) -> FileExceedsBounds | CorruptFile:
    """The refusal for a worker that died over a file."""
    if -returncode in _OUT_OF_MEMORY:
        return FileExceedsBounds(
            f"The process that read {name!r} was ended: the file takes more memory than is allowed"
        )
    return CorruptFile(
        f"The parser broke off while it read {name!r}: the file is damaged, or made to do that"
    )
