"""A message in one piece, put together from its events, so that it cannot differ from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from privategpt.api.encode.views import Json
from privategpt.api.jsontext import parse


class MessageFold:
    """Takes the events of one reply, all of them."""

    def __init__(self) -> None:
        self._message: Json = {}
        self._blocks: list[Json] = []
        self._arguments: list[str] = []

    def add(self, chunks: Iterable[Json]) -> None:
        """Take the next events."""
        for event in chunks:
            match event["type"]:
                case "message_start":
                    self._message = event["message"]
                case "content_block_start":
                    self._blocks.append(dict(event["content_block"]))
                    self._arguments = []
                case "content_block_delta":
                    self._add_piece(self._blocks[-1], event["delta"])
                case "content_block_stop":
                    self._end_block(self._blocks[-1])
                case "message_delta":
                    self._end(event)
                case _:
                    pass

    def reply(self) -> Json:
        """The message."""
        return {**self._message, "content": self._blocks}

    def _add_piece(self, block: Json, delta: Json) -> None:
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
            case "citations_delta":
                block["citations"] = [*block["citations"], delta["citation"]]
            case _:
                self._arguments.append(delta["partial_json"])

    def _end_block(self, block: Json) -> None:
        # Read once: a file that a model writes comes in thousands of pieces.
        if self._arguments:
            block["input"] = _object("".join(self._arguments))

    def _end(self, event: Json) -> None:
        shown: Json = {key: event[key] for key in ("sources", "grounded") if key in event}
        message = {key: value for key, value in self._message.items() if key != "sources"}
        self._message = {**message, **event["delta"], "usage": event["usage"], **shown}


def _object(arguments: str) -> dict[str, Any]:
    """A call's arguments; what is no JSON object, as a model may write, is handed on as text."""
    try:
        value: object = parse(arguments.encode("utf-8", errors="surrogatepass"))
    except ValueError:  # NaN, infinities and endless nesting too, which no reply can carry
        return {"INVALID_JSON": arguments}
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return {"INVALID_JSON": arguments}
