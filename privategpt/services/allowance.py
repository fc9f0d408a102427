"""How many searches an account may make per UTC day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from privategpt.domain.websearch import AllowanceUsage, Quota


@dataclass(frozen=True, slots=True)
class Unit:
    """One search taken from the allowance of `day`; it goes back to that day, also after it."""

    tenant: str
    day: date


class Allowance:
    """The daily allowance of every account, all its keys together.

    `now` may tell the time in any zone: days are counted in UTC. `own` has the allowances of
    tenants that have another than `per_day`.
    """

    def __init__(
        self,
        *,
        quota: Quota,
        per_day: int,
        now: Callable[[], datetime],
        own: Mapping[str, int] | None = None,
    ) -> None:
        self._quota = quota
        self._per_day = per_day
        self._now = now
        self._own = own or {}

    async def reserve(self, tenant: str) -> Unit | None:
        """Take one search from today's allowance; None where none is left."""
        day = self._today()
        reserved = await self._quota.reserve(tenant, day, limit=self._limit(tenant))
        return Unit(tenant=tenant, day=day) if reserved else None

    async def refund(self, unit: Unit) -> None:
        """Give a search back to the day it was taken from."""
        await self._quota.refund(unit.tenant, unit.day)

    async def usage(self, tenant: str) -> AllowanceUsage:
        """How much of today's allowance is used, and when the next one begins."""
        day = self._today()
        return AllowanceUsage(
            used=await self._quota.used(tenant, day),
            limit=self._limit(tenant),
            resets_at=datetime.combine(day + timedelta(days=1), time.min, tzinfo=UTC),
        )

    def _limit(self, tenant: str) -> int:
        return self._own.get(tenant, self._per_day)

    def _today(self) -> date:
        return self._now().astimezone(UTC).date()
