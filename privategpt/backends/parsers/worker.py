"""The parser worker's process: `python -m privategpt.backends.parsers.worker`.

It takes uploads from its standard input and answers on its standard output (`transfer`), one
after the other, within the memory it was given, until its input ends. It reads hostile files, so
it may be killed, or end by itself, at any time; the pool starts another.
"""

from __future__ import annotations

import argparse
import logging
import os
import queue
import resource
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from privategpt.backends.parsers.bounds import Bounds
from privategpt.backends.parsers.ocr import OcrOptions, Tesseract
from privategpt.backends.parsers.reading import read_file
from privategpt.backends.parsers.transfer import (
    BEGUN,
    OCR_PAGE,
    READY,
    Frame,
    frame_of_error,
    frames_of_file,
    read_frame,
    upload_of_frame,
)
from privategpt.domain.errors import (
    CorruptFile,
    FileExceedsBounds,
    UnreadableFile,
    UnsupportedFileType,
)

BASE_BYTES = 300_000_000
BYTES_PER_BYTE = 20
"""What reading takes: trees, rows and texts of a packed file are some ten times its size."""

RETIRE_ABOVE_BYTES = 400_000_000
"""A worker that has ever been this large ends after its job: its memory would not shrink."""


def main(arguments: list[str] | None = None) -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory-bytes", type=int, required=True)
    parser.add_argument("--max-pages", type=int, required=True)
    parser.add_argument("--retire-above-bytes", type=int, default=RETIRE_ABOVE_BYTES)
    parser.add_argument("--ocr-command")
    parser.add_argument("--ocr-language", action="append", default=[])
    parser.add_argument("--ocr-page-timeout-s", type=float, default=0.0)
    parser.add_argument("--ocr-turns-pages", action="store_true")
    options = parser.parse_args(arguments)
    jobs, answers = _own_the_pipes()
    # Libraries complain about broken files; we answer instead.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    _offer_to_the_kernel()
    _serve(jobs, answers, options)


def _own_the_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the pipes away from where native libraries print."""
    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("r+b") as devnull:
        os.dup2(devnull.fileno(), 0)
    os.dup2(2, 1)
    return jobs, answers


def _offer_to_the_kernel() -> None:
    """Where the whole machine runs short of memory, this process should go first."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _limit_memory(size_bytes: int, memory_bytes: int) -> None:
    """Let a file of this size take what honest files take, and never more than `memory_bytes`.

    Counted as address space beyond what is mapped now; where the system has no such count, the
    pool's time limit stands alone.
    """
    statm = Path("/proc/self/statm")
    if statm.exists():
        mapped = int(statm.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        allowed = min(memory_bytes, BASE_BYTES + BYTES_PER_BYTE * size_bytes)
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = mapped + allowed
        resource.setrlimit(
            resource.RLIMIT_AS,
            (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard),
        )


def _serve(jobs: BinaryIO, answers: BinaryIO, options: argparse.Namespace) -> None:
    ocr = _ocr(options, answers)
    bounds = Bounds(max_pages=options.max_pages, ocr=ocr.read if ocr else None)
    inbox: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    answers.write(READY.encode())
    answers.flush()
    threading.Thread(target=_receive, args=(jobs, inbox, ocr), daemon=True).start()
    while True:
        answer(inbox.get(), answers, bounds, options.memory_bytes)
        if _largest_size() > options.retire_above_bytes:
            return


def _ocr(options: argparse.Namespace, answers: BinaryIO) -> Tesseract | None:
    def announce() -> None:
        answers.write(OCR_PAGE.encode())
        answers.flush()

    if options.ocr_command is None:
        return None
    found = OcrOptions(
        command=options.ocr_command,
        languages=tuple(options.ocr_language),
        page_timeout_s=options.ocr_page_timeout_s,
        turns_pages=options.ocr_turns_pages,
    )
    return Tesseract(found, before_page=announce)


def _largest_size() -> int:
    """The most memory that this process has held, in bytes.

    Not `ru_maxrss` where it can be helped: on Linux that survives exec, so a worker that a large
    server has just started would count the server's size as its own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _receive(jobs: BinaryIO, inbox: queue.SimpleQueue[Frame], ocr: Tesseract | None) -> None:
    """Pass jobs on; when the server has gone, end at once, in the middle of a job too."""
    while frame := read_frame(jobs):
        inbox.put(frame)
    if ocr is not None:
        ocr.stop()
    os._exit(0)


def answer(job: Frame, answers: BinaryIO, bounds: Bounds, memory_bytes: int) -> None:
    """Read the job\'s file and write what came of it, an error as well."""
    answers.write(BEGUN.encode())
    answers.flush()
    upload = upload_of_frame(job)
    try:
        _limit_memory(upload.path.stat().st_size, memory_bytes)
        for frame in frames_of_file(read_file(upload, bounds)):
            answers.write(frame.encode())
    except (UnreadableFile, UnsupportedFileType) as error:
        answers.write(frame_of_error(error).encode())
    except MemoryError:
        refusal = FileExceedsBounds("The file takes more memory to read than is allowed")
        answers.write(frame_of_error(refusal).encode())
        answers.flush()
        sys.exit(1)
    except OSError as error:
        reason = error.strerror or "input error"
        answers.write(frame_of_error(CorruptFile(f"The upload cannot be read: {reason}")).encode())
    answers.flush()


if __name__ == "__main__":
    main()
