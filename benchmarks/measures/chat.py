"""The first byte of a streamed answer, beside the bare llama.cpp server with the same prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.client import RequestFailed, Streamed, connection
from benchmarks.engines import Engines
from benchmarks.prose import Prose
from benchmarks.rows import Effort, Row, Rule, Target, in_turns
from privategpt.backends.llm.wire_requests import chat_body
from privategpt.domain.conversation import GenerationRequest, Message, Role, Sampling
from privategpt.services.prompting import best_within, fit
from privategpt.services.retrieval import Retrieval
from privategpt.services.sources import number_sources

REPLY_TOKENS = 4
ABOVE_MS = 25.0


class Context(NamedTuple):
    """How much of the library a question is answered from: most chunks, most tokens of them."""

    chunks: int
    tokens: int | None


async def first_byte_rows(
    *, url: str, engines: Engines, prose: Prose, context: Context | None, effort: Effort
) -> Sequence[Row]:
    """With `context` from the library, or None for a plain question.

    Both engines get the same prompts in the same order, so that their prefix caches are alike.
    """
    conversations: list[tuple[Message, ...]] = []
    heard: dict[str, list[Streamed]] = {"ours": [], "bare": []}

    async def conversation(turn: int) -> tuple[Message, ...]:
        while len(conversations) <= turn:
            conversations.append((Message(Role.USER, prose.question()),))
        return conversations[turn]

    async def ours(turn: int) -> float:
        messages = await conversation(turn)
        async with connection(url) as server:
            heard["ours"].append(
                await server.stream(
                    "/v1/chat/completions", _body(messages, use_context=context is not None)
                )
            )
        return heard["ours"][-1].first_byte_s

    async def bare(turn: int) -> float:
        messages = await conversation(turn)
        if context is not None:
            messages = await _prompt(messages, engines, context)
        request = GenerationRequest(messages=messages, sampling=_sampling())
        body = chat_body(request, model=engines.llama.model.name, defaults=Sampling())
        async with connection(engines.llama.url, api_key=engines.llama.api_key) as llama:
            heard["bare"].append(await llama.stream("/v1/chat/completions", body))
        return heard["bare"][-1].first_byte_s

    await in_turns({"ours": ours, "bare": bare}, effort)
    _require_same_prompts(heard["ours"], heard["bare"])
    what = "no context" if context is None else "with context"
    return _rows(what, heard["ours"][1:], heard["bare"][1:])


def _rows(what: str, ours: Sequence[Streamed], bare: Sequence[Streamed]) -> Sequence[Row]:
    prompt = sorted(stream.prompt_tokens for stream in bare)[len(bare) // 2]
    name = f"chat, {what} ({prompt} prompt tokens)"
    return (
        Row(
            f"{name}: first byte",
            "ms",
            [1000 * stream.first_byte_s for stream in ours],
            [1000 * stream.first_byte_s for stream in bare],
            Target(Rule.AT_MOST_ABOVE, ABOVE_MS),
        ),
        Row(
            f"{name}: first text",
            "ms",
            [1000 * stream.first_text_s for stream in ours],
            [1000 * stream.first_text_s for stream in bare],
            Target(Rule.AT_MOST_ABOVE, ABOVE_MS),
        ),
    )


def _require_same_prompts(ours: Sequence[Streamed], bare: Sequence[Streamed]) -> None:
    for mine, other in zip(ours, bare, strict=True):
        if mine.prompt_tokens != other.prompt_tokens:
            raise RequestFailed(
                f"The prompts differ: {mine.prompt_tokens} and {other.prompt_tokens} tokens"
            )


async def _prompt(
    messages: tuple[Message, ...], engines: Engines, context: Context
) -> tuple[Message, ...]:
    """What the server makes of the question, by its own services on a copy of its library."""
    library = engines.library
    retrieval = Retrieval(embedding=library.embedding, index=library.index, state=library.state)
    found = await retrieval.search(messages[-1].text, tenant=library.tenant, limit=context.chunks)
    sources = await number_sources(found.chunks, tenant=library.tenant, state=library.state)
    if context.tokens is not None:
        sources = await best_within(context.tokens, sources, llm=engines.llama.model)
    fitted = await fit(messages, sources, llm=engines.llama.model, reply_tokens=REPLY_TOKENS)
    return fitted.messages


def _sampling() -> Sampling:
    return Sampling(temperature=0, max_tokens=REPLY_TOKENS)


def _body(messages: Sequence[Message], *, use_context: bool) -> dict[str, Any]:
    return {
        "model": "private-gpt",
        "messages": [{"role": message.role.value, "content": message.text} for message in messages],
        "use_context": use_context,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "max_tokens": REPLY_TOKENS,
    }
