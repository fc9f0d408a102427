"""Kill, starve and fail a process at every write of its work, and look at what is left."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tests.crash.steps import STEPS, Snapshot, faults, library_in, snapshot, write_files
from tests.crash.subject import KILLED, REFUSED, Request

ACKNOWLEDGED = "acknowledged"
SHIM = Path(__file__).with_name("shim.c")

How = Literal["kill", "half", "no space", "disk full", "broken disk"]
LARGE_DISK = 1_000_000_000
HOW: Mapping[How, Mapping[str, Any]] = {
    "kill": {},
    "half": {"half": True},
    "no space": {"error": errno.ENOSPC},
    "disk full": {"error": errno.ENOSPC, "ever": True},
    "broken disk": {"error": errno.EIO},
}


class Failed(AssertionError):
    """What is left of the library breaks an invariant."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its status and the last steps that it began and acknowledged (or -1)."""

    status: int
    begun: int
    done: int
    said: str


@dataclass(frozen=True, slots=True)
class Campaign:
    """`states[k]` is the library after k steps.

    `log` is what a whole run does to its files ("pwrite state.db"), with a line "acknowledged k"
    after every step.
    """

    folder: Path
    subject: asyncio.subprocess.Process
    states: tuple[Snapshot, ...] = ()
    log: tuple[str, ...] = ()

    @property
    def writes(self) -> tuple[str, ...]:
        """The calls that change files; number n is the n-th of them, counted from 1."""
        return tuple(line for line in self.log if not line.startswith(ACKNOWLEDGED))

    def numbers(self, how: How) -> list[int]:
        """The writes that can end in that way: only one that has bytes can be cut in half."""
        return [
            number
            for number, line in enumerate(self.writes, start=1)
            if how != "half" or line.startswith(("write", "pwrite"))
        ]

    def said_too_early(self) -> list[str]:
        """What a power cut would have lost although it was acknowledged, or was relied on.

        When a step is acknowledged, and when the state commits, every byte that was written
        before must have been told to the disk. SQLite's shared memory is made anew at a start.
        """
        found: list[str] = []
        unsynced: set[str] = set()
        for line in self.log:
            call, _, path = line.partition(" ")
            if call in ("write", "pwrite", "writev") and not path.endswith("-shm"):
                unsynced.add(path)
            elif call in ("unlink", "rename"):
                unsynced.discard(path)
            elif call in ("fsync", "fdatasync"):
                unsynced.discard(path)
                if path == "state.db-wal" and unsynced:
                    found.append(f"{sorted(unsynced)} before a commit")
            elif call == ACKNOWLEDGED and unsynced:
                found.append(f"{sorted(unsynced)} before step {path} is acknowledged")
        return found

    async def at(self, number: int, how: How) -> Ended:
        """Let the process end or fail at its write of that number. Raises `Failed`."""
        return await self._run(f"write {number}, {how}", at=number, **HOW[how])

    async def after(self, seconds: float) -> Ended:
        """Kill the process after a time, wherever it is then. Raises `Failed`."""
        return await self._run(f"killed after {seconds:.4f} s", kill_after_s=seconds)

    async def on_a_disk_of(self, size_bytes: int) -> Ended:
        """Let the disk be full where so much is stored; later it is larger. Raises `Failed`.

        Only for root, for it mounts one.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            data = Path(name) / "data"
            data.mkdir()
            await _mount(data, f"size={size_bytes}")
            try:
                ended = await self.take(Path(name))
                await _mount(data, f"remount,size={LARGE_DISK}")
                if found := await self._faults(data, ended):
                    raise Failed(f"a disk of {size_bytes} ({ended}):\n" + "\n".join(found))
            finally:
                await _call("umount", data)
        return ended

    async def _run(self, what: str, **request: Any) -> Ended:
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            root = Path(name)
            (root / "data").mkdir()
            ended = await self.take(root, **request)
            if ended.status not in (0, REFUSED, KILLED):
                raise Failed(f"{what}: the process ended badly: {ended}")
            if found := await self._faults(root / "data", ended):
                raise Failed(f"{what} ({ended}):\n" + "\n".join(found))
        return ended

    async def take(self, root: Path, **request: Any) -> Ended:
        """Let the subject take the steps in the folder `root`, on an empty `data` there."""
        assert self.subject.stdin
        assert self.subject.stdout
        line = json.dumps(asdict(Request(root=str(root), files=str(self._files), **request)))
        self.subject.stdin.write(line.encode() + b"\n")
        status = int(await self.subject.stdout.readline())
        # A process that was killed at once has left neither.
        words = _text(root / "acknowledged").split()
        steps = dict(zip(words[0::2], map(int, words[1::2]), strict=True))
        return Ended(
            status=status,
            begun=steps.get("begin", -1),
            done=steps.get("done", -1),
            said=_text(root / "said")[-1500:],
        )

    @property
    def _files(self) -> Path:
        return self.folder / "files"

    async def _faults(self, data: Path, ended: Ended) -> list[str]:
        async with library_in(data) as library:
            found = await faults(library)
            left = await snapshot(library)
            if left not in {self.states[ended.done + 1], self.states[ended.begun + 1]}:
                names = [name for name, _ in left]
                found.append(f"I3 or I4: after step {ended.done} there is {names}")
            for step in STEPS[ended.done + 1 :]:
                await step(library, self._files)
            found += [f"run again: {fault}" for fault in await faults(library)]
            if await snapshot(library) != self.states[-1]:
                found.append("I5: run again, it is not what a clean library would be")
        return found


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


@asynccontextmanager
async def campaign(folder: Path) -> AsyncGenerator[Campaign]:
    """Everything a run needs below `folder`; the writes are counted by a run that nothing ends."""
    shim = folder / "shim.so"
    compiler = os.environ.get("CC", "cc")
    await _call(compiler, "-O1", "-shared", "-fPIC", "-o", shim, SHIM, "-ldl")
    write_files(folder / "files")
    subject = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.crash.subject"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "LD_PRELOAD": str(shim)},
    )
    try:
        made = Campaign(folder, subject, states=await _clean_states(folder))
        whole = folder / "whole"
        (whole / "data").mkdir(parents=True)
        ended = await made.take(whole)
        if ended.status:
            raise Failed(f"a run that nothing disturbs fails: {ended}")
        log = (whole / "writes").read_text(encoding="utf-8").splitlines()
        yield replace(made, log=tuple(log))
    finally:
        subject.kill()
        await subject.wait()


async def _mount(folder: Path, options: str) -> None:
    await _call("mount", "-t", "tmpfs", "-o", options, "tmpfs", folder)


async def _call(*command: str | Path) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        raise Failed(f"{command[0]} ended with status {process.returncode}")


async def _clean_states(folder: Path) -> tuple[Snapshot, ...]:
    data = folder / "clean"
    async with library_in(data) as library:
        states = [await snapshot(library)]
        for step in STEPS:
            await step(library, folder / "files")
            states.append(await snapshot(library))
        if found := await faults(library):
            raise Failed("\n".join(found))
    await asyncio.to_thread(shutil.rmtree, data)
    return tuple(states)
