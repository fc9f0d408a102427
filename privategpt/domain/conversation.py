"""What a client asks: messages, tools and sampling, in no vendor's shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object handed through unread: a tool's schema, a response format."""


class Role(StrEnum):
    """Who speaks. `developer` is `system` and `function` is `tool` by the time they are here."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asked for; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message: a data URL or an http(s) address, and OpenAI's `detail`."""

    url: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text that the caller sends along to be answered from; `url` is where it is on the web."""

    title: str
    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `text` is empty where the turn has none (an assistant turn of tool calls only)."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the model chooses tokens; None leaves the engine's own default.

    Ranges are OpenAI's: temperature 0–2, top_p 0–1, penalties -2–2, top_logprobs 0–20
    (None asks for no log probabilities at all), logit_bias -100–100 by token id.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    top_logprobs: int | None = None
    logit_bias: Mapping[str, float] = field(default_factory=dict[str, float])
    reasoning_effort: str | None = None


@dataclass(frozen=True, slots=True)
class Tooling:
    """The caller's function tools, in OpenAI's JSON shape, and how the model may use them."""

    tools: tuple[JsonObject, ...] = ()
    tool_choice: str | JsonObject | None = None
    parallel_tool_calls: bool | None = None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Everything a language model is told for one reply."""

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    tooling: Tooling = Tooling()
    response_format: JsonObject | None = None
    model: str | None = None
