"""What every quota promises; see `domain.websearch.Quota`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from datetime import date
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from privategpt.backends.state.opening import open_database
from privategpt.backends.state.quota import SqlQuota
from privategpt.domain.websearch import Quota
from tests.fakes.postgres import postgres_database
from tests.fakes.websearch import FakeQuota

MONDAY, TUESDAY = date(2026, 3, 30), date(2026, 3, 31)


@pytest.fixture(params=["fake", "sqlite", "postgres"])
async def quota(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Quota]:
    if request.param == "fake":
        yield FakeQuota()
    elif request.param == "sqlite":
        database = await open_database(tmp_path)
        yield SqlQuota(database=database)
        await database.close()
    else:
        async with postgres_database() as url:
            database = await open_database(url)
            yield SqlQuota(database=database)
            await database.close()


async def test_nothing_is_used_at_first(quota: Quota) -> None:
    assert await quota.used("ann", MONDAY) == 0


async def test_units_are_taken_up_to_the_limit_and_no_further(quota: Quota) -> None:
    taken = [await quota.reserve("ann", MONDAY, limit=2) for _ in range(4)]
    assert taken == [True, True, False, False]
    assert await quota.used("ann", MONDAY) == 2


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_of_nothing_allows_nothing(quota: Quota, limit: int) -> None:
    assert not await quota.reserve("ann", MONDAY, limit=limit)
    assert await quota.used("ann", MONDAY) == 0


async def test_a_refunded_unit_can_be_taken_again(quota: Quota) -> None:
    await quota.reserve("ann", MONDAY, limit=1)
    await quota.refund("ann", MONDAY)
    assert await quota.used("ann", MONDAY) == 0
    assert await quota.reserve("ann", MONDAY, limit=1)


async def test_a_refund_of_nothing_gives_nothing(quota: Quota) -> None:
    await quota.refund("ann", MONDAY)
    await quota.reserve("ann", MONDAY, limit=2)
    await quota.refund("ann", MONDAY)
    await quota.refund("ann", MONDAY)
    assert await quota.used("ann", MONDAY) == 0
    assert await quota.reserve("ann", MONDAY, limit=1)
    assert not await quota.reserve("ann", MONDAY, limit=1)


async def test_tenants_and_days_have_allowances_of_their_own(quota: Quota) -> None:
    assert await quota.reserve("ann", MONDAY, limit=1)
    assert await quota.reserve("ann", TUESDAY, limit=1)
    assert await quota.reserve("bob", MONDAY, limit=1)
    await quota.refund("bob", MONDAY)
    assert [
        await quota.used(tenant, day) for tenant in ("ann", "bob") for day in (MONDAY, TUESDAY)
    ] == [1, 1, 0, 0]


async def test_a_limit_that_was_lowered_leaves_what_is_used(quota: Quota) -> None:
    for _ in range(3):
        await quota.reserve("ann", MONDAY, limit=3)
    assert not await quota.reserve("ann", MONDAY, limit=1)
    assert await quota.used("ann", MONDAY) == 3


async def test_of_20_requests_at_once_one_gets_the_last_unit(quota: Quota) -> None:
    await quota.reserve("ann", MONDAY, limit=2)
    taken = await asyncio.gather(*(quota.reserve("ann", MONDAY, limit=2) for _ in range(20)))
    assert sorted(taken) == [False] * 19 + [True]
    assert await quota.used("ann", MONDAY) == 2


async def test_refunds_and_reservations_at_once_add_up(quota: Quota) -> None:
    async def take_and_give_back() -> None:
        assert await quota.reserve("ann", MONDAY, limit=100)
        await quota.refund("ann", MONDAY)

    await asyncio.gather(*(take_and_give_back() for _ in range(20)))
    assert await quota.used("ann", MONDAY) == 0


@pytest.mark.parametrize("turns", range(0, 12, 3))
async def test_a_caller_that_is_cancelled_while_reserving_still_learns_what_it_has_taken(
    quota: Quota, turns: int
) -> None:
    learnt: list[bool] = []

    async def reserve() -> None:
        learnt.append(await quota.reserve("ann", MONDAY, limit=5))
        await asyncio.Event().wait()

    reserving = asyncio.create_task(reserve())
    for _ in range(turns):
        await asyncio.sleep(0)
    reserving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reserving

    assert learnt == ([True] if turns else [])
    assert await quota.used("ann", MONDAY) == len(learnt)


async def test_a_refund_is_made_inside_a_cancelled_scope(quota: Quota) -> None:
    await quota.reserve("ann", MONDAY, limit=5)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await quota.refund("ann", MONDAY)
    assert await quota.used("ann", MONDAY) == 0


# SQL alone


async def test_what_is_used_survives_a_restart(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    await SqlQuota(database=database).reserve("ann", MONDAY, limit=5)
    await database.close()

    database = await open_database(tmp_path)
    quota = SqlQuota(database=database)
    assert await quota.used("ann", MONDAY) == 1
    assert not await quota.reserve("ann", MONDAY, limit=1)
    await database.close()


ONE_OF_TWO_PROCESSES = dedent(
    """
    import asyncio, sys
    from datetime import date
    from privategpt.backends.state.opening import open_database
    from privategpt.backends.state.quota import SqlQuota

    async def main():
        database = await open_database(sys.argv[1])
        quota = SqlQuota(database=database)
        print("ready", flush=True)
        sys.stdin.readline()
        taken = await asyncio.gather(
            *(quota.reserve("ann", date(2026, 3, 30), limit=3) for _ in range(20))
        )
        print(sum(taken), flush=True)
        await database.close()

    asyncio.run(main())
    """
)


async def test_two_processes_share_what_is_left() -> None:
    async with postgres_database() as url:
        database = await open_database(url)
        quota = SqlQuota(database=database)
        await quota.reserve("ann", MONDAY, limit=3)
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                ONE_OF_TWO_PROCESSES,
                url,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        taken = [
            int(out)
            for out, _ in await asyncio.gather(*(p.communicate(b"go\n") for p in processes))
        ]

        assert sum(taken) == 2
        assert await quota.used("ann", MONDAY) == 3
        await database.close()
