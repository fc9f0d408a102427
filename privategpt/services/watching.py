"""Folders whose files are to be documents, as they come, change and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from privategpt.domain.errors import NotFound, Unavailable
from privategpt.services.batch import BatchResult, NamedFile, Reporter, files_below, ingest_files
from privategpt.services.ingestion import Ingestion

Stamp: TypeAlias = tuple[int, int]
"""When a file was changed last, and its size: other than before, it is looked into."""


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
    missing at two looks are deleted, unless all of its folder is missing.
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
        self._missing: frozenset[str] = frozenset()

    async def look(self) -> Changes:
        """What has changed since the last look."""
        if not all(path.exists() for path in self._paths):
            return Changes()
        found = await asyncio.to_thread(_stamped, self._paths)
        stamps = {file.name: stamp for file, stamp in found}
        before = stamps if self._before is None else self._before
        changed = tuple(
            file
            for file, stamp in found
            if before.get(file.name) == stamp != self._taken.get(file.name)
        )
        missing = frozenset(self._file_ids.keys() - stamps.keys())
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


def _stamped(paths: Sequence[Path]) -> list[tuple[NamedFile, Stamp]]:
    """The files that are there; of several with one name, the first."""
    found: dict[str, tuple[NamedFile, Stamp]] = {}
    for file in files_below(paths):
        try:
            stat = file.path.stat()
        except OSError:
            continue  # gone since it was listed
        found.setdefault(file.name, (file, (stat.st_mtime_ns, stat.st_size)))
    return list(found.values())
