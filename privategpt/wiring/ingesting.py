"""How files get in: the parser, the ingestion, its background, and who clears up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta

from privategpt.backends.parsers.ocr import OcrOptions, find_tesseract
from privategpt.backends.parsers.workers import WorkerParser
from privategpt.backends.state.database import Database
from privategpt.backends.state.jobs import SqlJobStore
from privategpt.backends.state.leases import SqlLeaseStore
from privategpt.backends.state.uploads import FolderUploads, open_uploads
from privategpt.backends.state.usage import SqlUsage
from privategpt.domain.library import StateStore, VectorIndex
from privategpt.domain.observing import Observer
from privategpt.domain.ports import EmbeddingModel, Parser
from privategpt.services.ingestion import Ingestion, Room
from privategpt.services.jobs import JobLimits, Jobs
from privategpt.services.limits import Storage
from privategpt.services.tending import Tending
from privategpt.settings import IngestionSettings, Settings
from privategpt.wiring.access import tenant_limits
from privategpt.wiring.data_folder import JOBS


@dataclass(frozen=True, slots=True)
class OpenIngestion:
    """What ingests, and what it holds."""

    ingestion: Ingestion
    parser: Parser
    tending: Tending
    room: Room


async def open_ingestion(
    stack: AsyncExitStack,
    settings: Settings,
    *,
    database: Database,
    state: StateStore,
    embedding: EmbeddingModel,
    index: VectorIndex,
    owner: str,
    observer: Observer,
    now: Callable[[], datetime],
    new_id: Callable[[], str],
) -> OpenIngestion:
    """Open the parser and the ingestion, and sweep what no living process works on.

    `owner` is this process's name among those that share the database.
    """
    parser = WorkerParser(
        workers=settings.ingestion.workers,
        timeout_s=settings.ingestion.parse_timeout_s,
        memory_bytes=settings.ingestion.parse_memory_bytes,
        max_pages=settings.ingestion.max_pages,
        ocr=await asyncio.to_thread(_ocr, settings.ingestion),
    )
    stack.push_async_callback(parser.close)
    storage = Storage(limits=tenant_limits(settings), used=SqlUsage(database=database).stored_bytes)
    ingestion = Ingestion(
        parser=parser,
        embedding=embedding,
        index=index,
        state=state,
        now=now,
        new_id=new_id,
        room=storage.room,
        observer=observer,
        owner=owner,
        # Jobs take half of the places, so that whoever waits for a reply finds one.
        at_once=2 * _jobs_at_once(settings),
    )
    tending = Tending(
        ingestion=ingestion,
        leases=None if database.is_ours_alone else SqlLeaseStore(database=database),
        owner=owner,
        now=now,
    )
    await tending.begin()
    stack.push_async_callback(tending.end)
    return OpenIngestion(ingestion=ingestion, parser=parser, tending=tending, room=storage.room)


async def open_kept_uploads(stack: AsyncExitStack, settings: Settings) -> FolderUploads:
    """The folder of background uploads, locked. Raises `FolderInUse`."""
    uploads = await asyncio.to_thread(open_uploads, settings.server.data_dir / JOBS)
    stack.push_async_callback(uploads.close)
    return uploads


async def open_jobs(
    stack: AsyncExitStack,
    settings: Settings,
    *,
    database: Database,
    ingesting: OpenIngestion,
    uploads: FolderUploads,
    observer: Observer,
    now: Callable[[], datetime],
    new_id: Callable[[], str],
) -> Jobs:
    """Begin to work on background ingestions, those of the process before included."""
    own = settings.ingestion
    jobs = Jobs(
        ingestion=ingesting.ingestion,
        store=SqlJobStore(database=database),
        uploads=uploads,
        home=uploads.home,
        now=now,
        new_id=new_id,
        limits=JobLimits(
            at_once=_jobs_at_once(settings),
            most=own.max_jobs,
            most_bytes=own.max_jobs_bytes,
            kept=timedelta(days=own.keep_jobs_days),
        ),
        room=ingesting.room,
        observer=observer,
    )
    stack.push_async_callback(jobs.close)
    await jobs.start(alone=database.is_ours_alone)
    ingesting.tending.also(jobs.tend)
    return jobs


def _jobs_at_once(settings: Settings) -> int:
    """One file more than can be read at once: it is embedded meanwhile."""
    return settings.ingestion.workers + 1


def _ocr(settings: IngestionSettings) -> OcrOptions | None:
    if settings.ocr == "off":
        return None
    return find_tesseract(settings.ocr_languages, page_timeout_s=settings.ocr_page_timeout_s)
