"""Reads a blocking iterator from the event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def iterate_in_thread(
    start: Callable[[], Generator[T]], *, executor: Executor
) -> AsyncGenerator[T]:
    """Yield what `start()` yields, each step in a thread of `executor`, one at a time.

    Closing this closes the iterator as soon as the step under way, if any, returns: a thread
    cannot be interrupted, and whoever closes does not wait for it.
    """
    # One context for all steps: instrumented generators set and reset variables in it.
    context = contextvars.copy_context()
    iterator: Generator[T] | None = None

    def step() -> tuple[T] | None:
        nonlocal iterator
        if iterator is None:
            iterator = start()
        for item in iterator:
            return (item,)
        return None

    def finish(_: Future[tuple[T] | None]) -> None:
        if iterator is not None:
            closing = iterator
            with suppress(RuntimeError):  # the executor is shut down: the process ends
                executor.submit(lambda: context.run(closing.close))

    future: Future[tuple[T] | None] | None = None
    try:
        while True:
            future = executor.submit(lambda: context.run(step))
            item = await asyncio.wrap_future(future)
            if item is None:
                return
            yield item[0]
    finally:
        if future is not None:
            future.add_done_callback(finish)
