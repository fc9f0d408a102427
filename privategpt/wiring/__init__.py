"""Builds the object graph: the only module that names concrete backends.

What is opened is closed in reverse order, whatever happens; nothing is built per request.
"""

from __future__ import annotations

import asyncio
import shutil
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

from privategpt.api.deps import ApiOptions, Services
from privategpt.api.metrics import Metrics
from privategpt.api.profiles import CitationStyle, ModelCatalog, ModelProfile
from privategpt.backends.state.database import Database
from privategpt.backends.state.opening import open_database
from privategpt.backends.state.quota import SqlQuota
from privategpt.backends.state.store import SqlStateStore
from privategpt.backends.vectors.shard import optimize_folder
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.errors import InvalidSettings
from privategpt.domain.library import StateStore, VectorIndex
from privategpt.domain.observing import UNOBSERVED, Observer
from privategpt.domain.ports import EmbeddingModel
from privategpt.domain.websearch import Quota
from privategpt.services.admission import AdmittedAnswers
from privategpt.services.allowance import Allowance
from privategpt.services.answering import Answering
from privategpt.services.attachments import AttachmentReader
from privategpt.services.embeddings import EmbeddingService
from privategpt.services.ingestion import Ingestion
from privategpt.services.limits import BoundedAnswers, RequestRate, TenantLimits
from privategpt.services.maintenance import refuse_changed_embedding, refuse_strange_index
from privategpt.services.observed import ObservedAnswers
from privategpt.services.reranking import Reranking
from privategpt.services.retrieval import Retrieval
from privategpt.services.websearch import WebSearch
from privategpt.settings import LlmSettings, Settings, WebSearchSettings
from privategpt.wiring.access import (
    keys_to_serve_with,
    make_keys,
    state_location,
    tenant_limits,
)
from privategpt.wiring.data_folder import (
    UPLOADS,
    VECTORS,
    require_data_folder,
    require_library,
)
from privategpt.wiring.describing import describe
from privategpt.wiring.engines import (
    context_tokens,
    load_embedding,
    load_reranker,
    make_search_engine,
    make_verifier,
    open_index,
    quantization_of,
    start_llm,
)
from privategpt.wiring.ingesting import OpenIngestion, open_ingestion, open_jobs, open_kept_uploads


class Closable(Protocol):
    """What is given back at the end."""

    async def close(self) -> None:
        """Give it back."""
        ...


PartT = TypeVar("PartT", bound=Closable)

Purpose: TypeAlias = Literal["use", "check", "reindex"]
"""What a library is opened for. To check or reindex it, it must be there, whatever its index has;
to reindex it, the index of another embedding model is replaced instead of refused."""


@dataclass(frozen=True, slots=True)
class OpenLibrary:
    """The stored documents with what it takes to add, check and rebuild them."""

    state: StateStore
    index: VectorIndex
    embedding: EmbeddingModel
    ingesting: OpenIngestion
    quota: Quota
    tenant: str = DEFAULT_TENANT

    @property
    def ingestion(self) -> Ingestion:
        """Adds to it."""
        return self.ingesting.ingestion


@dataclass(frozen=True, slots=True)
class OpenServer:
    """All that an application needs, and the lines that say what it is made of."""

    services: Services
    options: ApiOptions
    metrics: Metrics
    description: tuple[str, ...]


@asynccontextmanager
async def open_library(
    settings: Settings, *, purpose: Purpose = "use"
) -> AsyncGenerator[OpenLibrary]:
    """Open the stored documents and sweep what an earlier process left half done.

    Raises `StartRefused`.
    """
    if purpose != "use":
        require_library(settings)
    require_data_folder(settings)
    async with AsyncExitStack() as stack:
        database = await _opened(stack, open_database(state_location(settings)))
        yield await _library(stack, settings, database, purpose=purpose, owner=_new_id())


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncGenerator[OpenServer]:
    """Open everything that serving needs. Raises `StartRefused`."""
    require_data_folder(settings)
    async with AsyncExitStack() as stack:
        # The folder's lock is taken, and what nobody could use refused, before anything slow.
        database = await _opened(stack, open_database(state_location(settings)))
        kept = await open_kept_uploads(stack, settings)
        keys = make_keys(database)
        stack.push_async_callback(keys.close)
        required_keys = await keys_to_serve_with(settings, keys)
        limits = tenant_limits(settings)
        metrics = Metrics(clock=time.monotonic)
        # The engine's process loads its model while this one loads its own.
        starting = asyncio.create_task(start_llm(settings.llm))
        try:
            library = await _library(
                stack, settings, database, purpose="use", owner=kept.home, observer=metrics
            )
        except BaseException:
            starting.cancel()
            await asyncio.wait([starting])
            raise
        llm = await _opened(stack, starting)
        reranking = await _reranking(stack, settings, observer=metrics)
        retrieval = Retrieval(
            embedding=library.embedding,
            index=library.index,
            state=library.state,
            reranking=reranking,
            observer=metrics,
        )
        web = _web_search(settings.web_search, library.quota, limits, metrics)
        stack.push_async_callback(web.close)
        answering = Answering(
            llm=llm,
            embedding=library.embedding,
            retrieval=retrieval,
            web=web,
            state=library.state,
            context_chunks=settings.retrieval.context_chunks,
            context_tokens=context_tokens(settings),
            remove_foreign_links=settings.answers.remove_foreign_links,
            verifier=await make_verifier(settings.answers, llm),
        )
        jobs = await open_jobs(
            stack,
            settings,
            database=database,
            ingesting=library.ingesting,
            uploads=kept,
            observer=metrics,
            now=_now,
            new_id=_new_id,
        )
        services = Services(
            answering=BoundedAnswers(
                AdmittedAnswers(
                    ObservedAnswers(answering, observer=metrics),
                    at_once=_answers_at_once(settings.llm),
                ),
                limits=limits,
            ),
            token_counter=answering,
            attachments=AttachmentReader(parser=library.ingesting.parser),
            ingestion=library.ingestion,
            jobs=jobs,
            retrieval=retrieval,
            embeddings=EmbeddingService(model=library.embedding, observer=metrics),
            web_search=web,
            checks={"state": library.state.check, "vectors": library.index.check, "llm": llm.check},
            models=_models(settings, library.embedding, reranking),
            now=_now,
            new_id=_new_id,
            keys=required_keys,
            reranking=reranking,
            admit=RequestRate(limits=limits, clock=time.monotonic).admit,
        )
        yield OpenServer(
            services=services,
            metrics=metrics,
            options=edge_options(
                settings, uploads=_fresh_folder(settings.server.data_dir / UPLOADS)
            ),
            description=describe(
                settings,
                llm=llm,
                embedding=library.embedding,
                reranking=reranking,
                keys=required_keys,
            ),
        )


