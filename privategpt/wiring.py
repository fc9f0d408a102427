"""Builds the object graph: the only module that names concrete backends.

What is opened is closed in reverse order, whatever happens; nothing is built per request.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import SecretStr

from privategpt.api.deps import ApiOptions, Services
from privategpt.api.profiles import CitationStyle, ModelCatalog, ModelProfile
from privategpt.backends.embedding import bundled as bundled_embedding
from privategpt.backends.llm.bundled_model import locate_bundled_model, verify_model
from privategpt.backends.parsers.workers import WorkerParser
from privategpt.backends.state.opening import open_state_store
from privategpt.backends.vectors.edge import open_edge_index
from privategpt.backends.vectors.server import open_server_index
from privategpt.backends.vectors.shard import optimize_folder
from privategpt.domain.errors import InvalidSettings
from privategpt.domain.ports import EmbeddingModel, LanguageModel, StateStore, VectorIndex
from privategpt.services.answering import Answering
from privategpt.services.embeddings import EmbeddingService
from privategpt.services.ingestion import Ingestion
from privategpt.services.maintenance import refuse_changed_embedding
from privategpt.services.retrieval import Retrieval
from privategpt.settings import EmbeddingSettings, LlmSettings, Settings

TENANT = "default"
"""The one tenant of a server without keys, and of the command line."""


class Closable(Protocol):
    """What is given back at the end."""

    async def close(self) -> None:
        """Give it back."""
        ...


PartT = TypeVar("PartT", bound=Closable)


@dataclass(frozen=True, slots=True)
class OpenLibrary:
    """The stored documents with what it takes to add, check and rebuild them."""

    state: StateStore
    index: VectorIndex
    embedding: EmbeddingModel
    ingestion: Ingestion
    tenant: str = TENANT


@dataclass(frozen=True, slots=True)
class OpenServer:
    """All that an application needs, and the lines that say what it is made of."""

    services: Services
    options: ApiOptions
    description: tuple[str, ...]


@asynccontextmanager
async def open_library(
    settings: Settings, *, any_index: bool = False
) -> AsyncGenerator[OpenLibrary]:
    """Open the stored documents and sweep what an earlier process left half done.

    `any_index` replaces an index of another embedding model instead of refusing it: for
    `reindex`. Raises `StartRefused`.
    """
    async with AsyncExitStack() as stack:
        yield await _library(stack, settings, any_index=any_index)


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncGenerator[OpenServer]:
    """Open everything that serving needs. Raises `StartRefused`."""
    async with AsyncExitStack() as stack:
        # The engine's process loads its model while this one loads its own.
        starting = asyncio.create_task(_llm(settings.llm))
        try:
            library = await _library(stack, settings, any_index=False)
        except BaseException:
            starting.cancel()
            await asyncio.wait([starting])
            raise
        llm = await _opened(stack, starting)
        retrieval = Retrieval(embedding=library.embedding, index=library.index, state=library.state)
        services = Services(
            answering=Answering(
                llm=llm,
                embedding=library.embedding,
                retrieval=retrieval,
                state=library.state,
                context_chunks=settings.retrieval.context_chunks,
                remove_foreign_links=settings.answers.remove_foreign_links,
            ),
            ingestion=library.ingestion,
            retrieval=retrieval,
            embeddings=EmbeddingService(model=library.embedding),
            checks={"state": library.state.check, "vectors": library.index.check, "llm": llm.check},
            models=_models(settings, library.embedding),
            now=_now,
            new_id=_new_id,
        )
        yield OpenServer(
            services=services,
            options=_options(settings, uploads=_fresh_folder(settings.server.data_dir / "uploads")),
            description=_description(settings, llm=llm, embedding=library.embedding),
        )


async def optimize_index(settings: Settings) -> bool:
    """Compact the embedded index and build its graph; False if there was nothing to do.

    Blocks the whole process. Raises `FolderInUse` where a server has it open.
    """
    if settings.vectors.mode == "server":
        raise InvalidSettings("A Qdrant server optimizes its collections by itself")
    return await asyncio.to_thread(optimize_folder, settings.server.data_dir / "vectors")


def describe_models(settings: Settings, *, verify: bool) -> list[str]:
    """What is configured and what is on disk, a line each.

    With `verify` the bundled files are read and their checksums compared: `InvalidSettings`.
    """
    llm_file = locate_bundled_model()
    embedding_folder = bundled_embedding.locate()
    if verify:
        verify_model(llm_file)
        bundled_embedding.verify(embedding_folder)
    state = "verified" if verify else "on disk"
    llm, embedding = settings.llm, settings.embedding
    return [
        f"language model   configured: {llm.mode}, {_llm_name(llm)}",
        f"                 bundled:    {llm_file.name} ({state})",
        f"embedding model  configured: {embedding.mode}, {_embedding_name(embedding)}",
        f"                 bundled:    {bundled_embedding.NAME} ({state})",
    ]


async def _library(stack: AsyncExitStack, settings: Settings, *, any_index: bool) -> OpenLibrary:
    # The folder's lock is taken with the store, before anything slow: a second process is told
    # at once.
    state = await _opened(stack, open_state_store(_state_location(settings)))
    embedding = await _opened(stack, _embedding(settings.embedding))
    if not any_index:
        await refuse_changed_embedding(state=state, embedding=embedding)
    index = await _opened(stack, _index(settings, embedding, replace=any_index))
    parser = WorkerParser(
        workers=settings.ingestion.workers,
        timeout_s=settings.ingestion.parse_timeout_s,
        memory_bytes=settings.ingestion.parse_memory_bytes,
        max_pages=settings.ingestion.max_pages,
    )
    stack.push_async_callback(parser.close)
    ingestion = Ingestion(
        parser=parser,
        embedding=embedding,
        index=index,
        state=state,
        now=_now,
        new_id=_new_id,
    )
    await ingestion.sweep()
    return OpenLibrary(state=state, index=index, embedding=embedding, ingestion=ingestion)


async def _opened(stack: AsyncExitStack, opening: Awaitable[PartT]) -> PartT:
    part = await opening
    stack.push_async_callback(part.close)
    return part


async def _llm(settings: LlmSettings) -> LanguageModel:
    from privategpt.backends.llm.timeouts import Timeouts

    timeouts = Timeouts(
        connect_s=settings.connect_timeout_s,
        first_byte_s=settings.first_byte_timeout_s,
        between_bytes_s=settings.between_bytes_timeout_s,
    )
    if settings.mode == "openai":
        from privategpt.backends.llm.openai_compatible import connect_openai_compatible

        return await connect_openai_compatible(
            base_url=_required("llm.base_url", settings.base_url),
            model=settings.model,
            api_key=_secret(settings.api_key),
            context_tokens=settings.context_tokens,
            timeouts=timeouts,
        )
    if settings.mode == "llamaindex":
        from privategpt.backends.llm.llamaindex import load_llamaindex_model

        return await load_llamaindex_model(
            _required("llm.llamaindex_class", settings.llamaindex_class),
            settings.llamaindex_args,
            context_tokens=settings.context_tokens,
            timeouts=timeouts,
        )
    from privategpt.backends.llm.llama_cpp import start_llama_cpp

    return await start_llama_cpp(
        model_path=settings.model_path,
        context_tokens=settings.context_tokens,
        slots=settings.slots,
        threads=settings.threads,
        timeouts=timeouts,
    )


async def _embedding(settings: EmbeddingSettings) -> EmbeddingModel:
    if settings.mode == "openai":
        from privategpt.backends.embedding.openai_compatible import connect_openai_compatible

        return await connect_openai_compatible(
            base_url=settings.base_url,
            api_key=_secret(settings.api_key),
            model=settings.model,
            dimensions=settings.dimensions,
            max_tokens=settings.max_tokens,
            batch_size=settings.batch_size,
            timeout_s=settings.timeout_s,
        )
    if settings.mode == "llamaindex":
        from privategpt.backends.embedding.llamaindex import load_llamaindex

        return await asyncio.to_thread(
            load_llamaindex,
            settings.llamaindex_class,
            settings.llamaindex_args,
            dimensions=settings.dimensions,
            max_tokens=settings.max_tokens,
        )
    from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers

    return await asyncio.to_thread(
        load_sentence_transformers,
        settings.model,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        threads=settings.threads,
    )


async def _index(settings: Settings, embedding: EmbeddingModel, *, replace: bool) -> VectorIndex:
    vectors = settings.vectors
    if vectors.mode == "server":
        return await open_server_index(
            _required("vectors.url", vectors.url),
            collection=vectors.collection,
            dimensions=embedding.dimensions,
            candidates=settings.retrieval.candidates,
            timeout_s=vectors.timeout_s,
            api_key=_secret(vectors.api_key),
            prefer_grpc=vectors.prefer_grpc,
            replace=replace,
        )
    return await open_edge_index(
        settings.server.data_dir / "vectors",
        dimensions=embedding.dimensions,
        candidates=settings.retrieval.candidates,
        replace=replace,
    )


def _models(settings: Settings, embedding: EmbeddingModel) -> ModelCatalog:
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
        refuse_unknown=settings.answers.unknown_model == "refuse",
    )


def _fresh_folder(path: Path) -> Path:
    """An empty folder for files on their way in; what a killed process left there goes."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, parents=True)
    return path


