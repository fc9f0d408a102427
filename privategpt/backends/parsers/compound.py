"""Compound files (OLE): the files that an Outlook message or an embedded object carries.

Only the directory and the chains of sectors, which is all that finding a stream takes. Every
chain is followed no further than its stream is long, so loops end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from privategpt.backends.parsers.archives import Carried, TooLarge, bounded
from privategpt.backends.parsers.kinds import OLE_MAGIC
from privategpt.domain.errors import CorruptFile

_HEADER = struct.Struct("<24xHHHHH6xIII4xIIIIII")
_ENTRY = struct.Struct("<64sHBBIII36xIQ")
_END = 0xFFFFFFFA  # and above: free, end of chain, reserved
_STORAGE, _STREAM = 1, 2
_MAX_ENTRIES = 200_000
_LONGEST_NAME = 2_000
_ATTACHMENT = "__attach_version1.0_#"
_CONTENT = "__substg1.0_37010102"
_NAMES = (("__substg1.0_3707001F", "utf-16-le"), ("__substg1.0_3704001F", "utf-16-le"),
          ("__substg1.0_3707001E", "cp1252"), ("__substg1.0_3704001E", "cp1252"))  # fmt: skip
_NATIVE = "\x01Ole10Native"
_PACKAGES = ("Package", "CONTENTS")
_DOCUMENTS = ("WordDocument", "Workbook", "PowerPoint Document")


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    kind: int
    left: int
    right: int
    child: int
    start: int
    size: int


class Compound:
    """A compound file. `streams` are by their path, storages and stream apart by "/"."""

    def __init__(self, data: bytes) -> None:
        """Raises `CorruptFile`."""
        try:
            self._data = data
            self._open()
        except (struct.error, IndexError, ValueError, UnicodeError) as error:
            raise CorruptFile("The compound file is damaged or cut off") from error

    def _open(self) -> None:
        if not self._data.startswith(OLE_MAGIC):
            raise ValueError
        header = _HEADER.unpack_from(self._data)
        shift, mini_shift = header[3], header[4]
        if shift not in (9, 12) or mini_shift != 6:
            raise ValueError
        self._sector, self._mini = 1 << shift, 1 << mini_shift
        fat_count, directory = header[6], header[7]
        self._cutoff, mini_fat = header[8], header[9]
        self._fat = self._read_fat(fat_count, first_more=header[11])
        entries = self._chain(directory, _MAX_ENTRIES * _ENTRY.size)
        self._entries = [self._entry(entries, at) for at in range(0, len(entries), _ENTRY.size)]
        root = self._entries[0]
        self._mini_fat = _numbers(self._chain(mini_fat, len(self._data)))
        self._mini_data = self._chain(root.start, min(root.size, len(self._data)))
        self.streams = dict(self._walk(root.child))

    def _read_fat(self, count: int, *, first_more: int) -> list[int]:
        sectors = list(struct.unpack_from("<109I", self._data, 76))
        more, most = first_more, len(self._data) // self._sector
        while more < _END and len(sectors) <= most:
            *found, more = _numbers(self._at(more))
            sectors += found
        fat: list[int] = []
        for sector in sectors[: min(count, most)]:
            fat += _numbers(self._at(sector))
        return fat

    def _at(self, sector: int) -> bytes:
        start = (sector + 1) * self._sector
        if start >= len(self._data):
            raise IndexError
        return self._data[start : start + self._sector].ljust(self._sector, b"\0")

    def _chain(self, sector: int, size: int) -> bytes:
        parts: list[bytes] = []
        for _ in range(min(size, len(self._data)) // self._sector + 1):
            if sector >= _END:
                break
            parts.append(self._at(sector))
            sector = self._fat[sector]
        return b"".join(parts)[:size]

    @staticmethod
    def _entry(entries: bytes, at: int) -> _Entry:
        name, size, kind, _, left, right, child, start, length = _ENTRY.unpack_from(entries, at)
        text = name[: max(0, min(size, 64) - 2)].decode("utf-16-le", "replace")
        return _Entry(text, kind, left, right, child, start, length & 0xFFFFFFFF)

    def _walk(self, first: int) -> Iterator[tuple[str, _Entry]]:
        seen: set[int] = set()
        waiting = [(first, "")]
        while waiting:
            number, folder = waiting.pop()
            if number >= len(self._entries) or number in seen:
                continue
            seen.add(number)
            entry = self._entries[number]
            waiting += [(entry.right, folder), (entry.left, folder)]
            if entry.kind == _STORAGE:
                waiting.append((entry.child, f"{folder}{entry.name}/"))
            elif entry.kind == _STREAM:
                yield folder + entry.name, entry

    def read(self, path: str, limit: int) -> bytes:
        """A stream's bytes. Raises `CorruptFile`, and `TooLarge` beyond `limit`."""
        entry = self.streams[path]
        if entry.size > limit:
            raise TooLarge(f"The file is larger than the {limit:,} bytes that may be read of it")
        try:
            if entry.size >= self._cutoff:
                data = self._chain(entry.start, entry.size)
            else:
                data = self._mini_chain(entry.start, entry.size)
        except (struct.error, IndexError) as error:
            raise CorruptFile("The file is damaged inside its container") from error
        if len(data) < entry.size:
            raise CorruptFile("The file is cut off inside its container")
        return data

    def _mini_chain(self, sector: int, size: int) -> bytes:
        parts: list[bytes] = []
        for _ in range(size // self._mini + 1):
            if sector >= _END:
                break
            start = sector * self._mini
            parts.append(self._mini_data[start : start + self._mini])
            sector = self._mini_fat[sector]
        return b"".join(parts)[:size]


def _numbers(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4]))


