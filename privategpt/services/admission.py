"""So many answers at once and no more: a queue without an end only makes everybody wait longer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from privategpt.domain.answers import AnswerEvent
from privategpt.domain.errors import TooManyRequests
from privategpt.services.answering import AnswerRequest
from privategpt.services.limits import ANSWER_RETRY_S, Answers


class AdmittedAnswers:
    """Answers as `answers` does, at most `at_once` of them at any time.

    The engine keeps the queue: it alone knows when it has room. What is bounded is how many wait,
    here and there together, from before anything is searched for until the last event is read.
    """

    def __init__(self, answers: Answers, *, at_once: int) -> None:
        self._answers = answers
        self._at_once = at_once
        self._under_way = 0

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """As `Answering.answer`. Raises `TooManyRequests` before the first event."""
        if self._under_way >= self._at_once:
            raise TooManyRequests(
                "As many answers as this server takes on are under way; try again in a moment",
                retry_after_s=ANSWER_RETRY_S,
            )
        self._under_way += 1
        try:
            async with aclosing(self._answers.answer(request)) as events:
                async for event in events:
                    yield event
        finally:
            self._under_way -= 1
