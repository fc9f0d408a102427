"""One process at a time in a data folder."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from privategpt.domain.errors import FolderInUse

LOCK_FILE = "lock"


class FolderLock:
    """An exclusive lock on a data folder, held until `release` or the end of the process.

    The operating system drops it with the process, so nothing stale is left by `kill -9`.
    """

    def __init__(self, *, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let another process in; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def lock_folder(folder: Path) -> FolderLock:
    """Create `folder` for its owner alone if it is not there, and lock it.

    Raises `FolderInUse`, which names the folder as it is given here.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Close-on-exec, as all of Python's descriptors: no child program keeps the lock.
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise FolderInUse(
            f"Data folder {str(folder)!r} is in use by another process; stop that one,"
            " or give this one a folder of its own"
        ) from error
    lock = FolderLock(descriptor=descriptor)
    _drop_in_forked_children(lock)
    return lock


def _drop_in_forked_children(lock: FolderLock) -> None:
    """A worker forked without exec shares the lock and, outliving us, would keep it."""
    reference = weakref.ref(lock)

    def drop() -> None:
        if (held := reference()) is not None:
            held.release()

    os.register_at_fork(after_in_child=drop)
