"""An engine that gives what is asked for: text, its odds, thoughts, a tool call, schema JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.fakes.llm_server import (
    CHAT,
    Json,
    Received,
    Reply,
    ScriptedServer,
    answer,
    delta_chunk,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)

TEXT = ("Hello", " there.")
_EXAMPLES: dict[str, Any] = {"string": "Paris", "number": 1.5, "integer": 1, "boolean": True}


def obliging_engine() -> ScriptedServer:
    """A scripted server that reads what it is asked."""
    return ScriptedServer().on(CHAT, _reply)


def example(schema: Mapping[str, Any]) -> Any:
    """A value that a simple JSON Schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: example(part) for name, part in schema.get("properties", {}).items()}
    return _EXAMPLES.get(str(schema.get("type")))


def _reply(request: Received) -> Reply:
    asked: dict[str, Any] = request.body
    tools: list[dict[str, Any]] = asked.get("tools") or []
    form: dict[str, Any] = asked.get("response_format") or {}
    if tools and asked.get("tool_choice") != "none":
        return _call(tools[0]["function"])
    if form.get("type") == "json_schema":
        return answer(json.dumps(example(form["json_schema"]["schema"])))
    if form.get("type") == "json_object":
        return answer('{"place": "Paris"}')
    if asked.get("logprobs"):
        return _weighed()
    if asked.get("reasoning_effort"):
        return _thought()
    return answer(*TEXT)


def _weighed() -> Reply:
    return sse(*map(_weighed_chunk, TEXT), finish_chunk(), usage_chunk())


def _weighed_chunk(text: str) -> Json:
    token: Json = {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}
    return delta_chunk({"content": text}, logprobs={"content": [token]})


def _thought() -> Reply:
    thinking = delta_chunk({"role": "assistant", "reasoning_content": "Hm."})
    usage = usage_chunk(completion_tokens_details={"reasoning_tokens": 2})
    return sse(thinking, *map(text_chunk, TEXT), finish_chunk(), usage)


def _call(function: Mapping[str, Any]) -> Reply:
    arguments = json.dumps(example(function.get("parameters", {})))
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }
    return sse(
        delta_chunk({"role": "assistant", "content": None, "tool_calls": [call]}),
        finish_chunk("tool_calls"),
        usage_chunk(),
    )
