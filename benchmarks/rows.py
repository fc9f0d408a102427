"""Measuring in turns, and what a row of the table says of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Way: TypeAlias = Callable[[int], Awaitable[float]]
"""One way to do a thing: given the number of the turn, does it once and returns what it took."""


PATIENCE = 4


@dataclass(frozen=True, slots=True)
class Effort:
    """How often: turns are taken for about `seconds`, within the bounds, after one that is not
    counted. On a machine so busy that the least takes `PATIENCE` times as long, one must do.
    """

    seconds: float
    at_least: int = 3
    at_most: int = 1000

    def wants_another(self, turns: int, *, elapsed_s: float) -> bool:
        """After so many turns, the uncounted one included."""
        if turns <= 1:
            return True
        if turns <= self.at_least:
            return elapsed_s < PATIENCE * self.seconds
        return turns <= self.at_most and elapsed_s < self.seconds


ONCE = Effort(seconds=0, at_least=1, at_most=1)
"""For a smoke run."""


class Rule(StrEnum):
    """What a target bounds: the median of ours, of ours - bare or of ours / bare, in pairs."""

    AT_MOST = "≤"
    AT_MOST_ABOVE = "≤ bare +"
    RATIO_AT_LEAST = "≥ bare ×"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound, in the unit of its row."""

    rule: Rule
    bound: float

    def __str__(self) -> str:
        return f"{self.rule} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, ours and the bare engine's in pairs; `bare` may be empty."""

    name: str
    unit: str
    ours: Sequence[float]
    bare: Sequence[float] = ()
    target: Target | None = None

    @property
    def above(self) -> float:
        """The median of what ours takes more, within a turn."""
        return statistics.median(a - b for a, b in zip(self.ours, self.bare, strict=True))

    @property
    def ratio(self) -> float:
        """The median of ours by bare, within a turn."""
        return statistics.median(a / b for a, b in zip(self.ours, self.bare, strict=True))

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if there is none."""
        if self.target is None:
            return None
        match self.target.rule:
            case Rule.AT_MOST:
                return statistics.median(self.ours) <= self.target.bound
            case Rule.AT_MOST_ABOVE:
                return self.above <= self.target.bound
            case Rule.RATIO_AT_LEAST:
                return self.ratio >= self.target.bound


async def in_turns(ways: Mapping[str, Way], effort: Effort) -> dict[str, list[float]]:
    """Let the ways take turns, so that the noise of the machine falls on all alike.

    Who begins changes from turn to turn: what one leaves behind must not always hit the same.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    started = time.perf_counter()
    turn = 0
    while effort.wants_another(turn, elapsed_s=time.perf_counter() - started):
        for name, way in list(ways.items())[:: 1 if turn % 2 else -1]:
            value = await way(turn)
            if turn:
                taken[name].append(value)
        turn += 1
    return taken


async def seconds_of(work: Awaitable[object]) -> float:
    """How long it takes until it is done."""
    started = time.perf_counter()
    await work
    return time.perf_counter() - started
