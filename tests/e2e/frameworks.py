"""Asks a server through LangChain's and LlamaIndex's classes; prints what they made of it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

# These packages live in an environment of their own, out of the type checkers' sight.
langchain: Any = import_module("langchain_openai")
openai_like: Any = import_module("llama_index.llms.openai_like")
openai_like_embedding: Any = import_module("llama_index.embeddings.openai_like")
llama_types: Any = import_module("llama_index.core.llms")

WEATHER = {
    "title": "get_weather",
    "description": "The weather in a city.",
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


def langchain_seen(base_url: str) -> dict[str, Any]:
    """ChatOpenAI, OpenAI and OpenAIEmbeddings."""
    how = {"base_url": base_url, "api_key": "none", "model": "private-gpt"}
    chat = langchain.ChatOpenAI(**how)
    legacy = langchain.OpenAI(**how)
    # Token ids are LangChain's default; a server reads only those of its own tokenizer.
    embeddings = langchain.OpenAIEmbeddings(**how, check_embedding_ctx_length=False)
    streamed: list[Any] = list(chat.stream("Hi", stream_usage=True))
    totals: list[dict[str, int]] = [chunk.usage_metadata or {} for chunk in streamed]
    call = chat.bind_tools([WEATHER], tool_choice="get_weather").invoke("Weather?").tool_calls[0]
    return {
        "chat": chat.invoke("Hi").content,
        "stream": "".join(chunk.content for chunk in streamed),
        "usage": sum(usage.get("total_tokens", 0) for usage in totals),
        "call": [call["name"], call["args"]],
        "structured": chat.with_structured_output(WEATHER, method="json_schema").invoke("Hi"),
        "legacy": legacy.invoke("Hi"),
        "legacy_stream": "".join(legacy.stream("Hi")),
        "embedded": [len(embeddings.embed_query("a")), len(embeddings.embed_documents(["a", "b"]))],
    }


def llamaindex_seen(base_url: str) -> dict[str, Any]:
    """OpenAILike, for chat and for prompts, and OpenAILikeEmbedding."""
    how = {"api_base": base_url, "api_key": "none", "model": "private-gpt"}
    chat = openai_like.OpenAILike(**how, is_chat_model=True)
    legacy = openai_like.OpenAILike(**how, is_chat_model=False)
    embedding = openai_like_embedding.OpenAILikeEmbedding(
        api_base=base_url, api_key="none", model_name="private-gpt"
    )
    messages = [llama_types.ChatMessage(role="user", content="Hi")]
    answered = chat.chat(messages)
    return {
        "chat": answered.message.content,
        "usage": answered.raw.usage.total_tokens,
        "stream": "".join(part.delta or "" for part in chat.stream_chat(messages)),
        "complete": chat.complete("Hi").text,
        "legacy": legacy.complete("Hi").text,
        "legacy_stream": "".join(part.delta or "" for part in legacy.stream_complete("Hi")),
        "embedded": [
            len(embedding.get_query_embedding("a")),
            len(embedding.get_text_embedding_batch(["a", "b"])),
        ],
    }


if __name__ == "__main__":
    seen = {"langchain": langchain_seen(sys.argv[1]), "llamaindex": llamaindex_seen(sys.argv[1])}
    print(json.dumps(seen))
