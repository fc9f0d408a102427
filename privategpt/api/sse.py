"""Replies as server-sent events, in the form that every published client can read.

Only `data:` lines where OpenAI's clients read: a comment, an `id:` or an `event:` breaks one client
or another, so silence is filled with chunks of no content. An error before the first event keeps
its own status; after it, the error is an event, then the end marker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import anyio
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from privategpt.api.deps import ApiOptions
from privategpt.api.disconnect import while_connected
from privategpt.api.errors import stream_error
from privategpt.api.jsontext import dump_line
from privategpt.api.relay import Relay
from privategpt.api.turns import Turns
from privategpt.domain.answers import AnswerEvent
from privategpt.domain.errors import EngineUnavailable, PrivateGptError

EventT = TypeVar("EventT")
Chunk: TypeAlias = dict[str, Any]

DONE = b"data: [DONE]\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamForm:
    """How a dialect writes its chunks, an error among them, and the end."""

    line: Callable[[Chunk], bytes]
    error: Callable[[BaseException], Chunk]
    end: bytes


def data_line(chunk: Chunk) -> bytes:
    """A chunk as an event without a name."""
    return b"data: " + dump_line(chunk) + b"\n\n"


OPENAI = StreamForm(line=data_line, error=stream_error, end=DONE)


class EventStream(EventSourceResponse, Generic[EventT]):
    """Streams `events` through `encode`, from the first event on.

    The events are asked for when the response is sent, and closed, whatever happens, when it
    ends: the model stops when the client leaves, and when the server must stop.
    """

    def __init__(
        self,
        events: AsyncGenerator[EventT],
        *,
        encode: Callable[[EventT], Iterable[Chunk]],
        heartbeat: Callable[[], Chunk],
        options: ApiOptions,
        turns: Turns,
        form: StreamForm = OPENAI,
    ) -> None:
        self._form = form
        self._relay = Relay(events, turn=turns.mine)
        self._encode = encode
        self._heartbeat = heartbeat
        self._options = options
        self._stopping = anyio.Event()
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            _nothing(),  # Replaced by the lines once the first event is there.
            headers=HEADERS,
            ping=0,
            send_timeout=options.send_timeout_s,
            shutdown_event=self._stopping,
            # The library cuts a stream at its grace; ours ends a little earlier, with a word.
            shutdown_grace_period=options.shutdown_grace_s + 1.0,
        )
        # The server knows whether the connection stays; the library says so of every one.
        del self.headers["connection"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._relay as relay:
            first = await while_connected(receive, relay.take())
            error = None if first else relay.error()
            if error is not None:
                raise error
            self.body_iterator = self._lines(first)
            stop = asyncio.create_task(self._stop_after_grace())
            try:
                await super().__call__(scope, receive, send)
            except SendTimeoutError:
                _log.info("a stream was given up: its reader stopped reading")
            finally:
                stop.cancel()

    async def _stop_after_grace(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(self._options.shutdown_grace_s)
        self._relay.interrupt(EngineUnavailable("The server is shutting down"))

    async def _lines(self, first: list[EventT] | None) -> AsyncGenerator[bytes]:
        events = first
        while events is None or events:
            if lines := self._encoded(events):
                yield lines
            events = await self._relay.take(self._options.heartbeat_s)
        error = self._relay.error()
        if error is not None:
            _log.error("a stream broke off: %s", error, exc_info=_unforeseen(error))
            yield self._form.line(self._form.error(error))
        yield self._form.end

    def _encoded(self, events: list[EventT] | None) -> bytes:
        """The lines of what came; of silence, a chunk of no content."""
        if events is None:
            return self._form.line(self._heartbeat())
        line = self._form.line
        return b"".join(line(chunk) for event in events for chunk in self._encode(event))


AnswerStream: TypeAlias = EventStream[AnswerEvent]


async def _nothing() -> AsyncGenerator[bytes]:
    return
    yield b""


def _unforeseen(error: BaseException) -> BaseException | None:
    """What deserves a traceback in the log: anything but an error of our own tree."""
    return None if isinstance(error, PrivateGptError) else error
