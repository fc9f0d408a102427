"""What a server is made of, in words."""

from __future__ import annotations

from privategpt.backends.embedding import bundled as bundled_embedding
from privategpt.backends.llm.bundled_model import locate_bundled_model, verify_model
from privategpt.domain.ports import EmbeddingModel, LanguageModel
from privategpt.services.access import Keys
from privategpt.services.reranking import Reranking
from privategpt.settings import EmbeddingSettings, LlmSettings, Settings


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


def describe(
    settings: Settings,
    *,
    llm: LanguageModel,
    embedding: EmbeddingModel,
    reranking: Reranking | None,
    keys: Keys | None,
) -> tuple[str, ...]:
    vectors = settings.vectors
    index = f"Qdrant at {vectors.url}" if vectors.mode == "server" else "Qdrant Edge (embedded)"
    return (
        "privategpt",
        f"  language model {llm.name} ({settings.llm.mode}, {llm.context_tokens} tokens)",
        f"  embedding      {embedding.name} ({settings.embedding.mode}, "
        f"{embedding.dimensions} dimensions)",
        *([f"  reranker       {reranking.name} ({settings.rerank.mode})"] if reranking else []),
        f"  vector store   {index}",
        f"  data folder    {settings.server.data_dir}",
        f"  API keys       {'needed' if keys else 'none: everybody who reaches it is let in'}",
    )


def _llm_name(llm: LlmSettings) -> str:
    if llm.mode == "embedded":
        return llm.model_path.name if llm.model_path else "the bundled model"
    return llm.model or llm.llamaindex_class or "the server's default"


def _embedding_name(embedding: EmbeddingSettings) -> str:
    if embedding.mode == "embedded":
        return embedding.model or "the bundled model"
    return embedding.model or embedding.llamaindex_class or "the server's default"
