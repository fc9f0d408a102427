"""The process that is killed, once per line of its standard input: `python -m tests.crash.subject`.

Everything is imported once; each request is taken by a fork, which arms the shim and takes the
steps in order. It appends a line to its acknowledgements before ("begin 3") and after ("done 3")
each. A step that fails ends it with status 3, as a client would stop.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from privategpt.domain.errors import PrivateGptError
from tests.crash.steps import STEPS, library_in

REFUSED = 3
KILLED = -9
LONGEST_S = 120.0
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Request:
    """Do the steps in `root`/data with files from `files`; end or fail at write number `at`.

    `error` is the errno to fail with (0: kill), `half` kills within the write, `ever` fails for
    ever. `kill_after_s` kills whatever it does then.
    """

    root: str
    files: str
    at: int = 0
    error: int = 0
    half: bool = False
    ever: bool = False
    kill_after_s: float = LONGEST_S


def main() -> None:
    """Serve until the input ends: a request per line in, a status per line out."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = Request(**json.loads(line))
        child = os.fork()
        if child == 0:
            os._exit(_take(request))
        answers.write(f"{_wait(child, request.kill_after_s)}\n")
        answers.flush()


def _wait(child: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, -KILLED)
            deadline = float("inf")
        time.sleep(0.0005)


def _take(request: Request) -> int:
    root = Path(request.root)
    said = os.open(root / "said", APPEND, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    armed = ctypes.CDLL(None).crash_arm(
        os.fsencode(root / "data"),
        os.fsencode(root / "writes"),
        ctypes.c_long(request.at),
        request.error,
        request.half,
        request.ever,
    )
    if armed < 0:
        return 1
    return asyncio.run(_steps(root, Path(request.files)))


async def _steps(root: Path, files: Path) -> int:
    log = os.open(root / "acknowledged", APPEND, 0o600)
    writes = os.open(root / "writes", APPEND, 0o600)
    try:
        async with library_in(root / "data") as library:
            for number, step in enumerate(STEPS):
                os.write(log, b"begin %d\n" % number)
                await step(library, files)
                os.write(log, b"done %d\n" % number)
                os.write(writes, b"acknowledged %d\n" % number)
    except PrivateGptError as error:
        os.write(1, error.message.encode())
        return REFUSED
    return 0


if __name__ == "__main__":
    main()
