"""What a server process and its children use, as Linux counts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Use:
    """Of one process: who it is, and what it has used. Ended children count for their parent."""

    pid: int
    parent: int
    processor_s: float
    resident_bytes: int
    threads: int
    ended: bool


def family(pid: int) -> list[Use]:
    """The process and all below it."""
    members = {pid}
    uses = sorted(_all(), key=lambda use: use.pid)
    while True:
        grown = members | {use.pid for use in uses if use.parent in members}
        if grown == members:
            return [use for use in uses if use.pid in members]
        members = grown


def descriptors(pid: int) -> int:
    """How many descriptors a process has open."""
    return len(list((_PROC / str(pid) / "fd").iterdir()))


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    return any(use.pid == pid and not use.ended for use in _all())


def _all() -> Iterator[Use]:
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            text = (folder / "stat").read_text()
            # The name in parentheses may hold anything; the fields begin behind it.
            fields = text.rpartition(")")[2].split()
            yield Use(
                pid=int(folder.name),
                parent=int(fields[1]),
                processor_s=sum(map(int, fields[11:15])) / _TICKS_PER_S,
                resident_bytes=int(fields[21]) * _PAGE_BYTES,
                threads=int(fields[17]),
                ended=fields[0] in "ZX",
            )
