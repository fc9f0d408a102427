"""Pages of an index's files, which count as this process's memory while it has them mapped."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_FIELDS = 6
"""Of a line of it: addresses, rights, offset, device, inode, path."""


def release_pages(folder: Path) -> None:
    """Let go of the pages of the files in `folder` that are mapped to be shared.

    Nothing is lost: what was written stays in the system's cache and comes back where it is read.
    The caller sees to it that none of the files is unmapped meanwhile. Only Linux says what is
    mapped; elsewhere nothing happens.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for first, last in _shared(folder):
        advise(first, last - first, mmap.MADV_DONTNEED)


def _shared(folder: Path) -> Iterator[tuple[int, int]]:
    """The addresses of the maps, each from the first to before the last."""
    inside = f"{folder.resolve()}/"
    for line in _MAPS.read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=_FIELDS - 1)
        if len(fields) == _FIELDS and fields[1].endswith("s") and fields[-1].startswith(inside):
            first, _, last = fields[0].partition("-")
            yield int(first, 16), int(last, 16)
