"""What one tenant may have, so that the others have theirs: requests, answers, stored bytes.

Counted in this process: several processes on one PostgreSQL each allow as much.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from privategpt.domain.answers import AnswerEvent
from privategpt.domain.errors import QuotaExceeded, TooManyRequests
from privategpt.services.answering import AnswerRequest

ANSWER_RETRY_S = 5
"""When to come back for an answer: nobody knows how long those under way will take."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tenant may have; None is no limit. `searches_per_day` None is what holds for all."""

    requests_per_minute: int | None = None
    answers_at_once: int | None = None
    stored_bytes: int | None = None
    searches_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """The limits of every tenant, and those that some tenants have instead."""

    of_all: Limits = Limits()
    of_some: Mapping[str, Limits] = field(default_factory=dict[str, Limits])

    def of(self, tenant: str) -> Limits:
        """The limits of `tenant`: its own where it has one, else those of all."""
        own = self.of_some.get(tenant, self.of_all)
        return Limits(
            requests_per_minute=_first(own.requests_per_minute, self.of_all.requests_per_minute),
            answers_at_once=_first(own.answers_at_once, self.of_all.answers_at_once),
            stored_bytes=_first(own.stored_bytes, self.of_all.stored_bytes),
            searches_per_day=_first(own.searches_per_day, self.of_all.searches_per_day),
        )


def _first(own: int | None, of_all: int | None) -> int | None:
    return of_all if own is None else own


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RequestRate:
    """A token bucket per tenant: a minute's worth at once, then one as each comes free.

    `clock` counts seconds from anywhere, and never backwards.
    """

    def __init__(self, *, limits: TenantLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def admit(self, tenant: str) -> None:
        """Take one request. Raises `TooManyRequests` with the seconds until there is one."""
        most = self._limits.of(tenant).requests_per_minute
        if most is None:
            return
        now = self._clock()
        bucket = self._buckets.setdefault(tenant, _Bucket(tokens=most, filled_at=now))
        per_second = most / 60
        bucket.tokens = min(most, bucket.tokens + (now - bucket.filled_at) * per_second)
        bucket.filled_at = now
        if bucket.tokens < 1:
            raise TooManyRequests(
                f"This account may send {most} requests per minute",
                retry_after_s=max(1, math.ceil((1 - bucket.tokens) / per_second)),
            )
        bucket.tokens -= 1


class Answers(Protocol):
    """Whatever answers."""

    def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """See `services.answering.Answering.answer`."""
        ...


class BoundedAnswers:
    """Answers as `answers` does, for each tenant so many at once."""

    def __init__(self, answers: Answers, *, limits: TenantLimits) -> None:
        self._answers = answers
        self._limits = limits
        self._under_way: Counter[str] = Counter()

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """As `Answering.answer`. Raises `TooManyRequests` before the first event."""
        with self._place(request.tenant):
            async with aclosing(self._answers.answer(request)) as events:
                async for event in events:
                    yield event

    @contextmanager
    def _place(self, tenant: str) -> Generator[None]:
        most = self._limits.of(tenant).answers_at_once
        if most is not None and self._under_way[tenant] >= most:
            raise TooManyRequests(
                f"This account may have {most} answers under way at once",
                retry_after_s=ANSWER_RETRY_S,
            )
        self._under_way[tenant] += 1
        try:
            yield
        finally:
            self._under_way[tenant] -= 1
            if not self._under_way[tenant]:
                del self._under_way[tenant]


class Storage:
    """Room for files. `used` tells how many bytes of ready files a tenant has."""

    def __init__(self, *, limits: TenantLimits, used: Callable[[str], Awaitable[int]]) -> None:
        self._limits = limits
        self._used = used
        self._arriving: Counter[str] = Counter()

    @asynccontextmanager
    async def room(self, tenant: str, size_bytes: int) -> AsyncGenerator[None]:
        """Hold room for a file while it is ingested. Raises `QuotaExceeded`.

        A file that replaces another needs its room beside it, as both are there for a moment.
        """
        most = self._limits.of(tenant).stored_bytes
        # Held before the store is asked, so that of two files at once one sees the other.
        self._arriving[tenant] += size_bytes
        try:
            if most is not None:
                taken = await self._used(tenant) + self._arriving[tenant]
                if taken > most:
                    raise QuotaExceeded(
                        f"With this file the account would store {taken} bytes, of {most} that "
                        "it may: delete something first"
                    )
            yield
        finally:
            self._arriving[tenant] -= size_bytes
            if not self._arriving[tenant]:
                del self._arriving[tenant]
