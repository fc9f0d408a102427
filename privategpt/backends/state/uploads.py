"""The bytes of background ingestions, in a folder that is this process's alone."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Generator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from privategpt.backends.durable import make_durable
from privategpt.backends.state.folder import FolderLock, lock_folder
from privategpt.domain.errors import Unavailable

HOME_FILE = "home"
"""Names the folder, for the store that several servers share."""


class FolderUploads:
    """`KeptUploads` in a locked folder; `home` is its id, the same after every start."""

    def __init__(self, *, folder: Path, home: str, lock: FolderLock) -> None:
        self.home = home
        self._folder = folder
        self._lock = lock

    async def keep(self, job_id: str, path: Path) -> None:
        with _translated():
            await asyncio.to_thread(self._take, path, self.path(job_id))

    def path(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.upload"

    async def names(self) -> frozenset[str]:
        with _translated():
            found = await asyncio.to_thread(lambda: list(self._folder.glob("*.upload")))
        return frozenset(path.stem for path in found)

    async def drop(self, job_ids: AbstractSet[str]) -> None:
        with _translated():
            await asyncio.to_thread(self._remove, job_ids)

    async def close(self) -> None:
        """Let another process in."""
        self._lock.release()

    def _take(self, path: Path, kept: Path) -> None:
        # Within a data folder a rename; a copy only where uploads arrive on another disk.
        shutil.move(path, kept)
        make_durable(kept)
        make_durable(self._folder)

    def _remove(self, job_ids: AbstractSet[str]) -> None:
        for job_id in job_ids:
            self.path(job_id).unlink(missing_ok=True)


def open_uploads(folder: Path) -> FolderUploads:
    """Create the folder if it is not there, and lock it. Blocks. Raises `FolderInUse`."""
    lock = lock_folder(folder)
    name = folder / HOME_FILE
    try:
        home = name.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        home = ""
    if not home:
        home = str(uuid4())
        name.write_text(home, encoding="ascii")
        make_durable(name)
        make_durable(folder)
    return FolderUploads(folder=folder, home=home, lock=lock)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable("The server cannot keep the upload now", retry_after_s=30) from error
