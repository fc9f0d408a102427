"""Engines by their settings: each is imported only where it is used."""

from __future__ import annotations

import asyncio

from pydantic import SecretStr

from privategpt.backends.vectors.edge import open_edge_index
from privategpt.backends.vectors.quantization import Quantization
from privategpt.domain.conversation import Sampling
from privategpt.domain.errors import InvalidSettings, StartRefused, Unavailable
from privategpt.domain.library import VectorIndex
from privategpt.domain.ports import EmbeddingModel, LanguageModel, Reranker
from privategpt.domain.verification import Verifier
from privategpt.domain.websearch import SearchEngine
from privategpt.services.judging import EngineJudge
from privategpt.settings import (
    AnswerSettings,
    EmbeddingSettings,
    LlmSettings,
    RerankSettings,
    Settings,
    VectorSettings,
    WebSearchSettings,
)
from privategpt.wiring.data_folder import VECTORS

EMBEDDED_CONTEXT_TOKENS = 400
"""With the question and the instructions a prompt that the bundled model reads in 3 s on two
processors."""


def context_tokens(settings: Settings) -> int | None:
    """How many tokens of retrieved text an answer may read; None is what the window holds."""
    if settings.retrieval.context_tokens is None and settings.llm.mode == "embedded":
        return EMBEDDED_CONTEXT_TOKENS
    return settings.retrieval.context_tokens


async def start_llm(settings: LlmSettings) -> LanguageModel:
    """The configured language model."""
    from privategpt.backends.llm.timeouts import Timeouts

    timeouts = Timeouts(
        connect_s=settings.connect_timeout_s,
        first_byte_s=settings.first_byte_timeout_s,
        between_bytes_s=settings.between_bytes_timeout_s,
    )
    if settings.mode == "openai":
        from privategpt.backends.llm.openai_compatible import connect_openai_compatible

        return await connect_openai_compatible(
            base_url=required("llm.base_url", settings.base_url),
            model=settings.model,
            api_key=secret(settings.api_key),
            context_tokens=settings.context_tokens,
            defaults=Sampling(temperature=settings.temperature),
            timeouts=timeouts,
        )
    if settings.mode == "llamaindex":
        from privategpt.backends.llm.llamaindex import load_llamaindex_model

        return await load_llamaindex_model(
            required("llm.llamaindex_class", settings.llamaindex_class),
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
        temperature=settings.temperature,
        timeouts=timeouts,
    )


async def load_embedding(settings: EmbeddingSettings) -> EmbeddingModel:
    """The configured embedding model."""
    if settings.mode == "openai":
        from privategpt.backends.embedding.encoder import Prompts
        from privategpt.backends.embedding.openai_compatible import connect_openai_compatible

        return await connect_openai_compatible(
            base_url=required("embedding.base_url", settings.base_url),
            api_key=secret(settings.api_key),
            model=settings.model,
            dimensions=settings.dimensions,
            max_tokens=settings.max_tokens,
            batch_size=settings.batch_size,
            prompts=Prompts(
                query=settings.query_prompt or "", passage=settings.passage_prompt or ""
            ),
            timeout_s=settings.timeout_s,
        )
    if settings.mode == "llamaindex":
        from privategpt.backends.embedding.llamaindex import load_llamaindex

        return await asyncio.to_thread(
            load_llamaindex,
            required("embedding.llamaindex_class", settings.llamaindex_class),
            settings.llamaindex_args,
            dimensions=settings.dimensions,
            max_tokens=settings.max_tokens,
            batch_size=settings.batch_size,
            timeout_s=settings.timeout_s,
        )
    from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers

    return await asyncio.to_thread(
        load_sentence_transformers,
        settings.model,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        threads=settings.threads,
        query_prompt=settings.query_prompt,
        passage_prompt=settings.passage_prompt,
    )


