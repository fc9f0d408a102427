"""Requests that arrive in one moment begin one after the other; see `api/turns.py`."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from privategpt.api.request_log import PROBES
from privategpt.api.turns import Turns


class OneByOne:
    """Lets one request begin in a turn; probes do not wait."""

    def __init__(self, app: ASGIApp, *, turns: Turns) -> None:
        self._app = app
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PROBES:
            await self._turns.mine()
        await self._app(scope, receive, send)