def _options(settings: Settings, *, uploads: Path) -> ApiOptions:
    server = settings.server
    return ApiOptions(
        max_body_bytes=server.max_body_bytes,
        max_upload_bytes=server.max_upload_bytes,
        heartbeat_s=server.heartbeat_s,
        shutdown_grace_s=server.shutdown_grace_s,
        dialect=server.dialect,
        upload_dir=uploads,
    )


def _description(
    settings: Settings, *, llm: LanguageModel, embedding: EmbeddingModel
) -> tuple[str, ...]:
    vectors = settings.vectors
    index = f"Qdrant at {vectors.url}" if vectors.mode == "server" else "Qdrant Edge (embedded)"
    return (
        "privategpt",
        f"  language model {llm.name} ({settings.llm.mode}, {llm.context_tokens} tokens)",
        f"  embedding      {embedding.name} ({settings.embedding.mode}, "
        f"{embedding.dimensions} dimensions)",
        f"  vector store   {index}",
        f"  data folder    {settings.server.data_dir}",
    )


def _llm_name(llm: LlmSettings) -> str:
    if llm.mode == "embedded":
        return llm.model_path.name if llm.model_path else "the bundled model"
    return llm.model or llm.llamaindex_class or "the server's default"


def _embedding_name(embedding: EmbeddingSettings) -> str:
    if embedding.mode == "embedded":
        return embedding.model or "the bundled model"
    return embedding.model or embedding.llamaindex_class or "the server's default"


def _state_location(settings: Settings) -> Path | str:
    url = settings.state.url
    return settings.server.data_dir if url is None else url.get_secret_value()


def _required(name: str, value: str | None) -> str:
    if value is None:
        raise InvalidSettings(f"Setting {name!r} is needed in this mode")
    return value


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid.uuid4())
