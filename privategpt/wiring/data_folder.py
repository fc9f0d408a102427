"""The data folder, before anything is opened in it: whoever may not use it is told why."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from privategpt.backends.state.folder import LOCK_FILE
from privategpt.backends.state.opening import SQLITE_FILE
from privategpt.domain.errors import StartRefused
from privategpt.settings import Settings

VECTORS, UPLOADS, JOBS = "vectors", "uploads", "jobs"

OWN = (
    SQLITE_FILE,
    f"{SQLITE_FILE}-wal",
    f"{SQLITE_FILE}-shm",
    LOCK_FILE,
    VECTORS,
    UPLOADS,
    JOBS,
)
"""What we put there; a disk's own `lost+found` is nobody's business."""


def require_data_folder(settings: Settings) -> None:
    """Make the data folder if it is not there. Raises `StartRefused` where it cannot be used.

    Files of another user in it are told by name: they come from a command that was run once as
    root, and the database would only say that it may not be written.
    """
    folder = settings.server.data_dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = [folder, *_entries(folder)]
        is_full = _is_full(folder)
    except FileExistsError as error:
        raise _unusable(folder, "it is a file") from error
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    if is_full:
        raise _unusable(folder, "its disk is full")
    for entry in entries:
        if reason := _fault(entry):
            name = "it" if entry == folder else repr(str(entry.relative_to(folder)))
            raise _unusable(folder, f"{name} {reason}")


def require_library(settings: Settings) -> None:
    """Raise `StartRefused` where nothing was ever stored: a misspelt folder is not sound."""
    if settings.state.url is not None:
        return
    folder = settings.server.data_dir
    try:
        (folder / SQLITE_FILE).stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StartRefused(
            f"There is no library in {str(folder)!r}: {SQLITE_FILE!r} is missing. "
            "Name its folder with --data-dir or PRIVATEGPT_DATA_DIR."
        ) from error
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error


def _entries(folder: Path) -> Iterator[Path]:
    for name in OWN:
        if (entry := folder / name).exists():
            yield entry
            # What goes meanwhile, as files of a running server do, is passed over.
            for below, folders, files in os.walk(entry):
                yield from (Path(below, inner) for inner in (*folders, *files))


def _is_full(folder: Path) -> bool:
    """Not a byte: the database could not even be opened, and would not know why."""
    disk = os.statvfs(folder)
    free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    return disk.f_blocks > 0 and free == 0  # some network drives tell nothing


def _fault(entry: Path) -> str | None:
    needed = os.R_OK | os.W_OK | (os.X_OK if entry.is_dir() else 0)
    if os.access(entry, needed):
        return None
    try:
        found = entry.stat()
        read_only = os.statvfs(entry).f_flag & os.ST_RDONLY
    except OSError:
        return None  # gone meanwhile, as the database's files go when a server stops
    if read_only:
        return "lies on a file system that may not be written"
    return (
        f"may not be read and written by user {os.geteuid()}: it is "
        f"{stat.filemode(found.st_mode)} of user {found.st_uid}"
    )


def _unusable(folder: Path, reason: str) -> StartRefused:
    return StartRefused(
        f"Data folder {str(folder)!r} cannot be used: {reason}. Mend that, "
        "or choose another with --data-dir or PRIVATEGPT_DATA_DIR."
    )