async def load_reranker(settings: RerankSettings) -> Reranker | None:
    """The configured reranker; None where it is off."""
    if settings.mode == "openai":
        from privategpt.backends.reranking.openai_compatible import (
            connect_openai_compatible_reranker,
        )

        return connect_openai_compatible_reranker(
            base_url=required("rerank.base_url", settings.base_url),
            api_key=secret(settings.api_key),
            model=settings.model,
            timeout_s=settings.timeout_s,
        )
    if settings.mode == "sentence_transformers":
        from privategpt.backends.reranking.cross_encoder import load_cross_encoder_reranker

        return await asyncio.to_thread(
            load_cross_encoder_reranker,
            required("rerank.model", settings.model),
            batch_size=settings.batch_size,
        )
    return None


async def open_index(
    settings: Settings, embedding: EmbeddingModel, *, replace: bool
) -> VectorIndex:
    vectors = settings.vectors
    if vectors.mode == "server":
        from privategpt.backends.vectors.server import open_server_index

        try:
            return await open_server_index(
                required("vectors.url", vectors.url),
                collection=vectors.collection,
                dimensions=embedding.dimensions,
                candidates=settings.retrieval.candidates,
                timeout_s=vectors.timeout_s,
                api_key=secret(vectors.api_key),
                prefer_grpc=vectors.prefer_grpc,
                quantization=quantization_of(vectors),
                replace=replace,
            )
        except Unavailable as error:
            raise StartRefused(f"Setting 'vectors.url': {error.message}") from error
    return await open_edge_index(
        settings.server.data_dir / VECTORS,
        dimensions=embedding.dimensions,
        candidates=settings.retrieval.candidates,
        quantization=quantization_of(vectors),
        replace=replace,
    )


def quantization_of(vectors: VectorSettings) -> Quantization:
    """Which codes the index searches by; by default where they cost no recall that was measured.

    A server is left as it is: it has its graph, and codes of 4 bits only in late versions.
    """
    if vectors.quantization == "auto":
        return "none" if vectors.mode == "server" else "turbo"
    return vectors.quantization


async def make_verifier(settings: AnswerSettings, llm: LanguageModel) -> Verifier | None:
    """The configured verifier of citations; None for the built-in support alone."""
    if settings.verifier == "judge":
        return EngineJudge(llm=llm)
    if settings.verifier == "cross_encoder":
        from privategpt.backends.verification.cross_encoder import load_cross_encoder

        name = required("answers.verifier_model", settings.verifier_model)
        return await asyncio.to_thread(load_cross_encoder, name)
    return None


def make_search_engine(settings: WebSearchSettings) -> SearchEngine | None:
    """The configured search engine; None where web search is off. Nothing is asked yet."""
    if settings.provider == "searxng":
        from privategpt.backends.websearch.searxng import SearxngSearch

        return SearxngSearch(
            url=required("web_search.searxng.url", settings.searxng.url),
            language=settings.language,
            deadline_s=settings.deadline_s,
            max_bytes=settings.max_bytes,
        )
    if settings.provider == "brave":
        from privategpt.backends.websearch.brave import BraveSearch

        return BraveSearch(
            api_key=required("web_search.brave.api_key", secret(settings.brave.api_key)),
            language=settings.language,
            deadline_s=settings.deadline_s,
            max_bytes=settings.max_bytes,
        )
    if settings.provider == "tavily":
        from privategpt.backends.websearch.tavily import TavilySearch

        return TavilySearch(
            api_key=required("web_search.tavily.api_key", secret(settings.tavily.api_key)),
            deadline_s=settings.deadline_s,
            max_bytes=settings.max_bytes,
        )
    if settings.provider == "ddgs":
        from privategpt.backends.websearch.ddgs import DdgsSearch

        return DdgsSearch(region=settings.language, deadline_s=settings.deadline_s)
    return None


def required(name: str, value: str | None) -> str:
    """`value`, or `InvalidSettings` that names the setting."""
    if value is None:
        raise InvalidSettings(f"Setting {name!r} is needed in this mode")
    return value


def secret(value: SecretStr | None) -> str | None:
    """What is hidden from logs, where it is needed."""
    return None if value is None else value.get_secret_value()
