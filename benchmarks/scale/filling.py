"""Libraries of any size through the product's own ingestion, all but its embedding model."""

from __future__ import annotations

import asyncio
import shutil
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from benchmarks.scale.cheap import HashedWords
from benchmarks.scale.corpus import PASSAGES_PER_FILE, Passage, as_paragraphs, endless
from privategpt.backends.state.opening import open_database
from privategpt.backends.state.store import SqlStateStore
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.jobs import Progress
from privategpt.domain.observing import UNOBSERVED
from privategpt.domain.ports import EmbeddingModel
from privategpt.services.batch import NamedFile, ingest_files
from privategpt.services.ingestion import Ingestion
from privategpt.services.maintenance import refuse_changed_embedding
from privategpt.settings import Settings, load_settings
from privategpt.wiring.access import state_location
from privategpt.wiring.engines import load_embedding, open_index
from privategpt.wiring.ingesting import open_ingestion

FILES_AT_A_TIME = 20
LARGE = "large.txt"


@dataclass(frozen=True, slots=True)
class Filled:
    """So many chunks are there, and what it took to store those that were `new`."""

    chunks: int
    new: int
    seconds: float
    processor_s: float

    @property
    def pace(self) -> float:
        """New chunks a second."""
        return self.new / self.seconds if self.new else 0.0

    def and_then(self, *, chunks: int, new: int, seconds: float, processor_s: float) -> Filled:
        """After so many more; what was there already has taken nothing that counts."""
        if not new:
            return replace(self, chunks=chunks)
        return Filled(
            chunks, self.new + new, self.seconds + seconds, self.processor_s + processor_s
        )


NOTHING = Filled(chunks=0, new=0, seconds=0.0, processor_s=0.0)


@dataclass(frozen=True, slots=True)
class Stored:
    """Files by their names, their ids, and how many of them are new."""

    ids: Mapping[str, str]
    new: int


class Silence:
    """A `Reporter` that tells nobody."""

    def began(self, file: NamedFile) -> None:
        """See `Reporter`."""

    def advanced(self, file: NamedFile, progress: Progress) -> None:
        """See `Reporter`."""

    def ended(self, file: NamedFile) -> None:
        """See `Reporter`."""


def settings_of(data_dir: Path) -> Settings:
    """Those of settings.yaml, over that folder."""
    settings = load_settings({})
    server = settings.server.model_copy(update={"data_dir": data_dir})
    return settings.model_copy(update={"server": server})


async def cheap_model() -> HashedWords:
    """Vectors for the server that runs with settings.yaml: of its model's size and name."""
    real = await load_embedding(load_settings({}).embedding)
    try:
        return HashedWords(dimensions=real.dimensions, fingerprint=real.fingerprint)
    finally:
        await real.close()


@asynccontextmanager
async def opened(data_dir: Path, embedding: EmbeddingModel) -> AsyncGenerator[Ingestion]:
    """The library in the folder, as the command line opens it, with that model in its place."""
    settings = settings_of(data_dir)
    async with AsyncExitStack() as stack:
        database = await open_database(state_location(settings))
        stack.push_async_callback(database.close)
        state = SqlStateStore(database=database)
        await refuse_changed_embedding(state=state, embedding=embedding)
        index = await open_index(settings, embedding, replace=False)
        stack.push_async_callback(index.close)
        opened_ingestion = await open_ingestion(
            stack,
            settings,
            database=database,
            state=state,
            embedding=embedding,
            index=index,
            owner="benchmark",
            observer=UNOBSERVED,
            now=lambda: datetime.now(UTC),
            new_id=lambda: str(uuid.uuid4()),
        )
        yield opened_ingestion.ingestion


async def store(files: Sequence[tuple[str, str]], *, ingestion: Ingestion, folder: Path) -> Stored:
    """Ingest texts by name through files in `folder`; what is there already is skipped.

    Raises `RuntimeError` where one is refused.
    """
    named = await asyncio.to_thread(_written, files, folder)
    result = await ingest_files(
        named, ingestion=ingestion, tenant=DEFAULT_TENANT, reporter=Silence()
    )
    await asyncio.to_thread(shutil.rmtree, folder)
    for failed in result.failures:
        raise RuntimeError(f"{failed.file.name}: {failed.reason}")
    ids = {
        outcome.file.name: outcome.stored.file.file_id
        for outcome in result.outcomes
        if outcome.stored is not None
    }
    return Stored(ids=ids, new=result.ingested)


def _written(files: Sequence[tuple[str, str]], folder: Path) -> list[NamedFile]:
    folder.mkdir(parents=True, exist_ok=True)
    named = [NamedFile(folder / name, name) for name, _ in files]
    for file, (_, text) in zip(named, files, strict=True):
        file.path.write_text(text, encoding="utf-8")
    return named


async def fill(
    data_dir: Path, corpus: Path, *, embedding: EmbeddingModel, first: int, last: int
) -> AsyncGenerator[Filled]:
    """Store the passages from the `first` to before the `last`, telling what is done so far."""
    source = islice(endless(corpus), first, last)
    filled = NOTHING
    async with opened(data_dir, embedding) as ingestion:
        for batch in _batches(source, first=first):
            started, processor = time.perf_counter(), time.process_time()
            stored = await store(batch, ingestion=ingestion, folder=data_dir.with_suffix(".texts"))
            filled = filled.and_then(
                chunks=min(last - first, filled.chunks + FILES_AT_A_TIME * PASSAGES_PER_FILE),
                new=stored.new * PASSAGES_PER_FILE,
                seconds=time.perf_counter() - started,
                processor_s=time.process_time() - processor,
            )
            yield filled


def _batches(source: Iterator[Passage], *, first: int) -> Iterator[list[tuple[str, str]]]:
    number = first // PASSAGES_PER_FILE
    while True:
        batch: list[tuple[str, str]] = []
        while len(batch) < FILES_AT_A_TIME and (found := list(islice(source, PASSAGES_PER_FILE))):
            batch.append((f"{number:05}.txt", as_paragraphs(found)))
            number += 1
        if not batch:
            return
        yield batch


async def store_large(
    data_dir: Path, corpus: Path, *, embedding: EmbeddingModel, passages: int
) -> str:
    """Ingest one file of so many passages; its id."""
    text = as_paragraphs(list(islice(endless(corpus), passages)))
    async with opened(data_dir, embedding) as ingestion:
        folder = data_dir.with_suffix(".texts")
        return (await store([(LARGE, text)], ingestion=ingestion, folder=folder)).ids[LARGE]
