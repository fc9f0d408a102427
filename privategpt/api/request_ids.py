"""One id per request, on every reply: clients quote it, logs are found by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SCOPE_KEY = "privategpt.request_id"
_SANE = re.compile(rb"[A-Za-z0-9._-]{1,128}")

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")
"""The id of the request that a log line belongs to; tasks and threads inherit it."""


class RequestIds:
    """Stamps every reply with `X-Request-ID` and `request-id` (Anthropic's SDKs read that one).

    The client's own `X-Request-ID` is kept where it is short and plain.
    """

    def __init__(self, app: ASGIApp, *, new_id: Callable[[], str]) -> None:
        self._app = app
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[_SCOPE_KEY] = request_id = self._chosen(scope) or f"req_{self._new_id()}"
        # Never set back: the server logs an exception of ours when this has returned, and every
        # request has a task, and so a context, of its own.
        current_request_id.set(request_id)

        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(request_id_headers(scope))
            await send(message)

        await self._app(scope, receive, stamped)

    @staticmethod
    def _chosen(scope: Scope) -> str | None:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _SANE.fullmatch(value):
                return str(value.decode("ascii"))
        return None


def request_id_headers(scope: Scope) -> dict[str, str]:
    """The headers that carry the id of the request of `scope`."""
    request_id = str(scope.get(_SCOPE_KEY, ""))
    return {"x-request-id": request_id, "request-id": request_id} if request_id else {}
