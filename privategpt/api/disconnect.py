"""Work that nobody waits for any more is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

T = TypeVar("T")


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """The result of `work`, which is cancelled as soon as the client leaves.

    Only once the body has been read: `receive` is consumed. Raises `ClientDisconnect`.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        task.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        return await work
    except asyncio.CancelledError:
        # Who else cancels this task must not be kept from it.
        if left and task.cancelling() == 1:
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()
        if left:
            task.uncancel()
