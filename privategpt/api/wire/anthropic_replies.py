"""Anthropic's reply bodies, as documentation: replies are built as plain dicts for speed."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from privategpt.api.wire.replies import NumberedSource, Reply


class MessageUsage(Reply):
    """Tokens; `input_tokens` leave out what came from the engine's cache."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cache_creation: None
    output_tokens: int
    output_tokens_details: dict[str, int]
    server_tool_use: None
    service_tier: Literal["standard"]
    inference_geo: None


class ContentBlock(Reply):
    """A piece of the reply: text with its citations, a thought, or a call of a tool."""

    type: Literal["text", "thinking", "tool_use"]
    text: str | None = None
    citations: list[dict[str, Any]] | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    caller: dict[str, str] | None = None


class MessageReply(Reply):
    """A message. `sources` is there where something was found, `grounded` where sources were
    asked for.
    """

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[ContentBlock]
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]
    stop_sequence: str | None
    stop_details: None
    container: None
    usage: MessageUsage
    sources: list[NumberedSource] | None = None
    grounded: bool | None = None


class InputTokens(Reply):
    """The size of a prompt."""

    input_tokens: int


class MessagesError(Reply):
    """What went wrong, under one of Anthropic's types."""

    type: str
    message: str
    param: str | None
    code: str | None


class MessagesErrorReply(Reply):
    """An error."""

    type: Literal["error"]
    error: MessagesError
    request_id: str | None
    detail: Any = Field(description="The message, or a list of what is wrong with the body.")


MESSAGES_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": MessagesErrorReply, "description": "The request cannot be served as it is"},
    "5XX": {"model": MessagesErrorReply, "description": "A part of the server does not serve"},
}
"""The error replies of Anthropic's operations."""
