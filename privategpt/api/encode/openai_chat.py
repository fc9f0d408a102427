"""Chat completions: the events of an answer as chunks, and a reply as a fold of those chunks.

Both dialects are here, as they differ in `object` alone: OpenAI's, and PrivateGPT's for requests
that name no model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from privategpt.api.encode.views import Json, Views
from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    Citation,
    CitationsFound,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
    Usage,
    UsageCounted,
)

Delta: TypeAlias = dict[str, Any]

IMPOSSIBLE = -9999.0


@dataclass(frozen=True, slots=True)
class ReplyHead:
    """What every chunk of one reply has in common. `created` is in seconds since the epoch."""

    id: str
    created: int
    model: str
    openai: bool

    def opening(self) -> Json:
        """The first keys of a chunk."""
        return {
            "id": self.id,
            "object": "chat.completion.chunk" if self.openai else "completion.chunk",
            "created": self.created,
            "model": self.model,
        }


class ChatEncoder:
    """Turns the events of one reply into chunks.

    `function_call` answers in OpenAI's deprecated form: the first tool call only, without an id.
    Several answers may be encoded one after the other, each with `choices` choices of its own.
    """

    def __init__(
        self,
        *,
        head: ReplyHead,
        views: Views,
        choices: int = 1,
        include_usage: bool = False,
        function_call: bool = False,
    ) -> None:
        self._opening = head.opening()
        self._views = views
        self._choices = choices
        self._include_usage = include_usage
        self._function_call = function_call
        self._started = AnswerStarted()
        self._begun = 0
        self._citations: dict[int, Sequence[Citation]] = {}
        self._sources: Json = {}

    def encode(self, event: AnswerEvent) -> Iterator[Json]:
        """The chunks that `event` becomes, often one and sometimes none."""
        match event:
            case TextDelta():
                yield self._chunk(
                    event.choice, {"content": event.text}, logprobs=_logprobs(event.logprobs)
                )
            case ReasoningDelta():
                yield self._chunk(event.choice, {"content": "", "reasoning_content": event.text})
            case ToolCallDelta():
                yield from self._tool_call(event)
            case AnswerStarted():
                yield from self._start(event)
            case CitationsFound():
                self._citations[event.choice] = event.citations
            case ChoiceFinished():
                yield from self._finish(event)
            case UsageCounted():
                if self._include_usage:
                    yield self._usage(event)
            case _:
                assert_never(event)

    def heartbeat(self) -> Json:
        """A chunk that says nothing: comments break clients, this none."""
        return self._chunk(0, {"content": ""})

    def _start(self, event: AnswerStarted) -> Iterator[Json]:
        self._started = event
        for choice in range(self._begun, self._begun + self._choices):
            yield self._chunk(choice, {"role": "assistant", "content": ""})
        self._begun += self._choices

    def _tool_call(self, event: ToolCallDelta) -> Iterator[Json]:
        function: Json = {} if event.name is None else {"name": event.name}
        function["arguments"] = event.arguments
        if self._function_call:
            if event.index == 0:
                yield self._chunk(event.choice, {"content": None, "function_call": function})
            return
        call: Json = {"index": event.index}
        if event.id is not None:
            call |= {"id": event.id, "type": "function"}
        call["function"] = function
        yield self._chunk(event.choice, {"content": None, "tool_calls": [call]})

    def _finish(self, event: ChoiceFinished) -> Iterator[Json]:
        citations = self._citations.pop(event.choice, ())
        if annotations := self._views.annotations(citations):
            yield self._chunk(event.choice, {"content": "", "annotations": annotations})
        reason = event.reason.value
        if self._function_call and event.reason is FinishReason.TOOL_CALLS:
            reason = "function_call"
        chunk = self._chunk(event.choice, {"content": ""}, finish_reason=reason)
        chunk["choices"][0]["sources"] = self._views.choice_sources(self._started)
        chunk |= self._views.finish(self._started, citations, grounded=event.grounded)
        self._sources = {"sources": chunk["sources"]} if "sources" in chunk else {}
        yield chunk

    def _usage(self, event: UsageCounted) -> Json:
        chunk: Json = {**self._opening, "choices": [], "usage": usage_json(event.usage)}
        if event.system_fingerprint is not None:
            chunk["system_fingerprint"] = event.system_fingerprint
        # Seed 003 has the sources on the last chunk, and this is now the last.
        return chunk | self._sources

    def _chunk(
        self,
        choice: int,
        delta: Delta,
        *,
        logprobs: Json | None = None,
        finish_reason: str | None = None,
    ) -> Json:
        part = {
            "index": choice,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish_reason,
        }
        return {**self._opening, "choices": [part]}


@dataclass(slots=True)
class _Choice:
    """One choice of a reply, as far as its chunks have come."""

    text: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: dict[int, Json] = field(default_factory=dict[int, Json])
    function_call: Json | None = None
    annotations: list[Json] = field(default_factory=list[Json])
    logprobs: list[Json] = field(default_factory=list[Json])
    finish_reason: str | None = None
    sources: list[Json] | None = None
    shown: Json = field(default_factory=dict[str, Any])


class ChatFold:
    """The reply in one piece, put together from its chunks, so that it cannot differ from them.

    The usage chunk must be among them.
    """

    def __init__(self) -> None:
        self._first: Json = {}
        self._choices: dict[int, _Choice] = {}
        self._usage: Json = {}

    def add(self, chunks: Iterable[Json]) -> None:
        """Take the next chunks."""
        for chunk in chunks:
            self._first = self._first or chunk
            for choice in chunk["choices"]:
                self._add_choice(choice, chunk)
            if "usage" in chunk:
                self._usage = chunk

    def _add_choice(self, part: Json, chunk: Json) -> None:
        choice = self._choices.setdefault(part["index"], _Choice())
        delta = part["delta"]
        choice.text.append(delta["content"] or "")
        choice.reasoning.append(delta.get("reasoning_content", ""))
        choice.annotations += delta.get("annotations", [])
        for call in delta.get("tool_calls", []):
            _add_call(choice.calls, call)
        if function := delta.get("function_call"):
            choice.function_call = _joined(choice.function_call, function)
        if part["logprobs"] is not None:
            choice.logprobs += part["logprobs"]["content"]
        if part["finish_reason"] is not None:
            choice.finish_reason = part["finish_reason"]
            choice.sources = part["sources"]
            shown = ("citations", "sources", "grounded")
            choice.shown = {key: chunk[key] for key in shown if key in chunk}

    def reply(self) -> Json:
        """The reply. What belongs to the first choice and stands at the top level in a stream
        stands there; the other choices carry their own, and those of another prompt its numbered
        sources with their message, as a choice's `sources` are chunks.
        """
        first = self._choices[0].shown if 0 in self._choices else {}
        choices = [
            _choice_json(index, choice, first=first)
            for index, choice in sorted(self._choices.items())
        ]
        reply: Json = {
            "id": self._first["id"],
            "object": self._first["object"].removesuffix(".chunk"),
            "created": self._first["created"],
            "model": self._first["model"],
            "choices": choices,
            "usage": self._usage["usage"],
        }
        if "system_fingerprint" in self._usage:
            reply["system_fingerprint"] = self._usage["system_fingerprint"]
        return reply | first


def _add_call(calls: dict[int, Json], part: Json) -> None:
    call = calls.setdefault(
        part["index"], {"id": part.get("id"), "type": "function", "function": None}
    )
    call["function"] = _joined(call["function"], part["function"])


def _joined(before: Json | None, part: Json) -> Json:
    if before is None:
        return dict(part)
    return {**before, "arguments": before["arguments"] + part["arguments"]}


def _choice_json(index: int, choice: _Choice, *, first: Json) -> Json:
    text = "".join(choice.text)
    calls = [call for _, call in sorted(choice.calls.items())]
    called = bool(calls) or choice.function_call is not None
    message: Json = {
        "role": "assistant",
        "content": None if called and not text else text,
        "refusal": None,
        "annotations": choice.annotations,
        "reasoning_content": "".join(choice.reasoning) or None,
    }
    if calls:
        message["tool_calls"] = calls
    if choice.function_call is not None:
        message["function_call"] = choice.function_call
    sources = choice.shown.get("sources")
    if sources is not None and sources != first.get("sources"):
        message["sources"] = sources
    logprobs = {"content": choice.logprobs, "refusal": None} if choice.logprobs else None
    reply: Json = {
        "index": index,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": choice.finish_reason,
        "sources": choice.sources,
    }
    if index > 0:
        reply |= {key: value for key, value in choice.shown.items() if key != "sources"}
    return reply


def _logprobs(tokens: Sequence[TokenLogprob]) -> Json | None:
    if not tokens:
        return None
    content = [
        {
            "token": token.token,
            "logprob": _finite(token.logprob),
            "bytes": _bytes(token.bytes),
            "top_logprobs": [
                {"token": top.token, "logprob": _finite(top.logprob), "bytes": _bytes(top.bytes)}
                for top in token.top
            ],
        }
        for token in tokens
    ]
    return {"content": content, "refusal": None}


def _finite(logprob: float) -> float:
    """JSON has no infinity, which engines give a token that cannot be; OpenAI writes -9999."""
    return logprob if math.isfinite(logprob) else IMPOSSIBLE


def _bytes(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)


def usage_json(usage: Usage) -> Json:
    """Usage in OpenAI's shape."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
