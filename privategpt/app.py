"""Assembles the application: routes, error handlers, bounds; everything else is handed in."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from fastapi import FastAPI
from opentelemetry.trace import TracerProvider
from starlette.middleware.cors import CORSMiddleware

from privategpt.api import errors
from privategpt.api.auth import Authentication
from privategpt.api.bounds import BodyBounds
from privategpt.api.deps import ApiOptions, Services
from privategpt.api.head import HeadRequests
from privategpt.api.metrics import Metrics
from privategpt.api.one_by_one import OneByOne
from privategpt.api.origins import origin_of
from privategpt.api.request_ids import RequestIds
from privategpt.api.request_log import RequestLog
from privategpt.api.routes import (
    chat,
    chunks,
    completions,
    docs,
    documents,
    embeddings,
    health,
    ingestion,
    jobs,
    messages,
    models,
    rerank,
    usage,
)
from privategpt.api.routes import metrics as metrics_route
from privategpt.api.scopes import refuse_routes_without_scope
from privategpt.api.turns import Turns

Lifespan: TypeAlias = Callable[[FastAPI], AbstractAsyncContextManager[None]]

DESCRIPTION = (
    "Answers questions from your documents, with sources. OpenAI's API, extended: see the fields "
    "of the completion endpoints."
)


DEFAULT_OPTIONS = ApiOptions()


@asynccontextmanager
async def _no_lifespan(_: FastAPI) -> AsyncGenerator[None]:
    yield


def _page_origins(options: ApiOptions) -> tuple[str, ...]:
    """The pages that may use a server without keys, besides those of the address it is asked at."""
    own = () if options.public_url is None else (origin_of(options.public_url),)
    return options.cors_origins + own


def create_app(
    services: Services,
    *,
    options: ApiOptions = DEFAULT_OPTIONS,
    metrics: Metrics | None = None,
    tracer_provider: TracerProvider | None = None,
    clock: Callable[[], float] = time.monotonic,
    lifespan: Lifespan = _no_lifespan,
    version: str = "0.1.0",
) -> FastAPI:
    """The ASGI application over `services`; `lifespan` opens and closes what is behind them.

    `metrics` is what `services` are observed by; requests are counted there too. Without a
    `tracer_provider` nothing is traced, whatever the environment says to FastAPI.
    """
    metrics = metrics or Metrics(clock=clock)
    app = FastAPI(
        title="PrivateGPT",
        description=DESCRIPTION,
        version=version,
        lifespan=lifespan,
        telemetry={
            "tracing": tracer_provider is not None,
            "tracer_provider": tracer_provider,
            "metrics": False,
            # It would send on the text of exceptions, and of bodies that fail their schema.
            "logs": False,
            "auto_configure": False,
        },
        # Ours ask no CDN: `api/routes/docs.py`.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # A body without a Content-Type is read as JSON, as curl users expect.
        strict_content_type=False,
    )
    app.state.services = services
    app.state.options = options
    app.state.metrics = metrics
    app.state.turns = Turns()
    # A request is held against one after the other: those that are answered soonest come first.
    for family in (
        chunks,
        embeddings,
        chat,
        completions,
        messages,
        ingestion,
        jobs,
        documents,
        rerank,
        models,
        usage,
        health,
        metrics_route,
        docs,
    ):
        app.include_router(family.router)
    errors.install(app)
    refuse_routes_without_scope(app.routes)
    app.add_middleware(HeadRequests)
    app.add_middleware(BodyBounds, options=options)
    app.add_middleware(
        Authentication,
        keys=services.keys,
        admit=services.admit,
        page_origins=_page_origins(options),
    )
    if options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=[
                "x-request-id",
                "request-id",
                "retry-after",
                "x-should-retry",
                "location",
            ],
            # Pages of the internet reach a server at home or in an office by this alone.
            allow_private_network=True,
        )
    app.add_middleware(OneByOne, turns=app.state.turns)
    app.add_middleware(RequestLog, metrics=metrics, clock=clock)
    app.add_middleware(RequestIds, new_id=services.new_id)
    return app
