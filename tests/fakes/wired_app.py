"""The real app over the real use cases; only what is behind the ports is fake."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastapi import FastAPI

from privategpt.api.deps import ApiOptions, Services
from privategpt.api.profiles import ModelCatalog
from privategpt.app import create_app
from privategpt.domain.ports import Parser
from privategpt.services.attachments import AttachmentReader
from privategpt.services.embeddings import EmbeddingService
from tests.fakes.edge import NOON, catalog, counter
from tests.fakes.wired import WiredLibrary


@dataclass
class WiredApp:
    """Serves `library`; with `parser`, what comes with a question is read by that one."""

    library: WiredLibrary
    models: ModelCatalog = field(default_factory=catalog)
    parser: Parser | None = None

    def app(self, options: ApiOptions | None = None) -> FastAPI:
        """The app, with the parts that the library has now."""
        wired = self.library
        answering = wired.answering
        services = Services(
            answering=answering,
            token_counter=answering,
            attachments=AttachmentReader(parser=self.parser or wired.parser),
            ingestion=wired.ingestion,
            retrieval=wired.retrieval,
            embeddings=EmbeddingService(model=wired.embedding),
            checks={},
            web_search=wired.web,
            models=self.models,
            now=lambda: NOON,
            new_id=counter(),
        )
        return create_app(services, options=options or ApiOptions())
