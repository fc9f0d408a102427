"""A fake of the use case behind the completion endpoints: it plays a script of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    FinishReason,
    TextDelta,
    Usage,
    UsageCounted,
)
from privategpt.services.answering import AnswerRequest

Step: TypeAlias = AnswerEvent | BaseException | asyncio.Event
"""An event to yield, an error to raise, or a gate to wait for."""

USAGE = UsageCounted(
    usage=Usage(prompt_tokens=7, completion_tokens=2, cached_tokens=3),
    system_fingerprint="fp_fake",
)


def plain_answer(*pieces: str) -> list[Step]:
    """An answer without context, in pieces."""
    texts: list[Step] = [TextDelta(text=piece) for piece in pieces]
    return [AnswerStarted(), *texts, ChoiceFinished(reason=FinishReason.STOP), USAGE]


@dataclass
class FakeAnswers:
    """Plays `script` for every request and notes who asked and who left."""

    script: Sequence[Step] = field(default_factory=lambda: plain_answer("Hello", " there."))
    requests: list[AnswerRequest] = field(default_factory=list[AnswerRequest])
    started: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """Play the script; `closed` is set once the generator has ended, however it did."""
        self.requests.append(request)
        self.started.set()
        try:
            for step in self.script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, BaseException):
                    raise step
                else:
                    yield step
        finally:
            self.closed.set()

    async def count_tokens(self, request: AnswerRequest) -> int:
        """The characters of its messages."""
        self.requests.append(request)
        return sum(len(message.text) for message in request.messages)
