"""What the routes are given: the use cases, the options, and who is asking."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias, cast

from fastapi import Depends, Request

from privategpt.api.metrics import Metrics
from privategpt.api.profiles import ModelCatalog
from privategpt.api.turns import Turns
from privategpt.domain.access import ApiKey
from privategpt.domain.answers import AnswerEvent
from privategpt.domain.documents import Document, DocumentFilter, DocumentInfo
from privategpt.domain.jobs import Job
from privategpt.domain.library import StoredFile
from privategpt.domain.ports import Embeddings, Upload
from privategpt.domain.websearch import AllowanceUsage
from privategpt.services.answering import AnswerRequest
from privategpt.services.attachments import ReadFile
from privategpt.services.ingestion import IngestRequest
from privategpt.services.reranking import Ranking
from privategpt.services.retrieval import Retrieved

Check: TypeAlias = Callable[[], Awaitable[None]]
"""Returns if a part answers; raises `Unavailable` otherwise."""


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """The operator's choices for the edge. Sizes in bytes, times in seconds.

    A body must arrive within `read_grace_s` plus one second for every `min_read_rate` bytes.
    `public_url` is how clients reach this server; None takes it from each request.
    """

    max_body_bytes: int = 20_000_000
    max_upload_bytes: int = 100_000_000
    read_grace_s: float = 30.0
    min_read_rate: int = 16_384
    send_timeout_s: float = 60.0
    heartbeat_s: float = 15.0
    shutdown_grace_s: float = 10.0
    check_timeout_s: float = 5.0
    dialect: Literal["auto", "openai", "privategpt"] = "auto"
    public_url: str | None = None
    remote_images: bool = False
    upload_dir: Path | None = None
    cors_origins: tuple[str, ...] = ()


class Answers(Protocol):
    """The use case behind both completion endpoints."""

    def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """See `services.answering.Answering.answer`."""
        ...


class TokenCounter(Protocol):
    """The use case behind /v1/messages/count_tokens."""

    async def count_tokens(self, request: AnswerRequest) -> int:
        """See `services.answering.Answering.count_tokens`."""
        ...


class Attachments(Protocol):
    """The use case behind the files that come with a question."""

    async def read(self, upload: Upload) -> ReadFile:
        """See `services.attachments.AttachmentReader.read`."""
        ...


class Library(Protocol):
    """The use case behind ingestion, listing, reading and deletion."""

    async def ingest(self, request: IngestRequest) -> StoredFile:
        """See `services.ingestion.Ingestion.ingest`."""
        ...

    async def list_documents(
        self, tenant: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        """See `services.ingestion.Ingestion.list_documents`."""
        ...

    async def document(self, tenant: str, doc_id: str) -> Document:
        """See `services.ingestion.Ingestion.document`."""
        ...

    async def delete(self, tenant: str, item_id: str) -> None:
        """See `services.ingestion.Ingestion.delete`."""
        ...


class BackgroundIngestion(Protocol):
    """The use case behind `background` and /v1/ingest/jobs."""

    async def submit(self, request: IngestRequest) -> Job:
        """See `services.jobs.Jobs.submit`."""
        ...

    async def job(self, tenant: str, job_id: str) -> Job:
        """See `services.jobs.Jobs.job`."""
        ...

    async def jobs(self, tenant: str, *, limit: int, after: str | None = None) -> list[Job]:
        """See `services.jobs.Jobs.jobs`."""
        ...

    def watch(self, tenant: str, job_id: str) -> AsyncGenerator[Job]:
        """See `services.jobs.Jobs.watch`."""
        ...

    async def cancel(self, tenant: str, job_id: str) -> Job:
        """See `services.jobs.Jobs.cancel`."""
        ...


class Search(Protocol):
    """The use case behind /v1/chunks."""

    async def search(
        self,
        text: str,
        *,
        tenant: str,
        limit: int,
        filter: DocumentFilter,  # noqa: A002
        neighbours: int,
    ) -> Retrieved:
        """See `services.retrieval.Retrieval.search`."""
        ...


class Embedder(Protocol):
    """The use case behind /v1/embeddings."""

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Embeddings:
        """See `services.embeddings.EmbeddingService.embed`."""
        ...


class TextRanker(Protocol):
    """The use case behind /v1/rerank."""

    @property
    def name(self) -> str:
        """See `services.reranking.Reranking.name`."""
        ...

    async def rank(self, query: str, texts: Sequence[str], *, limit: int | None = None) -> Ranking:
        """See `services.reranking.Reranking.rank`."""
        ...


class SearchAllowance(Protocol):
    """The use case behind /v1/usage/searches."""

    async def usage(self, tenant: str) -> AllowanceUsage:
        """See `services.websearch.WebSearch.usage`."""
        ...


class Authenticator(Protocol):
    """Recognises the keys of a server that has them."""

    async def identify(self, text: bytes) -> ApiKey:
        """See `services.access.Keys.identify`."""
        ...


def admit_all(tenant: str) -> None:
    """No limit on requests."""


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases, with the clock and the source of ids that replies are stamped with.

    `checks` has one check for each part that readiness depends on, by the part's name. Without
    `keys` everybody is the one tenant of a server without keys. `reranking` is None where the
    operator chose no reranker. `admit` raises `TooManyRequests`
    where a tenant has made too many.
    """

    answering: Answers
    token_counter: TokenCounter
    attachments: Attachments
    ingestion: Library
    jobs: BackgroundIngestion
    retrieval: Search
    embeddings: Embedder
    web_search: SearchAllowance
    checks: Mapping[str, Check]
    models: ModelCatalog
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    keys: Authenticator | None = None
    reranking: TextRanker | None = None
    admit: Callable[[str], None] = admit_all


def services_of(request: Request) -> Services:
    """The use cases of the app that serves `request`."""
    return cast(Services, request.app.state.services)


def options_of(request: Request) -> ApiOptions:
    """The options of the app that serves `request`."""
    return cast(ApiOptions, request.app.state.options)


def metrics_of(request: Request) -> Metrics:
    """The metrics of the app that serves `request`."""
    return cast(Metrics, request.app.state.metrics)


def turns_of(request: Request) -> Turns:
    """What the requests and streams of the app that serves `request` share the loop by."""
    return cast(Turns, request.app.state.turns)


def base_url(request: Request) -> str:
    """Where the client reaches this server, without a slash at the end."""
    return (options_of(request).public_url or str(request.base_url)).rstrip("/")


# Coroutines, as FastAPI sends every plain function through a thread. Each takes FastAPI a twentieth
# of a millisecond, so what answers in a few calls the functions above.
async def _services(request: Request) -> Services:
    return services_of(request)


async def _options(request: Request) -> ApiOptions:
    return options_of(request)


ServicesDep = Annotated[Services, Depends(_services)]
OptionsDep = Annotated[ApiOptions, Depends(_options)]
