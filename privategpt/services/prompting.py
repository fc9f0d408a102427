"""Fitting a conversation and its sources into the model's window."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from privategpt.domain.answers import Source
from privategpt.domain.conversation import Message, Role
from privategpt.domain.errors import ContextLengthExceeded
from privategpt.domain.ports import LanguageModel
from privategpt.grounding.prompt import PromptStyle, compose, render_source

DEFAULT_REPLY_TOKENS = 1024
"""Room kept for the reply where the caller sets no limit, in a window that has it."""

TEMPLATE_TOKENS = 64
"""More than a chat template puts around a turn, or in front of the first."""


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """What is sent to the model, and which of the sources it still has."""

    messages: tuple[Message, ...]
    sources: tuple[Source, ...]


async def best_within(
    tokens: int, sources: tuple[Source, ...], *, llm: LanguageModel
) -> tuple[Source, ...]:
    """The first sources that have at most `tokens` tokens together; the first one in any case."""
    kept = sources
    while len(kept) > 1:
        read = await llm.count_text("\n\n".join(map(render_source, kept)))
        if read <= tokens:
            break
        kept = kept[: max(_sources_that_fit(kept, excess=read - tokens, tokens=read), 1)]
    return kept


async def fit(
    messages: Sequence[Message],
    sources: Sequence[Source],
    *,
    llm: LanguageModel,
    reply_tokens: int | None,
    system_prompt: str | None = None,
    style: PromptStyle = PromptStyle.CITED,
    attached: int = 0,
) -> FittedPrompt:
    """Drop the lowest-ranked sources but one, then the oldest turns, until the prompt fits the
    window; and the best source only where it does not fit beside the last turn.

    At most a quarter of the window is kept for the reply. System messages, everything from the
    last user message on and the first `attached` sources are never dropped. Raises
    `ContextLengthExceeded` where those alone do not fit.
    """
    reserve = min(reply_tokens or DEFAULT_REPLY_TOKENS, llm.context_tokens // 4)
    window = _Window(llm, llm.context_tokens - reserve, system_prompt, style)
    turns, kept = tuple(messages), tuple(sources)
    read = fitted = await window.read(turns, kept)
    for fewest in range(min(len(kept), attached + 1), attached - 1, -1):
        while read.tokens > window.budget and len(kept) > fewest:
            excess = read.tokens - window.budget
            count = _sources_that_fit(kept, excess=excess, tokens=read.tokens, beside=turns)
            kept = kept[: max(count, fewest)]
            read = await window.read(turns, kept)
        fitted = await _without_oldest_turns(turns, kept, window=window, read=read)
        if fitted.tokens <= window.budget:
            return FittedPrompt(fitted.prompt, kept)
    raise ContextLengthExceeded(
        f"The question{' and its documents need' if kept else ' needs'} {fitted.tokens} tokens, "
        f"but the model's window of {llm.context_tokens} tokens has room for {window.budget}",
        param="messages",
    )


class _Read(NamedTuple):
    """A prompt and its tokens; 0 where they need not be counted."""

    prompt: tuple[Message, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class _Window:
    """What a prompt must fit: `budget` is in tokens."""

    llm: LanguageModel
    budget: int
    system_prompt: str | None
    style: PromptStyle

    async def read(self, turns: Sequence[Message], sources: Sequence[Source]) -> _Read:
        """The prompt of these."""
        prompt = compose(turns, sources, system_prompt=self.system_prompt, style=self.style)
        if _surely_fits(prompt, self.budget):
            return _Read(prompt, 0)
        return _Read(prompt, await self.llm.count_tokens(prompt))


async def _without_oldest_turns(
    turns: tuple[Message, ...], kept: tuple[Source, ...], *, window: _Window, read: _Read
) -> _Read:
    """Without as few of the oldest turns as it takes to fit, or all of them if nothing helps;
    with all turns it is `read`.
    """
    if read.tokens <= window.budget:
        return read
    ends = _ends_of_turns(turns)
    reads = {0: read}

    async def fits_without(count: int) -> bool:
        reads[count] = await window.read(_from(turns, ends[count - 1]), kept)
        return reads[count].tokens <= window.budget

    fewest = await _fewest(len(ends), fits_without)
    return reads[len(ends) if fewest is None else fewest]


async def _fewest(most: int, suffices: Callable[[int], Awaitable[bool]]) -> int | None:
    """The smallest number up to `most` that suffices, as all above it do; None if none does.

    By doubling and then by halves: a conversation may have thousands of turns, and each count
    reads all that is left of it.
    """
    low, high = 0, min(1, most)
    while low < high and not await suffices(high):
        low, high = high, min(2 * high, most)
    if low == high:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if await suffices(middle) else (middle, high)
    return high


def _surely_fits(prompt: Sequence[Message], budget: int) -> bool:
    """Whether the engine need not count, which takes it some milliseconds: no tokenizer makes
    more tokens of a text than it has bytes."""
    if any(message.images or message.tool_calls for message in prompt):
        return False
    size = sum(len(message.text.encode("utf-8", "replace")) for message in prompt)
    return size + TEMPLATE_TOKENS * (len(prompt) + 1) <= budget


def _sources_that_fit(
    sources: tuple[Source, ...], *, excess: int, tokens: int, beside: tuple[Message, ...] = ()
) -> int:
    """How many sources to keep, by their share of characters; always fewer than there are.

    A guess that is checked by the next count: it saves a count for every source.
    """
    characters = sum(len(source.text) for source in sources) + sum(len(m.text) for m in beside)
    to_drop = excess * max(characters, 1) / max(tokens, 1)
    count = len(sources)
    while count > 0 and to_drop > 0:
        count -= 1
        to_drop -= len(sources[count].text)
    return min(count, len(sources) - 1)


def _ends_of_turns(messages: Sequence[Message]) -> list[int]:
    """Where each turn that may go ends, with the replies that belong to it, oldest first."""
    last_user = max(
        (at for at, message in enumerate(messages) if message.role is Role.USER), default=0
    )
    ends: list[int] = []
    begun = False
    for at, message in enumerate(messages[:last_user]):
        if message.role is Role.SYSTEM:
            continue
        if begun and message.role in (Role.ASSISTANT, Role.TOOL):
            ends[-1] = at + 1
        else:
            ends.append(at + 1)
        begun = True
    return ends


def _from(messages: Sequence[Message], start: int) -> tuple[Message, ...]:
    """The messages from `start` on, and the system's before it."""
    before = (message for message in messages[:start] if message.role is Role.SYSTEM)
    return (*before, *messages[start:])
