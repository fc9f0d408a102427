"""Questions that wait together are answered together, on threads.

An engine's batch costs far less than its parts, and handing over to a thread costs more than many
a read does there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from privategpt.domain.errors import EngineUnavailable, PrivateGptError

QuestionT = TypeVar("QuestionT")
AnswerT = TypeVar("AnswerT")

_Asked: TypeAlias = "tuple[QuestionT, asyncio.Future[AnswerT]]"


class Gathering(Generic[QuestionT, AnswerT]):
    """Has `answer` called on threads of its own, with whatever was asked meanwhile.

    A question never waits for others to join it: it is taken as soon as one of `threads` is
    free, with those that were asked in the same round of the event loop. `name` is what is asked;
    with `wait_s` nobody waits longer for an answer than so many seconds.
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
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name.replace(" ", "-"))
        self._waiting: deque[_Asked[QuestionT, AnswerT]] = deque()
        self._running = 0
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
            self._starting = True
            loop.call_soon(self._start)
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
        self._pool.shutdown(wait=False)

    def _refusal(self) -> EngineUnavailable:
        return EngineUnavailable(f"The {self._name} is closed")

    def _start(self) -> None:
        self._starting = False
        while self._waiting and self._running < self._threads:
            count = min(self._at_most, len(self._waiting))
            taken = [self._waiting.popleft() for _ in range(count)]
            # Whoever has given up meanwhile costs nothing.
            asked = [one for one in taken if not one[1].done()]
            if asked:
                self._run(asked)

    def _run(self, asked: list[_Asked[QuestionT, AnswerT]]) -> None:
        self._running += 1
        questions = [question for question, _ in asked]
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._pool, self._answer_all, questions)
        running.add_done_callback(partial(self._settle, asked))

    def _answer_all(self, questions: Sequence[QuestionT]) -> list[AnswerT | PrivateGptError]:
        try:
            return list(self._answer(questions))
        except PrivateGptError as error:
            if len(questions) == 1:
                return [error]
        # One of them is at fault: the others must not suffer for it.
        return [answer for question in questions for answer in self._answer_all([question])]

    def _settle(
        self,
        asked: list[_Asked[QuestionT, AnswerT]],
        done: asyncio.Future[list[AnswerT | PrivateGptError]],
    ) -> None:
        self._running -= 1
        self._start()
        defect = done.exception()
        answers = [defect] * len(asked) if defect is not None else done.result()
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
