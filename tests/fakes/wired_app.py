"""The real app over the real use cases; only what is behind the ports is fake."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastapi import FastAPI

from privategpt.api.deps import ApiOptions, Services
from privategpt.api.profiles import ModelCatalog
from privategpt.app import create_app
from privategpt.domain.ports import Parser
from privategpt.services.answering import Answering
from privategpt.services.attachments import AttachmentReader
from privategpt.services.embeddings import EmbeddingService
from privategpt.services.websearch import WebSearch
from tests.fakes.edge import NOON, catalog, counter
from tests.fakes.jobs import FakeJobs
from tests.fakes.wired import WiredLibrary


@dataclass
class WiredApp:
    """Serves `library`; with `parser`, what comes with a question is read by that one; with `web`,
    that one searches.
    """

    library: WiredLibrary
    models: ModelCatalog = field(default_factory=catalog)
    parser: Parser | None = None
    web: WebSearch | None = None

    def app(self, options: ApiOptions | None = None) -> FastAPI:
        """The app, with the parts that the library has now."""
        wired = self.library
        web = self.web or wired.web
        answering = Answering(
            llm=wired.llm,
            embedding=wired.embedding,
            retrieval=wired.retrieval,
            web=web,
            state=wired.state,
            context_chunks=wired.context_chunks,
        )
        services = Services(
            answering=answering,
            token_counter=answering,
            attachments=AttachmentReader(parser=self.parser or wired.parser),
            ingestion=wired.ingestion,
            jobs=FakeJobs(),
            retrieval=wired.retrieval,
            embeddings=EmbeddingService(model=wired.embedding),
            checks={},
            web_search=web,
            models=self.models,
            now=lambda: NOON,
            new_id=counter(),
        )
        return create_app(services, options=options or ApiOptions())
