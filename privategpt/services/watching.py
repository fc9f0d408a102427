"""Folders whose files are to be documents, as they come, change and go."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from privategpt.domain.errors import NotFound, Unavailable
from privategpt.services.batch import BatchResult, NamedFile, Reporter, files_below, ingest_files
from privategpt.services.ingestion import Ingestion

Stamp: TypeAlias = tuple[int, int]
"""When a file was changed last, and its size: other than before, it is looked into."""

Place: TypeAlias = tuple[Path, int]
"""Where a file is, and the number of its drive."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be ingested, and the names of what is gone."""

    files: tuple[NamedFile, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.gone)


class FolderWatch:
    """Looks at the files below `paths` again and again, whatever file system they are on.

    A file is taken when two looks have found it the same, so that none is taken half written; but
    at the first look as it is. With `deletes`, the documents of a file that was seen here and is
    missing at two looks are deleted, unless its drive is: a folder that is not there or cannot be
    read, or where now lies what a drive had been mounted over.
    """

    def __init__(
        self, *, paths: Sequence[Path], ingestion: Ingestion, tenant: str, deletes: bool = False
    ) -> None:
        self._paths = paths
        self._ingestion = ingestion
        self._tenant = tenant
        self._deletes = deletes
        self._before: dict[str, Stamp] | None = None
        self._taken: dict[str, Stamp] = {}
        self._file_ids: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self._missing: frozenset[str] = frozenset()

    async def look(self) -> Changes:
        """What has changed since the last look."""
        found = await asyncio.to_thread(_found, self._paths)
        if found is None:
            return Changes()
        stamps = {file.name: stamp for file, stamp, _ in found}
        self._places |= {file.name: (file.path, drive) for file, _, drive in found}
        before = stamps if self._before is None else self._before
        changed = tuple(
            file
            for file, stamp, _ in found
            if before.get(file.name) == stamp != self._taken.get(file.name)
        )
        missing = frozenset(
            await asyncio.to_thread(self._missing_of, self._file_ids.keys() - stamps.keys())
        )
        gone = tuple(sorted(missing & self._missing)) if self._deletes else ()
        self._before, self._missing = stamps, missing
        return Changes(files=changed, gone=gone)

    async def follow(self, changes: Changes, *, reporter: Reporter) -> BatchResult:
        """Ingest what is new, replace what has changed, delete what is gone.

        What fails is tried again when it has changed, or at the next look where a part of the
        server did not serve. Raises `Unavailable` where deleting fails.
        """
        stamps = self._before or {}
        result = await ingest_files(
            changes.files,
            ingestion=self._ingestion,
            tenant=self._tenant,
            reporter=reporter,
            replace=True,
        )
        for outcome in result.outcomes:
            if outcome.stored is not None:
                self._file_ids[outcome.file.name] = outcome.stored.file.file_id
            if not isinstance(outcome.error, Unavailable):
                self._taken[outcome.file.name] = stamps[outcome.file.name]
        for name in changes.gone:
            await self._delete(name)
        return result

    async def _delete(self, name: str) -> None:
        with suppress(NotFound):  # somebody may have been faster
            await self._ingestion.delete(self._tenant, self._file_ids[name])
        del self._file_ids[name]
        self._taken.pop(name, None)
        self._places.pop(name, None)

    def _missing_of(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if _is_gone(*self._places[name])]


def _found(paths: Sequence[Path]) -> list[tuple[NamedFile, Stamp, int]] | None:
    """The files that are there, each with its drive; of several with one name, the first.

    None where a part of them cannot be looked at.
    """
    found: dict[str, tuple[NamedFile, Stamp, int]] = {}
    try:
        for path in paths:
            path.stat()
        files = files_below(paths)
    except OSError:
        return None
    for file in files:
        try:
            status = file.path.stat()
            drive = file.path.lstat().st_dev  # a link's own, not that of what it leads to
        except OSError:
            continue  # gone since it was listed
        found.setdefault(file.name, (file, (status.st_mtime_ns, status.st_size), drive))
    return list(found.values())


def _is_gone(path: Path, drive: int) -> bool:
    """Whether a file is no more, while the drive that it was on is still there."""
    for place in (path, *path.parents):
        try:
            found = place.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_dev == drive
    return False
