"""What the web has to say: results, the engines that find them, and how many searches are left.

"Found nothing" is an empty list, "could not look" an `Unavailable`; see `SearchOutcome` for what
a search for an answer can come to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Protocol

MAX_QUERY_CHARACTERS = 400
MAX_QUERY_WORDS = 50
"""Brave and Tavily refuse longer queries, and no engine is the better for one."""


@dataclass(frozen=True, slots=True)
class WebResult:
    """A page that a search found. No page is fetched: `text` is the engine's own extract.

    All fields are plain text on one line, without markup or control characters; `text` is never
    empty and `url` is http or https. `published` is the day the engine names, if it names one.
    """

    title: str
    url: str
    text: str
    published: date | None = None


class SearchOutcome(StrEnum):
    """What the search for one answer came to; only `FOUND` leaves a unit of the allowance used."""

    FOUND = "found"
    NOTHING_FOUND = "nothing_found"
    COULD_NOT_LOOK = "could_not_look"
    ALLOWANCE_USED_UP = "allowance_used_up"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class AllowanceUsage:
    """Searches of one account on the present UTC day. `resets_at` is the next 00:00 UTC.

    `used` can be above `limit` where the operator has lowered it during the day.
    """

    used: int
    limit: int
    resets_at: datetime


class SearchEngine(Protocol):
    """Searches the web."""

    @property
    def name(self) -> str:
        """What an operator calls this engine."""
        ...

    async def search(self, query: str, *, limit: int) -> list[WebResult]:
        """At most `limit` results, best first, no page twice; none where nothing was found.

        `query` is one line of plain text, within `MAX_QUERY_CHARACTERS` and `MAX_QUERY_WORDS`.
        Raises `EngineUnavailable`, `EngineFailed` or `EngineTimedOut` where the engine could not
        look; the message tells the operator why and what to do.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Quota(Protocol):
    """Counts searches per tenant and UTC day, for all processes that share the state store."""

    async def reserve(self, tenant: str, day: date, *, limit: int) -> bool:
        """Take one unit if fewer than `limit` are taken; durable when it returns.

        A caller that is cancelled meanwhile learns the result first: the cancellation reaches it
        at its next await, so that it can refund what it has taken.
        """
        ...

    async def refund(self, tenant: str, day: date) -> None:
        """Give one unit of that day back. It is given back even if the caller is cancelled."""
        ...

    async def used(self, tenant: str, day: date) -> int:
        """How many units of that day are taken."""
        ...
