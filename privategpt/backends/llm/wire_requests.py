"""What a request looks like on an OpenAI-compatible wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privategpt.domain.conversation import (
    GenerationRequest,
    Message,
    Role,
    Sampling,
    ToolCall,
    Tooling,
)

WireObject = dict[str, Any]


def chat_body(request: GenerationRequest, *, model: str, defaults: Sampling) -> WireObject:
    """The body of POST /chat/completions: always a stream, always with usage.

    What neither the caller nor `defaults` says is left out, so that the engine's own holds.
    """
    body: WireObject = {
        "model": model,
        "messages": wire_messages(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(request.sampling, defaults),
        **_tooling(request.tooling),
    }
    if request.response_format is not None:
        body["response_format"] = dict(request.response_format)
    return body


def wire_messages(messages: Sequence[Message]) -> list[WireObject]:
    """The turns in OpenAI's shape."""
    return [_message(message) for message in messages]


def _message(message: Message) -> WireObject:
    wire: WireObject = {"role": message.role.value, "content": _content(message)}
    if message.tool_calls:
        wire["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
        wire["content"] = message.text or None
    if message.role is Role.TOOL:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _content(message: Message) -> str | list[WireObject]:
    # A plain string wherever it will do: many engines' chat templates know nothing of parts.
    if not message.images:
        return message.text
    parts: list[WireObject] = [{"type": "text", "text": message.text}] if message.text else []
    for image in message.images:
        address: WireObject = {"url": image.url}
        if image.detail is not None:
            address["detail"] = image.detail
        parts.append({"type": "image_url", "image_url": address})
    return parts


def _tool_call(call: ToolCall) -> WireObject:
    # Clients echo "" for a call without arguments; engines parse it as JSON and fail.
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _sampling(sampling: Sampling, defaults: Sampling) -> WireObject:
    asked = sampling.temperature
    wire: WireObject = {
        "max_tokens": sampling.max_tokens or defaults.max_tokens,
        "temperature": defaults.temperature if asked is None else asked,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
        "logit_bias": dict(sampling.logit_bias) or None,
        "reasoning_effort": sampling.reasoning_effort,
    }
    if sampling.top_logprobs is not None:
        # llama.cpp sends no log probabilities at all for 0; what was not asked for is cut off
        # where the chunks are read.
        wire |= {"logprobs": True, "top_logprobs": max(1, sampling.top_logprobs)}
    return {name: value for name, value in wire.items() if value is not None}


def _tooling(tooling: Tooling) -> WireObject:
    # tool_choice and parallel_tool_calls without tools are refused by OpenAI and vLLM.
    if not tooling.tools:
        return {}
    wire: WireObject = {"tools": [dict(tool) for tool in tooling.tools]}
    if tooling.tool_choice is not None:
        choice = tooling.tool_choice
        wire["tool_choice"] = choice if isinstance(choice, str) else dict(choice)
    if tooling.parallel_tool_calls is not None:
        wire["parallel_tool_calls"] = tooling.parallel_tool_calls
    return wire
