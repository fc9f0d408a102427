"""Answers, watched: what a metric wants to know stands in their events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from privategpt.domain.answers import (
    AnswerEvent,
    ChoiceFinished,
    TextDelta,
    ToolCallDelta,
    UsageCounted,
)
from privategpt.domain.observing import ObservedAnswer, Observer
from privategpt.services.answering import AnswerRequest


class Answers(Protocol):
    """Whatever answers."""

    def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """See `services.answering.Answering.answer`."""
        ...


class ObservedAnswers:
    """Answers as `answers` does, and tells `observer`."""

    def __init__(self, answers: Answers, *, observer: Observer) -> None:
        self._answers = answers
        self._observer = observer

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """As `Answering.answer`."""
        with self._observer.answering() as observed:
            async with aclosing(self._answers.answer(request)) as events:
                async for event in events:
                    self._look_at(event, observed)
                    yield event

    def _look_at(self, event: AnswerEvent, observed: ObservedAnswer) -> None:
        if isinstance(event, TextDelta | ToolCallDelta):
            observed.text_began()
        elif isinstance(event, ChoiceFinished):
            self._observer.markers_removed(event.markers_removed)
        elif isinstance(event, UsageCounted):
            observed.counted(event.usage)
