"""Fitting a conversation and its sources into the model's window."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

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
    prompt, tokens = await window.read(turns, kept)
    while tokens > window.budget and len(kept) > attached + 1:
        excess = tokens - window.budget
        count = _sources_that_fit(kept, excess=excess, tokens=tokens, beside=turns)
        kept = kept[: max(count, attached + 1)]
        prompt, tokens = await window.read(turns, kept)
    if tokens > window.budget:
        try:
            prompt = await _without_oldest_turns(turns, kept, window=window, tokens=tokens)
        except ContextLengthExceeded:
            if len(kept) == attached:
                raise
            return await fit(
                messages,
                kept[:attached],
                llm=llm,
                reply_tokens=reply_tokens,
                system_prompt=system_prompt,
                style=style,
                attached=attached,
            )
    return FittedPrompt(prompt, kept)


@dataclass(frozen=True, slots=True)
class _Window:
    """What a prompt must fit: `budget` is in tokens."""

    llm: LanguageModel
    budget: int
    system_prompt: str | None
    style: PromptStyle

    async def read(
        self, turns: Sequence[Message], sources: Sequence[Source]
    ) -> tuple[tuple[Message, ...], int]:
        """The prompt of these, and its tokens; 0 where it need not be counted."""
        prompt = compose(turns, sources, system_prompt=self.system_prompt, style=self.style)
        if _surely_fits(prompt, self.budget):
            return prompt, 0
        return prompt, await self.llm.count_tokens(prompt)


async def _without_oldest_turns(
    turns: tuple[Message, ...], kept: tuple[Source, ...], *, window: _Window, tokens: int
) -> tuple[Message, ...]:
    """The prompt without as few of the oldest turns as it takes to fit; with all it has `tokens`.

    Raises `ContextLengthExceeded` where those that must stay do not fit.
    """
    ends = _ends_of_turns(turns)
    prompts: dict[int, tuple[Message, ...]] = {}

    async def fits_without(count: int) -> bool:
        nonlocal tokens
        prompts[count], tokens = await window.read(_from(turns, ends[count - 1]), kept)
        return tokens <= window.budget

    fewest = await _fewest(len(ends), fits_without)
    if fewest is None:
        raise ContextLengthExceeded(
            f"The question{' and its documents need' if kept else ' needs'} {tokens} tokens, but "
            f"the model's window of {window.llm.context_tokens} tokens has room for "
            f"{window.budget}",
            param="messages",
        )
    return prompts[fewest]


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
