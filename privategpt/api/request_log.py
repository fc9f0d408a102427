"""One line and one count for every request, when the last byte of its reply is sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privategpt.api.auth import caller_of
from privategpt.api.errors import CLIENT_CLOSED_REQUEST, INTERNAL
from privategpt.api.metrics import Metrics
from privategpt.api.scopes import told_route

PROBES = frozenset({"/health", "/health/ready", "/metrics"})
"""Asked every few seconds by machines; logged at DEBUG."""

_log = logging.getLogger("privategpt.access")


class RequestLog:
    """Logs and counts requests: method, route, status, time, tenant, key id. No word of theirs."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = self._clock()
        status = CLIENT_CLOSED_REQUEST

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with self._metrics.request():
                await self._app(scope, receive, watched)
        except BaseException as error:
            if status == CLIENT_CLOSED_REQUEST and not isinstance(error, asyncio.CancelledError):
                status = INTERNAL.status
            raise
        finally:
            self._note(scope, status=status, seconds=self._clock() - started_at)

    def _note(self, scope: Scope, *, status: int, seconds: float) -> None:
        method = str(scope["method"])
        route = told_route(method, scope["path"])
        self._metrics.answered(method=method, route=route, status=status, seconds=seconds)
        fields: dict[str, object] = {"status": status, "ms": round(seconds * 1000, 1)}
        caller = caller_of(scope)
        if caller is not None:
            fields |= {"tenant": caller.tenant, "key": caller.key_id or "-"}
        _log.log(
            logging.DEBUG if route in PROBES and status < 400 else logging.INFO,
            "%s %s",
            method,
            route,
            extra={"fields": fields},
        )
