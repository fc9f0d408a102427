"""Questions that wait together are answered together, on threads or by the event loop itself.

An engine's batch costs far less than its parts, and handing over to a thread costs more than many
a read does there.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeAlias, TypeVar

from privategpt.domain.errors import EngineUnavailable, PrivateGptError

QuestionT = TypeVar("QuestionT")
AnswerT = TypeVar("AnswerT")

_Asked: TypeAlias = "tuple[QuestionT, asyncio.Future[AnswerT]]"
_Handed: TypeAlias = "tuple[list[_Asked[QuestionT, AnswerT]], asyncio.AbstractEventLoop]"
_Inbox: TypeAlias = "SimpleQueue[_Handed[QuestionT, AnswerT] | None]"


class Gathering(Generic[QuestionT, AnswerT]):
    """Has `answer` called on threads of its own, with whatever was asked meanwhile.

    A question never waits for others to join it: it is taken as soon as one of `threads` is
    free, with those that were asked in the same round of the event loop. Without threads the loop
    calls `answer`, once a round: for engines that let no other thread run meanwhile. `name` is
    what is asked; with `wait_s` nobody waits longer for an answer than so many seconds.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[QuestionT]], Sequence[AnswerT]],
        *,
        threads: int,
        at_most: int,
        name: str,
        wait_s: float | None = None,
    ) -> None:
        self._answer = answer
        self._threads = threads
        self._at_most = at_most
        self._name = name
        self._wait_s = wait_s
        # An executor of the library's takes a tenth of a millisecond more to hand over, and the
        # thread that was busy last has most of what it needs in the processor's caches.
        self._begun: list[_Inbox[QuestionT, AnswerT]] = []
        self._idle: list[_Inbox[QuestionT, AnswerT]] = []
        self._waiting: deque[_Asked[QuestionT, AnswerT]] = deque()
        self._starting = False
        self._closed = False

    async def ask(self, question: QuestionT) -> AnswerT:
        """The answer; raises what `answer` raises for this question alone, or `TimeoutError`."""
        if self._closed:
            raise self._refusal()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[AnswerT] = loop.create_future()
        self._waiting.append((question, future))
        if not self._starting:
            self._start_soon(loop)
        if self._wait_s is None:
            return await future
        # `asyncio.timeout` takes several times as long as this.
        timer = loop.call_later(self._wait_s, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()

    def close(self) -> None:
        """Take no more questions. Those that are being answered will be, the others raise."""
        self._closed = True
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(self._refusal())
        self._waiting.clear()
        for inbox in self._begun:
            inbox.put(None)

    def _refusal(self) -> EngineUnavailable:
        return EngineUnavailable(f"The {self._name} is closed")

    def _start_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        self._starting = True
        loop.call_soon(self._start)

    def _start(self) -> None:
        self._starting = False
        if not self._threads:
            self._answer_here()
            return
        while self._waiting and (self._idle or len(self._begun) < self._threads):
            if asked := self._take():
                inbox = self._idle.pop() if self._idle else self._begin_thread()
                inbox.put((asked, asyncio.get_running_loop()))

    def _begin_thread(self) -> _Inbox[QuestionT, AnswerT]:
        inbox: _Inbox[QuestionT, AnswerT] = SimpleQueue()
        title = f"{self._name.replace(' ', '-')}-{len(self._begun)}"
        threading.Thread(target=self._serve, args=(inbox,), name=title, daemon=True).start()
        self._begun.append(inbox)
        return inbox

    def _take(self) -> list[_Asked[QuestionT, AnswerT]]:
        count = min(self._at_most, len(self._waiting))
        taken = [self._waiting.popleft() for _ in range(count)]
        # Whoever has given up meanwhile costs nothing.
        return [one for one in taken if not one[1].done()]

    def _answer_here(self) -> None:
        asked = self._take()
        if self._waiting:
            self._start_soon(asyncio.get_running_loop())
        if asked:
            _settle(asked, self._answers(asked))

    def _serve(self, inbox: _Inbox[QuestionT, AnswerT]) -> None:
        """A thread's work, until there is no more."""
        while (handed := inbox.get()) is not None:
            asked, loop = handed
            answers = self._answers(asked)
            with suppress(RuntimeError):  # It is closed: nobody waits any more.
                loop.call_soon_threadsafe(self._finish, inbox, asked, answers)

    def _finish(
        self,
        inbox: _Inbox[QuestionT, AnswerT],
        asked: Sequence[_Asked[QuestionT, AnswerT]],
        answers: Sequence[AnswerT | BaseException],
    ) -> None:
        self._idle.append(inbox)
        self._start()
        _settle(asked, answers)

    def _answers(
        self, asked: Sequence[_Asked[QuestionT, AnswerT]]
    ) -> Sequence[AnswerT | BaseException]:
        try:
            return self._answer_all([question for question, _ in asked])
        except BaseException as defect:  # noqa: BLE001 - a panic of Rust's, too: whoever asked is told
            return [defect] * len(asked)

    def _answer_all(self, questions: Sequence[QuestionT]) -> list[AnswerT | PrivateGptError]:
        try:
            return list(self._answer(questions))
        except PrivateGptError as error:
            if len(questions) == 1:
                return [error]
        # One of them is at fault: the others must not suffer for it.
        return [answer for question in questions for answer in self._answer_all([question])]


def _settle(
    asked: Sequence[_Asked[QuestionT, AnswerT]], answers: Sequence[AnswerT | BaseException]
) -> None:
    for (_, future), answer in zip(asked, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _expire(future: asyncio.Future[AnswerT]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
