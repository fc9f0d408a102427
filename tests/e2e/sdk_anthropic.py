"""Asks a server everything Anthropic's Python SDK can and prints what came back as JSON."""

from __future__ import annotations

import base64
import importlib
import json
import sys
from pathlib import Path
from typing import Any

# By name, as it is not in this environment: the test puts the version it means on the path.
anthropic: Any = importlib.import_module("anthropic")
base_url, pdf = sys.argv[1:]
client = anthropic.Anthropic(base_url=base_url, api_key="unused", max_retries=0, timeout=60)
asked: dict[str, Any] = {
    "model": "private-gpt",
    "max_tokens": 300,
    "messages": [{"role": "user", "content": "What is the weather forecast for Lisbon?"}],
}
searching: dict[str, Any] = {**asked, "extra_body": {"web_search": True}}
data = base64.b64encode(Path(pdf).read_bytes()).decode()
documents = [
    {
        "type": "document",
        "title": "Birds",
        "citations": {"enabled": True},
        "source": {"type": "text", "media_type": "text/plain", "data": "Herons hunt at dawn."},
    },
    {
        "type": "document",
        "title": "Towers",
        "citations": {"enabled": True},
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    },
    {"type": "text", "text": "documents"},
]
reading: dict[str, Any] = {**asked, "messages": [{"role": "user", "content": documents}]}
tool: dict[str, Any] = {
    "name": "look_up",
    "description": "Looks things up",
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}},
}
calling: dict[str, Any] = {**asked, "tools": [tool], "tool_choice": {"type": "any"}}


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def citations_of(message: Any) -> list[Any]:
    blocks: list[Any] = [block for block in message.content if block.type == "text"]
    cited: list[Any] = [one for block in blocks for one in (block.citations or ())]
    return [one.to_dict() for one in cited]


def facts(message: Any) -> dict[str, Any]:
    return {
        "text": text_of(message),
        "citations": citations_of(message),
        "sources": getattr(message, "sources", None),
        "stop": [message.stop_reason, message.stop_sequence],
        "input_tokens": message.usage.input_tokens,
        "output_tokens": message.usage.output_tokens,
    }


def streamed(request: dict[str, Any]) -> dict[str, Any]:
    with client.messages.stream(**request) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == text_of(message), (text, message)
    return facts(message)


def last_sources(request: dict[str, Any]) -> Any:
    for event in client.messages.create(**request, stream=True):
        if event.type == "message_delta":
            return getattr(event, "sources", None)
    raise AssertionError("There was no message_delta")


def failure(**wrong: Any) -> list[Any]:
    try:
        client.messages.create(**{**asked, **wrong})
    except anthropic.APIStatusError as error:
        body: Any = error.body
        return [type(error).__name__, error.status_code, body["error"]["type"], error.request_id]
    raise AssertionError("The server took it")


called: Any = client.messages.create(**calling)
(call,) = (block for block in called.content if block.type == "tool_use")
answer = {"type": "tool_result", "tool_use_id": call.id, "content": "A bird."}
after = {
    **calling,
    "tool_choice": {"type": "none"},
    "messages": [
        *asked["messages"],
        {"role": "assistant", "content": [block.to_dict() for block in called.content]},
        {"role": "user", "content": [answer]},
    ],
}
with client.messages.stream(**calling) as stream:
    streamed_call: Any = stream.get_final_message()

print(
    json.dumps(
        {
            "version": anthropic.__version__,
            "searched": facts(client.messages.create(**searching)),
            "searched_stream": streamed(searching),
            "delta_sources": last_sources(searching),
            "read": facts(client.messages.create(**reading)),
            "read_stream": streamed(reading),
            "call": [call.name, call.input, called.stop_reason],
            "call_stream": [
                [block.name, block.input]
                for block in streamed_call.content
                if block.type == "tool_use"
            ],
            "after_call": text_of(client.messages.create(**after)),
            "stopped": facts(client.messages.create(**asked, stop_sequences=["think"])),
            "tokens": client.messages.count_tokens(
                model="private-gpt", messages=asked["messages"]
            ).input_tokens,
            "models": [model.id for model in client.models.list()],
            "unknown": failure(model="gpt-9"),
            "unfit": failure(messages=[]),
        }
    )
)
