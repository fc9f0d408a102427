"""Fakes of the other use cases that the HTTP edge calls, and the app over all of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from fastapi import FastAPI

from privategpt.api.deps import (
    ApiOptions,
    Authenticator,
    Check,
    Services,
    TextRanker,
    admit_all,
)
from privategpt.api.profiles import CitationStyle, ModelCatalog, ModelProfile
from privategpt.app import create_app
from privategpt.domain.documents import (
    Chunk,
    Document,
    DocumentFilter,
    DocumentInfo,
    File,
    RetrievedChunk,
)
from privategpt.domain.errors import NotFound
from privategpt.domain.library import StoredFile
from privategpt.domain.ports import Embeddings
from privategpt.domain.websearch import AllowanceUsage
from privategpt.services.attachments import AttachmentReader
from privategpt.services.ingestion import IngestRequest
from privategpt.services.reranking import Reranking
from privategpt.services.retrieval import Retrieved
from tests.fakes.answering import FakeAnswers
from tests.fakes.jobs import FakeJobs
from tests.fakes.parser import FakeParser
from tests.fakes.reranker import FakeReranker

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DIMENSIONS = 4


def document_info(doc_id: str = "doc-1", **metadata: str | int | float | bool) -> DocumentInfo:
    """A document's facts; its file is `file-1`."""
    facts = {"file_name": "report.pdf", "page_label": "2", **metadata}
    return DocumentInfo(doc_id=doc_id, file_id="file-1", position=0, metadata=facts)


def retrieved_chunk(text: str = "Sales grew 20%.", *, score: float = 0.5) -> RetrievedChunk:
    """A chunk at the start of `doc-1`, with one neighbour on each side."""
    chunk = _chunk(text, 1)
    return RetrievedChunk(
        chunk=chunk,
        document=document_info(),
        score=score,
        previous=(_chunk("Before.", 0),),
        next=(_chunk("After.", 2),),
    )


def _chunk(text: str, position: int) -> Chunk:
    return Chunk(
        chunk_id=f"chunk-{position}",
        doc_id="doc-1",
        position=position,
        start=0,
        end=len(text),
        text=text,
    )


@dataclass(frozen=True)
class Ingested:
    """What the library was given, its file read while it was there."""

    request: IngestRequest
    content: bytes


