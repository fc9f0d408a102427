"""The order in which the model reads its sources, to see whether another one makes better answers.

A source keeps its number wherever it stands, so citations mean the same in every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from privategpt.domain.answers import Source
from privategpt.domain.conversation import Message
from privategpt.grounding.prompt import compose


class Order(StrEnum):
    """Where the sources that rank highest stand in the prompt."""

    BEST_FIRST = "best-first"
    """As shipped."""

    BEST_LAST = "best-last"
    """Nearest to the question, which comes after the sources."""

    BEST_OUTSIDE = "best-outside"
    """First, third, fifth … sixth, fourth, second: the lowest are in the middle."""


def arrange(sources: Sequence[Source], order: Order) -> tuple[Source, ...]:
    """`sources`, which come best first, in `order`."""
    if order is Order.BEST_FIRST:
        return tuple(sources)
    if order is Order.BEST_LAST:
        return tuple(reversed(sources))
    return (*sources[::2], *reversed(sources[1::2]))


class OrderedPrompt:
    """Stands in for `compose` where the product fits a prompt: the same, in another order."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def __call__(
        self, messages: Sequence[Message], sources: Sequence[Source], **options: Any
    ) -> tuple[Message, ...]:
        """The messages to send."""
        return compose(messages, arrange(sources, self._order), **options)
