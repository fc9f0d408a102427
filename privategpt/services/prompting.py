"""Fitting a conversation and its sources into the model's window."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Drop the lowest-ranked sources, then the oldest turns, until the prompt fits the window.

    At most a quarter of the window is kept for the reply. System messages, everything from the
    last user message on and the first `attached` sources are never dropped. Raises
    `ContextLengthExceeded` where those alone do not fit.
    """
    reserve = min(reply_tokens or DEFAULT_REPLY_TOKENS, llm.context_tokens // 4)
    budget = llm.context_tokens - reserve
    turns, kept = tuple(messages), tuple(sources)
    while True:
        prompt = compose(turns, kept, system_prompt=system_prompt, style=style)
        if _surely_fits(prompt, budget):
            return FittedPrompt(prompt, kept)
        tokens = await llm.count_tokens(prompt)
        if tokens <= budget:
            return FittedPrompt(prompt, kept)
        if len(kept) > attached:
            count = _sources_that_fit(kept, excess=tokens - budget, tokens=tokens, beside=turns)
            kept = kept[: max(count, attached)]
            continue
        shorter = _without_oldest_turn(turns)
        if shorter is None:
            raise ContextLengthExceeded(
                f"The question{' and its documents need' if attached else ' needs'} {tokens} "
                f"tokens, but the model's window of "
                f"{llm.context_tokens} tokens has room for {budget}",
                param="messages",
            )
        turns = shorter


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


def _without_oldest_turn(messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """Without the first turn that may go, together with the replies that belong to it."""
    last_user = max(
        (at for at, message in enumerate(messages) if message.role is Role.USER), default=0
    )
    droppable = [at for at in range(last_user) if messages[at].role is not Role.SYSTEM]
    if not droppable:
        return None
    first = droppable[0]
    end = first + 1
    while end < last_user and messages[end].role in (Role.ASSISTANT, Role.TOOL):
        end += 1
    return messages[:first] + messages[end:]
