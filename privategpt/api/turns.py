"""A crowd is served one by one, so that /health is answered in between.

Everything runs in one event loop, and each of its turns does all that is ready. Two hundred
requests that arrive in one moment would be validated, searched for and sent on in one turn each
step, as would a hundred streams whose engines are faster than their readers; and whoever asks for
anything meanwhile would wait for all of them, several times.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Gives one of those who ask a turn of the event loop each, first come first served."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    async def mine(self) -> None:
        """Return when it is the caller's turn: at once, if nobody has had one in this turn."""
        loop = asyncio.get_running_loop()
        if self._taken:
            place = loop.create_future()
            self._waiting.append(place)
            await place
        else:
            self._taken = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the next turn of the loop: the next one, past those who have left."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._taken = False
