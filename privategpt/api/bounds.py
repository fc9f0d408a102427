"""How large a body may be and how long it may take to arrive."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privategpt.api.deps import ApiOptions

UPLOAD_PATHS = frozenset({"/v1/ingest", "/v1/ingest/file"})
FORM_OVERHEAD_BYTES = 1_000_000
"""What boundaries, part headers and form fields may add to an upload."""

# A body that is refused is not read to its end, so the connection cannot be used again.
_CLOSE = {"Connection": "close"}


class BodyBounds:
    """Refuses a body that is too large (413) or too slow (408) while it arrives.

    A declared length is refused before a byte is read. A sender must keep up a minimum rate
    after a grace, so that a byte a second does not hold a connection.
    """

    def __init__(self, app: ASGIApp, *, options: ApiOptions) -> None:
        self._app = app
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = _Body(
            receive=receive,
            max_bytes=self._max_bytes(scope["path"]),
            grace_s=self._options.read_grace_s,
            min_rate=self._options.min_read_rate,
            declared=_declared_length(headers),
            packed=_is_packed(headers),
        )
        await self._app(scope, body.next_message, send)

    def _max_bytes(self, path: str) -> int:
        if path in UPLOAD_PATHS:
            return self._options.max_upload_bytes + FORM_OVERHEAD_BYTES
        return self._options.max_body_bytes


@dataclass(slots=True)
class _Body:
    receive: Receive
    max_bytes: int
    grace_s: float
    min_rate: int
    declared: int | None
    packed: bool
    received: int = 0
    complete: bool = False
    started_at: float | None = None

    async def next_message(self) -> Message:
        """The server's next message; after the body, a disconnect may be awaited for ever."""
        if self.complete:
            return await self.receive()
        if self.packed:
            reason = "Send the body as it is: a Content-Encoding such as gzip is not read here"
            raise HTTPException(415, reason, headers=_CLOSE)
        if self.declared is not None and self.declared > self.max_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout_at(self._deadline()):
                message = await self.receive()
        except TimeoutError as error:
            raise HTTPException(408, "The body arrives too slowly", headers=_CLOSE) from error
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self.received > self.max_bytes:
                raise self._too_large()
        return message

    def _deadline(self) -> float:
        if self.started_at is None:
            self.started_at = asyncio.get_running_loop().time()
        return self.started_at + self.grace_s + self.received / self.min_rate

    def _too_large(self) -> HTTPException:
        message = f"The body is larger than the {self.max_bytes} bytes that are accepted here"
        return HTTPException(413, message, headers=_CLOSE)


def _is_packed(headers: Headers) -> bool:
    """A few bytes could unpack to more than any bound, and no client packs unless it is told to."""
    return headers.get("content-encoding", "").strip().lower() not in {"", "identity"}


def _declared_length(headers: Headers) -> int | None:
    declared = headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() else None
