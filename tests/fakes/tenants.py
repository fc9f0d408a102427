"""The app with keys over the real state store and vector index, in this process.

Only the models are fakes; so what one tenant can see of another is seen here.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx
from fastapi import FastAPI

from privategpt.api.deps import ApiOptions, Services
from privategpt.app import create_app
from privategpt.backends.state.jobs import SqlJobStore
from privategpt.backends.state.keys import SqlKeyStore
from privategpt.backends.state.opening import open_database
from privategpt.backends.state.quota import SqlQuota
from privategpt.backends.state.store import SqlStateStore
from privategpt.backends.state.uploads import open_uploads
from privategpt.backends.state.usage import SqlUsage
from privategpt.backends.vectors.edge import open_edge_index
from privategpt.domain.access import Scope
from privategpt.domain.library import StateStore, VectorIndex
from privategpt.services.access import Keys
from privategpt.services.allowance import Allowance
from privategpt.services.answering import Answering
from privategpt.services.attachments import AttachmentReader
from privategpt.services.embeddings import EmbeddingService
from privategpt.services.ingestion import Ingestion
from privategpt.services.jobs import Jobs
from privategpt.services.limits import BoundedAnswers, RequestRate, Storage, TenantLimits
from privategpt.services.retrieval import Retrieval
from privategpt.services.websearch import WebSearch
from tests.fakes.edge import catalog, ready
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.language_model import ScriptedLanguageModel
from tests.fakes.parser import FakeParser
from tests.fakes.websearch import FakeSearchEngine

UNLIMITED = TenantLimits()


@dataclass(frozen=True, slots=True)
class SharedServer:
    """A server that several tenants share."""

    app: FastAPI
    services: Services
    ingestion: Ingestion
    retrieval: Retrieval
    state: StateStore
    index: VectorIndex
    keys: Keys
    llm: ScriptedLanguageModel
    search_engine: FakeSearchEngine

    async def client(
        self, tenant: str, *, scopes: Sequence[Scope] = tuple(Scope)
    ) -> httpx.AsyncClient:
        """A client with a new key of `tenant`; the caller closes it."""
        key = await self.keys.create(tenant, scopes=scopes)
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=False),
            base_url="http://gpt.test",
            headers={"Authorization": f"Bearer {key.text}"},
        )


@asynccontextmanager
async def shared_server(
    folder: Path, *, limits: TenantLimits = UNLIMITED
) -> AsyncGenerator[SharedServer]:
    """Open one with its data in `folder`."""
    embedding, llm, parser = FakeEmbeddingModel(), ScriptedLanguageModel(), FakeParser()
    database = await open_database(folder)
    index = await open_edge_index(
        folder / "vectors", dimensions=embedding.dimensions, candidates=100
    )
    state = SqlStateStore(database=database)
    keys = Keys(store=SqlKeyStore(database=database), now=_now, random_bytes=secrets.token_bytes)
    retrieval = Retrieval(embedding=embedding, index=index, state=state)
    room = Storage(limits=limits, used=SqlUsage(database=database).stored_bytes).room
    ingestion = Ingestion(
        parser=parser,
        embedding=embedding,
        index=index,
        state=state,
        now=_now,
        new_id=lambda: str(uuid4()),
        room=room,
    )
    uploads = open_uploads(folder / "jobs")
    jobs = Jobs(
        ingestion=ingestion,
        store=SqlJobStore(database=database),
        uploads=uploads,
        home=uploads.home,
        now=_now,
        new_id=lambda: str(uuid4()),
        room=room,
    )
    await jobs.start(alone=True)
    engine = FakeSearchEngine(())
    web = WebSearch(
        engine=engine,
        allowance=Allowance(quota=SqlQuota(database=database), per_day=10, now=_now),
        results=5,
        deadline_s=5.0,
        observe=lambda _: None,
    )
    answering = Answering(
        llm=llm,
        embedding=embedding,
        retrieval=retrieval,
        web=web,
        state=state,
        context_chunks=4,
    )
    services = Services(
        answering=BoundedAnswers(answering, limits=limits),
        token_counter=answering,
        attachments=AttachmentReader(parser=parser),
        ingestion=ingestion,
        jobs=jobs,
        retrieval=retrieval,
        embeddings=EmbeddingService(model=embedding),
        web_search=web,
        checks={"state": ready},
        models=catalog(),
        now=_now,
        new_id=lambda: str(uuid4()),
        keys=keys,
        admit=RequestRate(limits=limits, clock=lambda: 0.0).admit,
    )
    app = create_app(services, options=replace(ApiOptions(), upload_dir=folder))
    try:
        yield SharedServer(app, services, ingestion, retrieval, state, index, keys, llm, engine)
    finally:
        await jobs.close()
        await uploads.close()
        await keys.close()
        await index.close()
        await database.close()


def _now() -> datetime:
    return datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
