"""Allowances are counted by UTC days, whatever the host's clock shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from privategpt.domain.websearch import AllowanceUsage
from privategpt.services.allowance import Allowance, Unit
from tests.fakes.websearch import FakeQuota

LAST_SECOND = datetime(2026, 3, 30, 23, 59, 59, tzinfo=UTC)


class Clock:
    """Shows `now` as a clock in `zone` does; without one as the host's own, naive clock."""

    def __init__(self, now: datetime, *, zone: ZoneInfo | None) -> None:
        self.now = now
        self._zone = zone

    def __call__(self) -> datetime:
        if self._zone is None:
            return datetime.fromtimestamp(self.now.timestamp())
        return self.now.astimezone(self._zone)


@pytest.fixture(params=["Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host's own time zone."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize("naive", [False, True])
async def test_the_count_begins_anew_at_midnight_utc(zone: str, naive: bool) -> None:
    clock = Clock(LAST_SECOND, zone=None if naive else ZoneInfo(zone))
    allowance = Allowance(quota=FakeQuota(), per_day=1, now=clock)
    assert await allowance.reserve("ann") is not None
    assert await allowance.reserve("ann") is None
    midnight = datetime(2026, 3, 31, tzinfo=UTC)
    assert await allowance.usage("ann") == AllowanceUsage(used=1, limit=1, resets_at=midnight)

    clock.now += timedelta(seconds=1)

    tomorrow = datetime(2026, 4, 1, tzinfo=UTC)
    assert await allowance.usage("ann") == AllowanceUsage(used=0, limit=1, resets_at=tomorrow)
    assert await allowance.reserve("ann") is not None


async def test_midnight_in_the_hosts_own_zone_changes_nothing(zone: str) -> None:
    local_midnight = datetime(2026, 3, 30, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    clock = Clock(local_midnight - timedelta(seconds=1), zone=ZoneInfo(zone))
    allowance = Allowance(quota=FakeQuota(), per_day=1, now=clock)
    await allowance.reserve("ann")
    clock.now += timedelta(seconds=1)
    assert (await allowance.reserve("ann") is None) == (zone != "UTC")


async def test_a_unit_goes_back_to_the_day_it_was_taken_from() -> None:
    clock = Clock(LAST_SECOND, zone=ZoneInfo("UTC"))
    quota = FakeQuota()
    allowance = Allowance(quota=quota, per_day=5, now=clock)
    before = await allowance.reserve("ann")
    assert before is not None
    assert before == Unit(tenant="ann", day=date(2026, 3, 30))

    clock.now += timedelta(seconds=1)
    await allowance.reserve("ann")
    await allowance.refund(before)

    assert await quota.used("ann", date(2026, 3, 30)) == 0
    assert await quota.used("ann", date(2026, 3, 31)) == 1
