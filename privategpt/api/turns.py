"""A crowd of requests is let in one by one, so that /health is answered in between.

Everything runs in one event loop, and each of its turns does all that is ready. Two hundred
requests that arrive in one moment would be validated, searched for and sent on in one turn each
step, and whoever asks for anything meanwhile would wait for all of them, several times.
"""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send

from privategpt.api.request_log import PROBES


class Turns:
    """Lets one request begin in a turn of the event loop; the others wait, first come first."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PROBES:
            await self._my_turn()
        await self._app(scope, receive, send)

    async def _my_turn(self) -> None:
        loop = asyncio.get_running_loop()
        if self._taken:
            place = loop.create_future()
            self._waiting.append(place)
            await place
        else:
            self._taken = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the next turn: let the next one in, past those who have left."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._taken = False
