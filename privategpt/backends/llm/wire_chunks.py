"""Reads the chunks of an OpenAI-compatible stream into domain events."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any, cast

from privategpt.backends.llm.tool_calls import ToolCallReader
from privategpt.domain.answers import (
    FinishReason,
    GenerationBegun,
    GenerationEvent,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from privategpt.domain.errors import EngineFailed, EngineUnavailable, UnsupportedParameter

_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}
_BROKEN_OFF = frozenset({"abort", "error"})
"""What vLLM and others send as `finish_reason` where they gave up."""

JsonMap = Mapping[str, Any]
_NOTHING: JsonMap = {}


class ChunkReader:
    """Holds what must be remembered across the chunks of one reply.

    `top_logprobs` is what the caller asked for, None for no log probabilities.
    """

    def __init__(self, *, top_logprobs: int | None, tool_calls: ToolCallReader) -> None:
        self._top_logprobs = top_logprobs
        self._tool_calls = tool_calls
        self._pending_logprobs: tuple[TokenLogprob, ...] = ()
        self._any_logprobs = False
        self._begun = False
        self._reason: FinishReason | None = None
        # One text, as a list of so many pieces takes ten times as much.
        self._text = StringIO()
        self.chunks = 0
        self.usage = Usage(prompt_tokens=0, completion_tokens=0)
        self.system_fingerprint: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the engine has said why it ended; only the usage may still follow."""
        return self._reason is not None

    @property
    def reason(self) -> FinishReason:
        """Why the reply ended. A reply that called a tool ends so, though engines say "stop"."""
        if self._reason in {None, FinishReason.STOP} and self._tool_calls.any_seen:
            return FinishReason.TOOL_CALLS
        return self._reason or FinishReason.STOP

    @property
    def written(self) -> str:
        """All that the model wrote: text, thoughts and calls; for counting tokens."""
        return self._text.getvalue() + self._tool_calls.written

    def read(self, chunk: object) -> list[GenerationEvent]:
        """Raises `EngineFailed` for what is not a chunk of an answer."""
        if not isinstance(chunk, dict):
            raise EngineFailed("The language model server sent something that is not a chunk")
        fields = cast("JsonMap", chunk)
        choices: object = fields.get("choices")
        if not isinstance(choices, list):
            _refuse_stray_error(fields)
            choices = []
        self.chunks += 1
        self._read_frame(fields)
        events: list[GenerationEvent] = []
        if "prompt_progress" in fields and not self._begun:
            self._begun = True
            events.append(GenerationBegun())
        for choice in cast("list[object]", choices):
            # We ask for one reply; engines that index it otherwise than 0 would be a second.
            if isinstance(choice, dict) and not cast("JsonMap", choice).get("index"):
                events += self._read_choice(cast("JsonMap", choice))
        return events

    def _read_frame(self, fields: JsonMap) -> None:
        fingerprint = fields.get("system_fingerprint")
        if isinstance(fingerprint, str) and fingerprint:
            self.system_fingerprint = fingerprint
        usage = _mapping(fields.get("usage"))
        # LocalAI sends zeros in every chunk but the last, and Ollama the total in the last.
        if usage.get("prompt_tokens") or usage.get("completion_tokens"):
            self.usage = Usage(
                prompt_tokens=_count(usage, "prompt_tokens"),
                completion_tokens=_count(usage, "completion_tokens"),
                cached_tokens=_count(_mapping(usage.get("prompt_tokens_details")), "cached_tokens"),
                reasoning_tokens=_count(
                    _mapping(usage.get("completion_tokens_details")), "reasoning_tokens"
                ),
            )

    def _read_choice(self, choice: JsonMap) -> list[GenerationEvent]:
        delta = _mapping(choice.get("delta"))
        logprobs = self._read_logprobs(choice)
        events: list[GenerationEvent] = []
        # vLLM from 0.19 on says `reasoning`, the rest of the world `reasoning_content`.
        if thought := _text(delta, "reasoning_content") or _text(delta, "reasoning"):
            self._text.write(thought)
            events.append(ReasoningDelta(thought))
        if text := _text(delta, "content") or _text(delta, "refusal"):
            self._text.write(text)
            events.append(TextDelta(text, logprobs=self._take_logprobs(logprobs)))
        else:
            self._pending_logprobs += logprobs
        for entry in _tool_entries(delta):
            events += self._tool_calls.read(entry)
        self._read_finish(choice.get("finish_reason"))
        return events

    def _read_finish(self, reason: object) -> None:
        if reason in _BROKEN_OFF:
            raise EngineUnavailable("The language model server gave up in the middle of the answer")
        if isinstance(reason, str) and reason:
            self._reason = _REASONS.get(reason, FinishReason.STOP)

    def _read_logprobs(self, choice: JsonMap) -> tuple[TokenLogprob, ...]:
        if self._top_logprobs is None:
            return ()
        entries = _mapping(choice.get("logprobs")).get("content")
        return tuple(_token_logprob(entry, self._top_logprobs) for entry in _mappings(entries))

    def _take_logprobs(self, new: tuple[TokenLogprob, ...]) -> tuple[TokenLogprob, ...]:
        # A character of several tokens is written with the last of them: theirs come along.
        logprobs = self._pending_logprobs + new
        self._pending_logprobs = ()
        self._any_logprobs = self._any_logprobs or bool(logprobs)
        if self._top_logprobs is not None and not self._any_logprobs:
            raise UnsupportedParameter(
                "The language model server gives no log probabilities", param="logprobs"
            )
        return logprobs


def _refuse_stray_error(fields: JsonMap) -> None:
    """Errors that are not wrapped in `error`, which would pass for an empty chunk."""
    if fields.keys() & {"detail", "message"} or fields.get("object") == "error":
        raise EngineFailed(
            "The language model server reported an error in the middle of the answer"
        )


def _tool_entries(delta: JsonMap) -> list[JsonMap]:
    entries = _mappings(delta.get("tool_calls"))
    legacy = _mapping(delta.get("function_call"))
    return [*entries, {"index": 0, "function": legacy}] if legacy else entries


def _token_logprob(entry: JsonMap, top: int) -> TokenLogprob:
    alternatives = _mappings(entry.get("top_logprobs"))[:top]
    return TokenLogprob(
        token=_text(entry, "token"),
        logprob=_number(entry.get("logprob")),
        bytes=_bytes(entry),
        top=tuple(
            TopLogprob(
                token=_text(alternative, "token"),
                logprob=_number(alternative.get("logprob")),
                bytes=_bytes(alternative),
            )
            for alternative in alternatives
        ),
    )


def _bytes(entry: JsonMap) -> tuple[int, ...] | None:
    values = entry.get("bytes")
    if not isinstance(values, list):
        return None
    return tuple(int(value) for value in cast("list[int]", values))


def _number(value: object) -> float:
    # Engines write -Infinity as null or as a very small number; JSON has no infinity.
    return float(value) if isinstance(value, int | float) else -9999.0


def _text(fields: JsonMap, key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EngineFailed(f"The language model server sent {key!r} in a shape that is not text")
    return value


def _count(fields: JsonMap, key: str) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) else 0


def _mapping(value: object) -> JsonMap:
    return cast("JsonMap", value) if isinstance(value, dict) else _NOTHING


def _mappings(value: object) -> list[JsonMap]:
    if not isinstance(value, list):
        return []
    return [
        cast("JsonMap", entry) for entry in cast("list[object]", value) if isinstance(entry, dict)
    ]
