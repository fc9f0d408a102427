"""Many files at once, for an operator at the command line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from privategpt.domain.errors import InvalidRequest, PrivateGptError
from privategpt.domain.jobs import Progress
from privategpt.domain.library import StoredFile
from privategpt.domain.ports import Upload
from privategpt.services.ingestion import Ingestion, IngestRequest

AT_ONCE = 3
"""Files in work at the same time: one is read while two are embedded."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file and the name it is ingested under: its path below the folder that was given."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: it is `stored`, newly or not, or there is an `error`."""

    file: NamedFile
    stored: StoredFile | None = None
    is_new: bool = False
    error: PrivateGptError | OSError | None = None

    @property
    def reason(self) -> str:
        """Why it is not ingested."""
        if isinstance(self.error, OSError):
            return f"it cannot be read: {self.error.strerror}"
        return "" if self.error is None else self.error.message


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of the files, in their order."""

    outcomes: tuple[Outcome, ...]

    @property
    def ingested(self) -> int:
        """How many are new."""
        return sum(outcome.is_new for outcome in self.outcomes)

    @property
    def already_there(self) -> int:
        """How many were there, with the same bytes."""
        return len(self.outcomes) - self.ingested - len(self.failures)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Those that are not ingested."""
        return tuple(outcome for outcome in self.outcomes if outcome.error is not None)


class Reporter(Protocol):
    """Is told how a batch goes on. Its methods return at once."""

    def began(self, file: NamedFile) -> None:
        """A file is in work."""
        ...

    def advanced(self, file: NamedFile, progress: Progress) -> None:
        """So much of it is done."""
        ...

    def ended(self, file: NamedFile) -> None:
        """It is in work no more."""
        ...


def files_below(paths: Sequence[Path]) -> list[NamedFile]:
    """The files among `paths` and below the folders among them, sorted, hidden ones left out.

    A folder that cannot be read stands for what is in it, so that it is told as not ingested.
    Raises `InvalidRequest` for a device or a pipe.
    """
    return list(dict.fromkeys(_walk(paths)))


def _walk(paths: Sequence[Path]) -> Iterator[NamedFile]:
    for given in paths:
        if given.is_dir():
            for path in sorted(_below(given)):
                name = path.name if path == given else path.relative_to(given).as_posix()
                yield NamedFile(path, _readable(name))
        elif given.is_file():
            yield NamedFile(given, _readable(given.name))
        elif given.exists():
            raise InvalidRequest(f"{given.name!r} is neither a file nor a folder")


def _below(folder: Path) -> Iterator[Path]:
    unread: list[Path] = []
    for root, folders, files in os.walk(folder, onerror=lambda e: unread.append(Path(e.filename))):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and (path := Path(root, name)).is_file():
                yield path
    yield from unread


def _readable(name: str) -> str:
    """`name` in letters, where its bytes are no UTF-8: two such files keep two names."""
    raw = os.fsencode(name)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


async def ingest_files(
    files: Sequence[NamedFile],
    *,
    ingestion: Ingestion,
    tenant: str,
    reporter: Reporter,
    replace: bool = False,
) -> BatchResult:
    """Ingest all of them; a file that fails does not stop the others.

    What is there with the same bytes is not read again. With `replace`, a file takes the place of
    another of its name.
    """
    places = asyncio.Semaphore(AT_ONCE)
    first = {file.name: file for file in reversed(files)}

    async def ingest_one(file: NamedFile) -> Outcome:
        if replace and first[file.name] != file:
            return Outcome(file, error=InvalidRequest("Another file here has the same name"))
        async with places:
            reporter.began(file)
            try:
                return await _ingest(file, ingestion, tenant, reporter, replace=replace)
            except (PrivateGptError, OSError) as error:
                return Outcome(file, error=error)
            finally:
                reporter.ended(file)

    return BatchResult(tuple(await asyncio.gather(*map(ingest_one, files))))


async def _ingest(
    file: NamedFile, ingestion: Ingestion, tenant: str, reporter: Reporter, *, replace: bool
) -> Outcome:
    upload = Upload(path=file.path, name=file.name)
    request = IngestRequest(upload=upload, tenant=tenant, replaces=replace)
    # Without `replaces`, `ingest` looks for itself.
    known = await ingestion.find(request) if replace else None
    if known is not None:
        return Outcome(file, stored=known)
    listener = _Listener(file, reporter)
    stored = await ingestion.ingest(request, listener=listener)
    return Outcome(file, stored=stored, is_new=listener.is_new)


@dataclass(slots=True)
class _Listener:
    """Passes on what is told of one file."""

    file: NamedFile
    reporter: Reporter
    is_new: bool = False

    def advanced(self, progress: Progress) -> None:
        self.reporter.advanced(self.file, progress)

    def stored(self, file: StoredFile) -> None:  # noqa: ARG002 (the port's name)
        self.is_new = True
