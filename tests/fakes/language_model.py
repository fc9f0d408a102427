"""A fake `LanguageModel` that plays scripts; words are its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from privategpt.domain.answers import (
    FinishReason,
    GenerationEvent,
    GenerationFinished,
    TextDelta,
    Usage,
)
from privategpt.domain.conversation import GenerationRequest, Message
from privategpt.domain.errors import PrivateGptError

Step: TypeAlias = GenerationEvent | str | PrivateGptError | asyncio.Event
"""An event; a text to send as one delta; an error to raise; or a gate to wait for."""

Script: TypeAlias = Sequence[Step]
Scripting: TypeAlias = Script | Callable[[GenerationRequest], Iterable[Step]]


@dataclass(slots=True)
class ScriptedLanguageModel:
    """Plays one script for every request, or what a function makes of the request.

    The end is added where a script has none. Where the caller bounds the reply, it is cut there.
    """

    script: Scripting = ("Hello", " there.")
    name: str = "scripted"
    context_tokens: int = 4096
    failing: PrivateGptError | None = None
    requests: list[GenerationRequest] = field(default_factory=list[GenerationRequest])
    open_replies: int = 0
    closed: bool = False
    counted: list[Sequence[Message]] = field(default_factory=list[Sequence[Message]])

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        """Play the script; `open_replies` counts the generators that are not closed yet."""
        self.requests.append(request)
        self.open_replies += 1
        try:
            if self.failing is not None:
                raise self.failing
            async for event in self._play(request):
                yield event
        finally:
            self.open_replies -= 1

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Words, and three tokens around each turn."""
        self.counted.append(messages)
        return sum(3 + _words(message.text) for message in messages)

    async def count_text(self, text: str) -> int:
        """Words."""
        return _words(text)

    async def check(self) -> None:
        """Raise `failing`, if set."""
        if self.failing is not None:
            raise self.failing

    async def close(self) -> None:
        """Note that it was called."""
        self.closed = True

    async def _play(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        written = 0
        limit = request.sampling.max_tokens
        reason = FinishReason.STOP
        for step in self.script(request) if callable(self.script) else self.script:
            if isinstance(step, asyncio.Event):
                await step.wait()
                continue
            if isinstance(step, PrivateGptError):
                raise step
            event = TextDelta(step) if isinstance(step, str) else step
            yield event
            if isinstance(event, GenerationFinished):
                return
            written += _words(event.text) if isinstance(event, TextDelta) else 0
            if limit is not None and written >= limit:
                reason = FinishReason.LENGTH
                break
        prompt_tokens = await self.count_tokens(request.messages)
        yield GenerationFinished(reason, Usage(prompt_tokens, written))


def _words(text: str) -> int:
    return len(text.split())
