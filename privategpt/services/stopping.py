"""Ends a reply at a stop sequence and says at which one.

Engines end there by themselves, but over OpenAI's wire they do not tell that from a natural end,
and Anthropic's clients ask.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from privategpt.domain.answers import (
    FinishReason,
    GenerationEvent,
    GenerationFinished,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from privategpt.domain.conversation import Message
from privategpt.domain.ports import LanguageModel


class Stop(NamedTuple):
    """A stop sequence in a text, and where it begins."""

    start: int
    sequence: str


async def until_stopped(
    generation: AsyncGenerator[GenerationEvent],
    stop: Sequence[str],
    *,
    llm: LanguageModel,
    prompt: Sequence[Message],
) -> AsyncGenerator[GenerationEvent]:
    """The events up to the first of the `stop` sequences, which is not part of the text.

    At most one character less than the longest of them is held back. The engine is stopped there,
    so what it read and wrote is counted here.
    """
    held, written = "", ""
    async with aclosing(generation) as events:
        async for event in events:
            if not isinstance(event, TextDelta):
                if held:
                    yield TextDelta(held)
                    held = ""
                written += event.text if isinstance(event, ReasoningDelta) else ""
                yield event
                continue
            held += event.text
            written += event.text
            found = first_stop(held, stop)
            if found is not None:
                break
            released = len(held) - _held_back(held, stop)
            if released:
                yield TextDelta(held[:released], event.logprobs)
                held = held[released:]
        else:
            return
    if found.start:
        yield TextDelta(held[: found.start])
    usage = Usage(await llm.count_tokens(prompt), await llm.count_text(written))
    yield GenerationFinished(FinishReason.STOP, usage, stop_sequence=found.sequence)


def first_stop(text: str, stop: Sequence[str]) -> Stop | None:
    """The sequence that is complete first; of several that end together, the longest."""
    found = [Stop(at, sequence) for sequence in stop if (at := text.find(sequence)) >= 0]
    return min(found, key=lambda one: (one.start + len(one.sequence), one.start), default=None)


def _held_back(text: str, stop: Sequence[str]) -> int:
    """How many characters at the end may be the beginning of a stop sequence."""
    longest = min(len(text), max(map(len, stop)) - 1)
    return next(
        (
            length
            for length in range(longest, 0, -1)
            if any(sequence.startswith(text[-length:]) for sequence in stop)
        ),
        0,
    )
