"""Streams of chunks from an OpenAI-compatible server, read many at a time.

The client's own way to a request takes longer than all that this server does for one, and its
reader hands every line through four generators and a regular expression.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import anyio
import httpx2
import openai
from pydantic_core import from_json

from privategpt.domain.errors import EngineFailed

MAX_EVENT_BYTES = 16_000_000
"""No event is as large; what goes on for longer without an end is no stream of events."""
DRAIN_S = 0.1
"""How long the end of the body may be late behind [DONE]; then the connection is given up."""
_DONE = b"[DONE]"


class EventReader:
    """Bytes in, the `data` of each whole event out; an event at the end without its blank line
    is none, as the standard says.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that end in `piece`. Raises `EngineFailed` for one that never ends."""
        piece = self._with_plain_line_ends(piece)
        *events, self._rest = (self._rest + piece).split(b"\n\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EngineFailed("The language model server sent an event without an end")
        return [data for event in events if (data := _data(event)) is not None]

    def _with_plain_line_ends(self, piece: bytes) -> bytes:
        """Lines may end in CR, LF or both, which may come in two pieces."""
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" not in piece:
            return piece
        self._after_cr = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _data(event: bytes) -> bytes | None:
    """The data of an event; None where it has none, as in a comment."""
    if event.startswith(b"data:") and b"\n" not in event:
        return event[5:]
    lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


class ChunkStream:
    """The chunks of a streamed reply: as bytes when they come, as JSON when they are wanted."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._bytes: AsyncIterator[bytes] = response.aiter_bytes()
        self._events = EventReader()
        self._done = False

    async def arrived(self) -> list[bytes]:
        """The chunks that came next, all that came together; an empty list is the end.

        Raises what httpx2 raises, and `EngineFailed`.
        """
        while not self._done:
            piece = await anext(self._bytes, None)
            if piece is None:
                return []
            if events := self._before_the_end(self._events.feed(piece)):
                return events
        await self._drain()
        return []

    def _before_the_end(self, events: list[bytes]) -> list[bytes]:
        for position, data in enumerate(events):
            if data.lstrip().startswith(_DONE):
                self._done = True
                return events[:position]
        return events

    def parse(self, data: bytes) -> object:
        """Raises `openai.APIError` for an error event, `ValueError` for what is not JSON.

        Apart from `arrived`, as a hundred chunks at once would keep everybody else waiting.
        """
        chunk = _json(data)
        error = _fields(chunk).get("error")
        if error:
            raise self._reported(error)
        return chunk

    def _reported(self, error: object) -> openai.APIError:
        message = _fields(error).get("message")
        text = message if isinstance(message, str) else "an error event"
        return openai.APIError(text, request=self._response.request, body=error)

    async def _drain(self) -> None:
        """Read the body to its end, so that its connection can be used again."""
        with anyio.move_on_after(DRAIN_S):
            async for _ in self._bytes:
                pass

    async def close(self) -> None:
        """Release the connection; where the reply was not read to its end, drop it."""
        await self._response.aclose()


def _fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class ChatStreams:
    """Asks one server's chat endpoint for streams, over the client's own connections."""

    def __init__(self, http: httpx2.AsyncClient, *, base_url: str, api_key: str) -> None:
        self._http = http
        self._url = httpx2.URL(f"{base_url.rstrip('/')}/chat/completions")
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }

    async def open(self, body: Mapping[str, Any]) -> ChunkStream:
        """The server's answer, its head read. Raises what httpx2 raises, and
        `openai.APIStatusError`.
        """
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        request = self._http.build_request(
            "POST", self._url, content=text.encode(), headers=self._headers
        )
        response = await self._http.send(request, stream=True)
        if response.is_success:
            return ChunkStream(response)
        try:
            await response.aread()
            raise _refusal(response)
        finally:
            await response.aclose()


def _refusal(response: httpx2.Response) -> openai.APIStatusError:
    """As the client reads it: the body's `error`, the body, or its text."""
    try:
        body: object = json.loads(response.content)
    except ValueError:
        body = response.text.strip()
    told = _fields(body).get("error", body)
    return openai.APIStatusError(f"status {response.status_code}", response=response, body=told)


def _json(text: bytes) -> object:
    """The slower parser takes what the faster does not: lone surrogates, of a letter in two."""
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        return json.loads(text)