@dataclass
class FakeLibrary:
    """Keeps documents of one text each in memory."""

    ingested: list[Ingested] = field(default_factory=list[Ingested])
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    error: Exception | None = None

    async def ingest(self, request: IngestRequest) -> StoredFile:
        """Store the bytes as one document of text."""
        self._require_whole()
        content = request.upload.path.read_bytes()
        self.ingested.append(Ingested(request, content))
        number = len(self.ingested)
        document = Document(
            doc_id=f"doc-{number}",
            file_id=f"file-{number}",
            position=0,
            text=content.decode(errors="replace"),
            headings=(),
            metadata={"file_name": request.upload.name, **request.metadata},
        )
        self.documents[document.doc_id] = document
        file = File(
            file_id=document.file_id,
            tenant=request.tenant,
            name=request.upload.name,
            sha256="0" * 64,
            size_bytes=len(content),
            media_type="text/plain",
            created_at=NOON,
        )
        return StoredFile(file=file, documents=(_info(document),))

    def _require_whole(self) -> None:
        if self.error is not None:
            raise self.error

    async def list_documents(
        self, tenant: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        """In order of ingestion."""
        found = [_info(document) for document in self.documents.values()]
        if after is not None:
            ids = [info.doc_id for info in found]
            if after not in ids:
                raise NotFound("There is no such document", param="after")
            found = found[ids.index(after) + 1 :]
        return found[:limit]

    async def document(self, tenant: str, doc_id: str) -> Document:
        """One document."""
        self._require_whole()
        if doc_id not in self.documents:
            raise NotFound("There is no such document")
        return self.documents[doc_id]

    async def delete(self, tenant: str, item_id: str) -> None:
        """Forget it."""
        self._require_whole()
        if self.documents.pop(item_id, None) is None:
            raise NotFound("There is no such document or file")


def _info(document: Document) -> DocumentInfo:
    return DocumentInfo(document.doc_id, document.file_id, document.position, document.metadata)


@dataclass(frozen=True)
class Searched:
    """One search as it was asked for."""

    text: str
    tenant: str
    limit: int
    filter: DocumentFilter
    neighbours: int


@dataclass
class FakeSearch:
    """Finds the same chunks for every question."""

    found: tuple[RetrievedChunk, ...] = (retrieved_chunk(),)
    asked: list[Searched] = field(default_factory=list[Searched])
    error: Exception | None = None

    async def search(
        self,
        text: str,
        *,
        tenant: str,
        limit: int,
        filter: DocumentFilter,  # noqa: A002
        neighbours: int,
    ) -> Retrieved:
        """What it was made with."""
        if self.error is not None:
            raise self.error
        self.asked.append(Searched(text, tenant, limit, filter, neighbours))
        return Retrieved(chunks=self.found, tokens=len(text))


@dataclass
class FakeEmbedder:
    """A vector that tells where in the batch its text was, and how long it is."""

    asked: list[tuple[tuple[str, ...], int | None]] = field(
        default_factory=list[tuple[tuple[str, ...], int | None]]
    )

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Embeddings:
        """Vectors in the order of the texts."""
        self.asked.append((tuple(texts), dimensions))
        vectors = tuple(
            array("f", [index, len(text), 0.5, -1.0]) for index, text in enumerate(texts)
        )
        return Embeddings(vectors=vectors, tokens=sum(map(len, texts)))


async def ready() -> None:
    """A check that passes."""


def counter(prefix: str = "id") -> Callable[[], str]:
    """Ids in order: `id1`, `id2`, …"""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"


def catalog() -> ModelCatalog:
    """The shipped profiles, one with a slash and a colon, and an embedding model."""
    return ModelCatalog(
        profiles=(
            ModelProfile(id="private-gpt"),
            ModelProfile(
                id="private-gpt-docs",
                use_context=True,
                citation_styles=frozenset({CitationStyle.ANNOTATIONS}),
            ),
            ModelProfile(id="org/model:tag", system_prompt="Be brief.", engine_model="engine-x"),
        ),
        embedding_models=("all-minilm",),
    )


@dataclass
class FakeAllowance:
    """Some searches of the day are used."""

    used: int = 3

    async def usage(self, tenant: str) -> AllowanceUsage:
        """As of noon."""
        midnight = datetime(2026, 3, 2, tzinfo=UTC)
        return AllowanceUsage(used=self.used, limit=10, resets_at=midnight)


def fake_reranking() -> Reranking:
    """Ranks by shared words."""
    return Reranking(model=FakeReranker(), candidates=1)


@dataclass
class Edge:
    """The use cases of one app under test."""

    answers: FakeAnswers = field(default_factory=FakeAnswers)
    parser: FakeParser = field(default_factory=FakeParser)
    library: FakeLibrary = field(default_factory=FakeLibrary)
    jobs: FakeJobs = field(default_factory=FakeJobs)
    search: FakeSearch = field(default_factory=FakeSearch)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    checks: dict[str, Check] = field(
        default_factory=lambda: {"state": ready, "vectors": ready, "llm": ready}
    )
    models: ModelCatalog = field(default_factory=catalog)
    allowance: FakeAllowance = field(default_factory=FakeAllowance)
    keys: Authenticator | None = None
    reranking: TextRanker | None = field(default_factory=fake_reranking)
    admit: Callable[[str], None] = admit_all

    def app(self, options: ApiOptions | None = None) -> FastAPI:
        """The real app over these fakes."""
        services = Services(
            answering=self.answers,
            token_counter=self.answers,
            attachments=AttachmentReader(parser=self.parser),
            ingestion=self.library,
            jobs=self.jobs,
            retrieval=self.search,
            embeddings=self.embedder,
            checks=self.checks,
            web_search=self.allowance,
            models=self.models,
            now=lambda: NOON,
            new_id=counter(),
            keys=self.keys,
            reranking=self.reranking,
            admit=self.admit,
        )
        return create_app(services, options=options or ApiOptions())
