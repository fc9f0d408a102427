"""Messages: the events of an answer as Anthropic's, and a message as a fold of those.

The text is cut into blocks at the sentences that are cited: a cited sentence, its markers still in
it, is a block of its own with its `citations`, and what stands between is a block without any. The
blocks joined are the answer's text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from privategpt.api.encode.anthropic_places import Place, location
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
    ToolCallDelta,
    Usage,
    UsageCounted,
)

STOP_REASONS = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.CONTENT_FILTER: "refusal",
}


@dataclass(frozen=True, slots=True)
class MessageHead:
    """What names one reply."""

    id: str
    model: str


class MessageEncoder:
    """Turns the events of one reply into Anthropic's events.

    `places` are how the request's own documents are cited. Without `thinking` thoughts are left
    out. Blocks follow one another: what a model says while a call of a tool is under way waits.
    """

    def __init__(
        self,
        *,
        head: MessageHead,
        views: Views,
        places: Sequence[Place] = (),
        thinking: bool = False,
    ) -> None:
        self._head = head
        self._views = views
        self._places = places
        self._thinking = thinking
        self._started = AnswerStarted()
        self._finished = ChoiceFinished(FinishReason.STOP)
        self._position = 0  # code points of text that are sent
        self._blocks = 0  # that were begun
        self._open: str | None = None  # the type of the block that is open
        self._call: int | None = None  # the call whose block is open
        self._waiting: list[AnswerEvent] = []

    def encode(self, event: AnswerEvent) -> Iterator[Json]:
        """The events that `event` becomes, often one and sometimes none."""
        match event:
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                yield from self._delta(event)
            case AnswerStarted():
                self._started = event
                yield {"type": "message_start", "message": self._message()}
            case CitationsFound():
                pass  # Each went out with its sentence.
            case ChoiceFinished():
                self._finished = event
                yield from self._finish()
            case UsageCounted():
                yield self._message_delta(event.usage)
                yield {"type": "message_stop"}
            case _:
                assert_never(event)

    def heartbeat(self) -> Json:
        """An event that says nothing."""
        return {"type": "ping"}

    def _message(self) -> Json:
        usage = Usage(prompt_tokens=self._started.prompt_tokens or 0, completion_tokens=0)
        return {
            "id": self._head.id,
            "type": "message",
            "role": "assistant",
            "model": self._head.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "container": None,
            "usage": usage_json(usage),
            # The SDKs' final message keeps what is here, and nothing of `message_delta`.
            **self._sources(grounded=None),
        }

    def _message_delta(self, usage: Usage) -> Json:
        finished = self._finished
        reason = "stop_sequence" if finished.stop_sequence else STOP_REASONS[finished.reason]
        delta: Json = {
            "stop_reason": reason,
            "stop_sequence": finished.stop_sequence,
            "stop_details": None,
            "container": None,
        }
        grounded: Json = {} if finished.grounded is None else {"grounded": finished.grounded}
        return {
            "type": "message_delta",
            "delta": delta,
            "usage": usage_json(usage),
            **self._sources(grounded=finished.grounded),
            **grounded,
        }

    def _sources(self, *, grounded: bool | None) -> Json:
        """What was found to answer from; what the client sent along it knows itself."""
        if len(self._started.sources) <= len(self._places) or not self._views.include_sources:
            return {}
        return self._views.numbered_sources(self._started, grounded=grounded)

    def _delta(self, event: TextDelta | ReasoningDelta | ToolCallDelta) -> Iterator[Json]:
        is_of_call = isinstance(event, ToolCallDelta) and event.index == self._call
        if self._call is not None and not is_of_call:
            self._waiting.append(event)
            return
        match event:
            case TextDelta():
                yield from self._text(event)
            case ReasoningDelta():
                if self._thinking and event.text:
                    yield from self._begin("thinking", {"thinking": "", "signature": ""})
                    yield self._piece({"type": "thinking_delta", "thinking": event.text})
            case ToolCallDelta():
                yield from self._tool_call(event)
            case _:
                assert_never(event)

    def _text(self, event: TextDelta) -> Iterator[Json]:
        """Cut before and behind every sentence that is cited."""
        begin, at = self._position, 0
        for (start, end), cited in groupby(event.citations, key=_sentence):
            yield from self._plain(event.text[at : start - begin])
            yield from self._close()
            yield from self._begin("text", {"text": "", "citations": []})
            yield self._piece(
                {"type": "text_delta", "text": event.text[start - begin : end - begin]}
            )
            for citation in cited:
                found = location(citation, places=self._places, views=self._views)
                yield self._piece({"type": "citations_delta", "citation": found})
            yield from self._close()
            at = end - begin
        yield from self._plain(event.text[at:])
        self._position += len(event.text)

    def _plain(self, text: str) -> Iterator[Json]:
        if text:
            yield from self._begin("text", {"text": "", "citations": None})
            yield self._piece({"type": "text_delta", "text": text})

    def _tool_call(self, event: ToolCallDelta) -> Iterator[Json]:
        if self._call is None:
            yield from self._close()
            block = {
                "id": event.id or f"toolu_{self._head.id}_{event.index}",
                "name": event.name or "",
                "input": {},
                "caller": {"type": "direct"},
            }
            yield from self._begin("tool_use", block)
            self._call = event.index
        if event.arguments:
            yield self._piece({"type": "input_json_delta", "partial_json": event.arguments})

    def _finish(self) -> Iterator[Json]:
        yield from self._close()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                yield from self.encode(event)
            yield from self._close()
        if not self._blocks:
            # Clients read the first block without asking whether there is one.
            yield from self._begin("text", {"text": "", "citations": None})
            yield from self._close()

    def _begin(self, kind: str, block: Json) -> Iterator[Json]:
        """Open a block, unless one of that kind is open."""
        if self._open == kind:
            return
        yield from self._close()
        self._open = kind
        self._blocks += 1
        yield {
            "type": "content_block_start",
            "index": self._blocks - 1,
            "content_block": {"type": kind, **block},
        }

    def _piece(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": self._blocks - 1, "delta": delta}

    def _close(self) -> Iterator[Json]:
        if self._open is not None:
            self._open = self._call = None
            yield {"type": "content_block_stop", "index": self._blocks - 1}


def _sentence(citation: Citation) -> tuple[int, int]:
    return citation.sentence_start, citation.sentence_end


def usage_json(usage: Usage) -> Json:
    """Usage in Anthropic's shape, whose input tokens leave out what came from a cache."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation": None,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }
