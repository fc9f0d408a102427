"""A generator that runs in a task of its own, read with a time limit and without cutting it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


async def nobody_else() -> None:
    """The turn of who is alone."""


class Relay(Generic[T]):
    """Runs `items` ahead of its reader by at most `capacity` items.

    A generator that is faster than its reader waits for its `turn` whenever it is so far ahead.
    The generator is started, iterated and closed in one task, as its timeouts and task groups
    need, while the reader may give up waiting, and leave, at any time. Leaving the context stops
    the generator where it is and returns once it has cleaned up.
    """

    def __init__(
        self,
        items: AsyncGenerator[T],
        *,
        capacity: int = 32,
        turn: Callable[[], Awaitable[None]] = nobody_else,
    ) -> None:
        self._items = items
        self._capacity = capacity
        self._turn = turn
        self._waiting: list[T] = []
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reason: BaseException | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: self._filled.set())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = self._running
        task.cancel()
        await asyncio.wait({task})
        self.error()  # Read, so that one that came too late for the reader is not reported.

    async def _run(self) -> None:
        async with aclosing(self._items) as items:
            async for item in items:
                self._waiting.append(item)
                self._filled.set()
                while len(self._waiting) >= self._capacity:
                    self._drained.clear()
                    await self._drained.wait()
                    await self._turn()

    async def take(self, timeout_s: float | None = None) -> list[T] | None:
        """Everything that waits, or what comes next; None is silence for `timeout_s`.

        An empty list is the end, for the reason that `error` gives.
        """
        if not self._waiting and not self._running.done():
            await self._next_change(timeout_s)
            if not self._waiting and not self._running.done():
                return None
        taken, self._waiting = self._waiting, []
        self._drained.set()
        return taken

    async def _next_change(self, timeout_s: float | None) -> None:
        """Return when something has come, at the end, or after `timeout_s`.

        A bare timer, as `asyncio.timeout` for every item would cost more than the item.
        """
        self._filled.clear()
        timer = None
        if timeout_s is not None:
            timer = asyncio.get_running_loop().call_later(timeout_s, self._filled.set)
        try:
            await self._filled.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def interrupt(self, reason: BaseException) -> None:
        """Stop the generator; the reader comes to the end, with `reason` for its error."""
        if not self._running.done():
            self._reason = reason
            self._running.cancel()

    def error(self) -> BaseException | None:
        """After the end: why it came before its time, or None."""
        if self._reason is not None or self._running.cancelled():
            return self._reason
        return self._running.exception()

    @property
    def _running(self) -> asyncio.Task[None]:
        if self._task is None:
            raise RuntimeError("A relay is read inside its context")
        return self._task