def _opened(data: bytes) -> Compound | None:
    """The compound file, None where it is none: whoever reads its text says why."""
    try:
        return Compound(data)
    except CorruptFile:
        return None


def message_files(data: bytes) -> Iterator[Carried]:
    """What is attached to an Outlook message."""
    compound = _opened(data)
    if compound is None:
        return
    for path in compound.streams:
        folder, _, name = path.rpartition("/")
        if name == _CONTENT and folder.startswith(_ATTACHMENT) and "/" not in folder:
            title = _attachment_name(compound, folder) or folder.removeprefix(_ATTACHMENT)
            yield Carried(path=title, read=partial(compound.read, path))


def _attachment_name(compound: Compound, folder: str) -> str:
    for name, charset in _NAMES:
        path = f"{folder}/{name}"
        if path in compound.streams and compound.streams[path].size <= _LONGEST_NAME:
            return compound.read(path, _LONGEST_NAME).decode(charset, "replace").strip("\0")
    return ""


def embedded_object(data: bytes, name: str) -> Iterator[Carried]:
    """The file in an embedded OLE object, if it is one; drawings and equations are none."""
    compound = _opened(data)
    streams = compound.streams if compound else {}
    if compound and _NATIVE in streams:
        title, content = _native(compound.read(_NATIVE, len(data)))
        yield Carried(path=title or name, read=partial(bounded, content))
    elif compound and (package := next((each for each in _PACKAGES if each in streams), None)):
        yield Carried(path=name, read=partial(compound.read, package))
    elif any(each in streams for each in _DOCUMENTS):
        yield Carried(path=name, read=partial(bounded, data))


def _native(stream: bytes) -> tuple[str, bytes]:
    """Name and content of a file that was packed as it is (OLE 1.0's native data)."""
    try:
        title, _, rest = stream[6:].partition(b"\0")
        _, _, rest = rest.partition(b"\0")
        (skipped,) = struct.unpack_from("<I", rest, 4)
        (size,) = struct.unpack_from("<I", rest, 8 + skipped)
    except struct.error:
        return "", b""
    start = 12 + skipped
    return title.decode("cp1252", "replace"), rest[start : start + size]