async def optimize_index(settings: Settings) -> bool:
    """Compact the embedded index, build its graph and take up another quantization; False if there
    was nothing to do.

    Blocks the whole process. Raises `FolderInUse` where a server has it open.
    """
    if settings.vectors.mode == "server":
        raise InvalidSettings("A Qdrant server optimizes its collections by itself")
    require_library(settings)
    require_data_folder(settings)
    path = settings.server.data_dir / VECTORS
    return await asyncio.to_thread(
        optimize_folder, path, quantization=quantization_of(settings.vectors)
    )


async def _library(
    stack: AsyncExitStack,
    settings: Settings,
    database: Database,
    *,
    purpose: Purpose,
    owner: str,
    observer: Observer = UNOBSERVED,
) -> OpenLibrary:
    state = SqlStateStore(database=database)
    embedding = await _opened(stack, load_embedding(settings.embedding))
    if purpose != "reindex":
        await refuse_changed_embedding(state=state, embedding=embedding)
    index = await _opened(stack, open_index(settings, embedding, replace=purpose == "reindex"))
    ingesting = await open_ingestion(
        stack,
        settings,
        database=database,
        state=state,
        embedding=embedding,
        index=index,
        owner=owner,
        observer=observer,
        now=_now,
        new_id=_new_id,
    )
    if purpose == "use":
        await refuse_strange_index(state=state, index=index, alone=database.is_ours_alone)
    return OpenLibrary(
        state=state,
        index=index,
        embedding=embedding,
        ingesting=ingesting,
        quota=SqlQuota(database=database),
    )


async def _reranking(
    stack: AsyncExitStack, settings: Settings, *, observer: Observer
) -> Reranking | None:
    model = await load_reranker(settings.rerank)
    if model is None:
        return None
    stack.push_async_callback(model.close)
    return Reranking(model=model, candidates=settings.rerank.candidates, observer=observer)


async def _opened(stack: AsyncExitStack, opening: Awaitable[PartT]) -> PartT:
    part = await opening
    stack.push_async_callback(part.close)
    return part


def _web_search(
    settings: WebSearchSettings, quota: Quota, limits: TenantLimits, observer: Observer
) -> WebSearch:
    own = {
        tenant: limit.searches_per_day
        for tenant, limit in limits.of_some.items()
        if limit.searches_per_day is not None
    }
    return WebSearch(
        engine=make_search_engine(settings),
        allowance=Allowance(quota=quota, per_day=settings.searches_per_day, now=_now, own=own),
        results=settings.results,
        deadline_s=settings.deadline_s,
        observe=observer.searched,
    )


def _models(
    settings: Settings, embedding: EmbeddingModel, reranking: Reranking | None
) -> ModelCatalog:
    default = settings.answers.citation_style
    return ModelCatalog(
        profiles=tuple(
            ModelProfile(
                id=model.id,
                use_context=model.use_context,
                citation_styles=frozenset(
                    map(
                        CitationStyle,
                        default if model.citation_style is None else model.citation_style,
                    )
                ),
                web_search=model.web_search,
                context_only=model.context_only,
                system_prompt=model.system_prompt,
            )
            for model in settings.models
        ),
        embedding_models=(embedding.name,),
        rerank_models=(reranking.name,) if reranking else (),
        refuse_unknown=settings.answers.unknown_model == "refuse",
    )


def _fresh_folder(path: Path) -> Path:
    """An empty folder for files on their way in; what a killed process left there goes."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, parents=True)
    return path


def edge_options(settings: Settings, *, uploads: Path) -> ApiOptions:
    """What the settings say of the edge; uploads lie in that folder while they are read."""
    server = settings.server
    return ApiOptions(
        max_body_bytes=server.max_body_bytes,
        max_upload_bytes=server.max_upload_bytes,
        read_grace_s=server.body_grace_s,
        heartbeat_s=server.heartbeat_s,
        shutdown_grace_s=server.shutdown_grace_s,
        dialect=server.dialect,
        public_url=server.public_url,
        remote_images=settings.llm.remote_images,
        cors_origins=server.cors_origins,
        upload_dir=uploads,
    )


def _answers_at_once(llm: LlmSettings) -> int:
    """How many are taken on: those that the engine writes at once, and those that may wait."""
    return llm.max_waiting + (llm.slots if llm.mode == "embedded" else 0)


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid.uuid4())
