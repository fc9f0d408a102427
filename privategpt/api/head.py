"""HEAD is GET without the body: monitors, link checkers and `curl -I` ask so."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Answers HEAD with the status and headers that GET has.

    Whoever has these has everything, so what would come behind them, be it a stream without an
    end, is given up.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        begun = asyncio.Event()

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                begun.set()

        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(
                self._answer({**scope, "method": "GET"}, receive, send_head)
            )
            enough = tasks.create_task(begun.wait())
            await asyncio.wait({answering, enough}, return_when=asyncio.FIRST_COMPLETED)
            answering.cancel()
            enough.cancel()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
