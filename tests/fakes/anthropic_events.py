"""Reads Anthropic's event streams as its SDKs do."""

from __future__ import annotations

import json
from typing import Any


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream; each must have a name, and it must be its type."""
    events: list[dict[str, Any]] = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        assert name.startswith("event: "), block
        assert data.startswith("data: "), block
        event: dict[str, Any] = json.loads(data[6:])
        assert event["type"] == name[7:], block
        events.append(event)
    assert text.endswith("\n\n"), text
    return events


def message_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What `get_final_message()` of the SDKs puts together, and the fields of `message_delta`."""
    kinds = [event["type"] for event in events if event["type"] != "ping"]
    assert kinds[0] == "message_start", kinds
    assert kinds[-2:] == ["message_delta", "message_stop"], kinds
    message: dict[str, Any] = events[0]["message"]
    blocks: list[dict[str, Any]] = []
    arguments: list[str] = []
    open_index: int | None = None
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert open_index is None
                assert event["index"] == len(blocks)
                open_index = event["index"]
                blocks.append(dict(event["content_block"]))
                arguments.append("")
            case "content_block_delta":
                assert event["index"] == open_index
                _add(blocks, arguments, event["delta"])
            case "content_block_stop":
                assert event["index"] == open_index
                open_index = None
            case "message_delta":
                assert open_index is None
                shown: dict[str, Any] = {
                    key: event[key] for key in ("sources", "grounded") if key in event
                }
                kept = {key: value for key, value in message.items() if key != "sources"}
                message = {**kept, **event["delta"], "usage": event["usage"], **shown}
            case _:
                pass
    for block, written in zip(blocks, arguments, strict=True):
        if written:
            block["input"] = json.loads(written)
    return {**message, "content": blocks}


def text_of(message: dict[str, Any]) -> str:
    """The text of all blocks."""
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def citations_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The citations of all blocks, in order."""
    found: list[dict[str, Any]] = []
    for block in message["content"]:
        found += block.get("citations") or []
    return found


def _add(blocks: list[dict[str, Any]], arguments: list[str], delta: dict[str, Any]) -> None:
    match delta["type"]:
        case "text_delta":
            blocks[-1]["text"] += delta["text"]
        case "thinking_delta":
            blocks[-1]["thinking"] += delta["thinking"]
        case "citations_delta":
            blocks[-1]["citations"] = [*(blocks[-1]["citations"] or []), delta["citation"]]
        case "input_json_delta":
            arguments[-1] += delta["partial_json"]
        case _:
            raise AssertionError(delta)
