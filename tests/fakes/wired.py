"""The real services over fakes of every port: a whole library in memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from privategpt.domain.documents import Metadata, Scalar
from privategpt.domain.library import StoredFile
from privategpt.domain.ports import Upload
from privategpt.domain.verification import Verifier
from privategpt.domain.websearch import SearchOutcome
from privategpt.services.allowance import Allowance
from privategpt.services.answering import Answering
from privategpt.services.ingestion import Ingestion, IngestRequest
from privategpt.services.retrieval import Retrieval
from privategpt.services.websearch import WebSearch
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.language_model import ScriptedLanguageModel
from tests.fakes.parser import FakeParser
from tests.fakes.state import FakeStateStore
from tests.fakes.vectors import FakeVectorIndex
from tests.fakes.websearch import FakeQuota, FakeSearchEngine

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass(slots=True)
class WiredLibrary:
    """Ids are `file-1`, `file-2`, …; the clock stands still. `folder` is for uploads."""

    folder: Path
    llm: ScriptedLanguageModel = field(default_factory=ScriptedLanguageModel)
    parser: FakeParser = field(default_factory=FakeParser)
    embedding: FakeEmbeddingModel = field(default_factory=FakeEmbeddingModel)
    index: FakeVectorIndex = field(default_factory=FakeVectorIndex)
    state: FakeStateStore = field(default_factory=FakeStateStore)
    context_chunks: int = 4
    context_tokens: int | None = None
    search_engine: FakeSearchEngine | None = None
    quota: FakeQuota = field(default_factory=FakeQuota)
    searches_per_day: int = 10
    verifier: Verifier | None = None
    outcomes: list[SearchOutcome] = field(default_factory=list[SearchOutcome])
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def retrieval(self) -> Retrieval:
        """Searches this library."""
        return Retrieval(embedding=self.embedding, index=self.index, state=self.state)

    @property
    def web(self) -> WebSearch:
        """Searches with `search_engine`."""
        return WebSearch(
            engine=self.search_engine,
            allowance=Allowance(quota=self.quota, per_day=self.searches_per_day, now=lambda: NOW),
            results=5,
            deadline_s=5.0,
            observe=self.outcomes.append,
        )

    @property
    def answering(self) -> Answering:
        """Answers from this library."""
        return Answering(
            llm=self.llm,
            embedding=self.embedding,
            retrieval=self.retrieval,
            web=self.web,
            state=self.state,
            context_chunks=self.context_chunks,
            context_tokens=self.context_tokens,
            verifier=self.verifier,
        )

    @property
    def ingestion(self) -> Ingestion:
        """Adds to this library."""
        return Ingestion(
            parser=self.parser,
            embedding=self.embedding,
            index=self.index,
            state=self.state,
            now=lambda: NOW,
            new_id=lambda: f"file-{next(self._numbers)}",
        )

    def request(
        self,
        name: str,
        text: str,
        *,
        tenant: str = "ann",
        metadata: Metadata | None = None,
        replaces: bool = False,
    ) -> IngestRequest:
        """An upload of `text` under `name`, as `FakeParser` reads it."""
        path = self.folder / f"upload-{next(self._numbers)}"
        path.write_text(text, encoding="utf-8")
        given: dict[str, Scalar | None] = dict(metadata or {})
        return IngestRequest(
            upload=Upload(path=path, name=name), tenant=tenant, metadata=given, replaces=replaces
        )

    async def add(self, name: str, text: str, *, tenant: str = "ann") -> StoredFile:
        """Ingest `text` under `name`."""
        return await self.ingestion.ingest(self.request(name, text, tenant=tenant))
