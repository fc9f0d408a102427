"""Reads what LlamaIndex's classes stream into domain events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from llama_index.core.base.llms.types import ChatResponse, ToolCallBlock

from privategpt.backends.llm.tool_calls import random_call_id
from privategpt.domain.answers import (
    FinishReason,
    GenerationEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)

_LENGTH = frozenset({"length", "max_tokens", "MAX_TOKENS"})
_USAGE_NAMES = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("prompt_eval_count", "eval_count"),
)
"""OpenAI's, Anthropic's and Ollama's."""


class ReplyReader:
    """Holds what must be remembered across the responses of one streamed chat."""

    def __init__(self, *, single_call: bool) -> None:
        self._single_call = single_call
        self._text = ""
        self._thoughts = ""
        self._call_blocks: list[ToolCallBlock] = []
        self._engine_reason: str | None = None
        self.prompt_tokens = 0
        self.completion_tokens = 0

    @property
    def written(self) -> str:
        """All that the model wrote: text, thoughts and calls; for counting tokens."""
        calls = (f"{block.tool_name} {_arguments(block)}" for block in self._call_blocks)
        return self._thoughts + self._text + " ".join(calls)

    def read(self, response: ChatResponse) -> list[GenerationEvent]:
        """Deltas of text and thoughts; calls are whole in the last response only."""
        self._read_raw(response)
        self._call_blocks = [
            block for block in response.message.blocks if isinstance(block, ToolCallBlock)
        ] or self._call_blocks
        events: list[GenerationEvent] = []
        thought = _fields(cast("Any", response).additional_kwargs).get("thinking_delta")
        if isinstance(thought, str) and thought:
            self._thoughts += thought
            events.append(ReasoningDelta(thought))
        if piece := self._piece(response):
            self._text += piece
            events.append(TextDelta(piece))
        return events

    def calls(self) -> list[ToolCallDelta]:
        """The calls of the whole reply, one delta each."""
        blocks = self._call_blocks[:1] if self._single_call else self._call_blocks
        return [
            ToolCallDelta(
                index=index,
                arguments=_arguments(block),
                id=block.tool_call_id or random_call_id(),
                name=block.tool_name,
            )
            for index, block in enumerate(blocks)
        ]

    def reason(self, completion_tokens: int, *, max_tokens: int | None) -> FinishReason:
        """Why the reply ended; few classes say, so that the count must tell."""
        if self._engine_reason in _LENGTH:
            return FinishReason.LENGTH
        if self._call_blocks:
            return FinishReason.TOOL_CALLS
        if self._engine_reason is None and max_tokens and completion_tokens >= max_tokens:
            return FinishReason.LENGTH
        return FinishReason.STOP

    def usage(self, *, prompt_tokens: int, completion_tokens: int) -> Usage:
        """The engine's own count, or the one given for what it did not tell."""
        return Usage(
            prompt_tokens=self.prompt_tokens or prompt_tokens,
            completion_tokens=self.completion_tokens or completion_tokens,
        )

    def _piece(self, response: ChatResponse) -> str:
        if response.delta is not None:
            return response.delta
        # Classes without deltas give the whole text so far.
        whole = response.message.content or ""
        return whole[len(self._text) :] if whole.startswith(self._text) else ""

    def _read_raw(self, response: ChatResponse) -> None:
        raw = _fields(response.raw)
        extra = _fields(cast("Any", response).additional_kwargs)
        for fields in (_fields(raw.get("usage")), raw, extra):
            for prompt, completion in _USAGE_NAMES:
                if isinstance(fields.get(prompt), int):
                    self.prompt_tokens = fields[prompt] or self.prompt_tokens
                if isinstance(fields.get(completion), int):
                    self.completion_tokens = fields[completion] or self.completion_tokens
        reason = _first_choice(raw).get("finish_reason") or raw.get("done_reason")
        reason = reason or raw.get("stop_reason")
        if isinstance(reason, str):
            self._engine_reason = reason


def _first_choice(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = raw.get("choices")
    if not isinstance(choices, Sequence) or not choices:
        return {}
    return _fields(cast("Sequence[object]", choices)[0])


def _fields(value: object) -> Mapping[str, Any]:
    """The fields of a dict or of a vendor's object."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    return getattr(value, "__dict__", {})


def _arguments(block: ToolCallBlock) -> str:
    arguments = block.tool_kwargs
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
