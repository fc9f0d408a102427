"""Many files at once, for an operator at the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from privategpt.domain.errors import PrivateGptError
from privategpt.domain.ports import Upload
from privategpt.services.ingestion import Ingestion, IngestRequest

AT_ONCE = 2
"""Files in work at the same time: one is parsed while another is embedded."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of the files; `failures` are (name, reason), in the order of the files."""

    ingested: int
    already_there: int
    failures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file and the name it is ingested under: its path below the folder that was given."""

    path: Path
    name: str


def files_below(paths: Sequence[Path]) -> list[NamedFile]:
    """The files among `paths` and below the folders among them, sorted, hidden ones left out."""
    return list(_walk(paths))


def _walk(paths: Sequence[Path]) -> Iterator[NamedFile]:
    for given in paths:
        if given.is_file():
            yield NamedFile(given, given.name)
            continue
        for path in sorted(given.rglob("*")):
            below = path.relative_to(given)
            if path.is_file() and not any(part.startswith(".") for part in below.parts):
                yield NamedFile(path, below.as_posix())


async def ingest_files(
    files: Sequence[NamedFile],
    *,
    ingestion: Ingestion,
    tenant: str,
    progress: Callable[[str], None],
) -> BatchResult:
    """Ingest all of them; a file that fails does not stop the others.

    `progress` is told the name of each file when it is done.
    """
    places = asyncio.Semaphore(AT_ONCE)
    known = {str(info.metadata["file_id"]) for info in await ingestion.list_documents(tenant)}

    async def ingest_one(file: NamedFile) -> str | PrivateGptError:
        async with places:
            try:
                upload = Upload(path=file.path, name=file.name)
                stored = await ingestion.ingest(IngestRequest(upload=upload, tenant=tenant))
            except PrivateGptError as error:
                return error
            finally:
                progress(file.name)
            return stored.file.file_id

    outcomes = await asyncio.gather(*(ingest_one(file) for file in files))
    file_ids = [outcome for outcome in outcomes if isinstance(outcome, str)]
    new = set(file_ids) - known
    return BatchResult(
        ingested=len(new),
        already_there=len(file_ids) - len(new),
        failures=tuple(
            (file.name, outcome.message)
            for file, outcome in zip(files, outcomes, strict=True)
            if isinstance(outcome, PrivateGptError)
        ),
    )
