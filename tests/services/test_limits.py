"""What a tenant may have, and that the others have theirs meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.answers import AnswerEvent, AnswerStarted
from privategpt.domain.errors import QuotaExceeded, TooManyRequests
from privategpt.services.answering import AnswerRequest
from privategpt.services.limits import (
    BoundedAnswers,
    Limits,
    RequestRate,
    Storage,
    TenantLimits,
)
from tests.fakes.answering import FakeAnswers


class Clock:
    """Seconds; it stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def for_all(**limits: int) -> TenantLimits:
    return TenantLimits(of_all=Limits(**limits))


def question(tenant: str) -> AnswerRequest:
    return AnswerRequest(messages=(), tenant=tenant)


def test_a_tenants_own_limit_stands_for_that_of_all() -> None:
    limits = TenantLimits(
        of_all=Limits(requests_per_minute=10, stored_bytes=100),
        of_some={"ann": Limits(requests_per_minute=20, searches_per_day=0)},
    )
    assert limits.of("ann") == Limits(20, None, 100, 0)
    assert limits.of("bob") == Limits(10, None, 100, None)


# Requests


def admitted(rate: RequestRate, tenant: str, times: int) -> int:
    count = 0
    for _ in range(times):
        with suppress(TooManyRequests):
            rate.admit(tenant)
            count += 1
    return count


def test_without_a_limit_all_are_admitted() -> None:
    assert admitted(RequestRate(limits=for_all(), clock=Clock()), "ann", 1000) == 1000


def test_a_minutes_worth_is_admitted_at_once_and_then_one_as_each_comes_free() -> None:
    clock = Clock()
    rate = RequestRate(limits=for_all(requests_per_minute=6), clock=clock)
    assert admitted(rate, "ann", 10) == 6
    clock.now += 9.9
    assert admitted(rate, "ann", 10) == 0
    clock.now += 0.2
    assert admitted(rate, "ann", 10) == 1
    clock.now += 3600
    assert admitted(rate, "ann", 10) == 6


@pytest.mark.parametrize(("per_minute", "waited", "seconds"), [(6, 0, 10), (6, 4, 6), (600, 0, 1)])
def test_who_is_refused_is_told_when_to_come_back(
    per_minute: int, waited: int, seconds: int
) -> None:
    clock = Clock()
    rate = RequestRate(limits=for_all(requests_per_minute=per_minute), clock=clock)
    assert admitted(rate, "ann", per_minute) == per_minute
    clock.now += waited
    with pytest.raises(TooManyRequests) as caught:
        rate.admit("ann")
    assert caught.value.retry_after_s == seconds
    clock.now += seconds
    rate.admit("ann")


def test_one_tenants_requests_are_not_anothers() -> None:
    rate = RequestRate(limits=for_all(requests_per_minute=3), clock=Clock())
    assert [admitted(rate, tenant, 5) for tenant in ("ann", "bob", "ann")] == [3, 3, 0]


@given(
    most=st.integers(1, 100),
    pauses=st.lists(st.floats(0, 100, allow_nan=False), max_size=60),
)
def test_never_more_than_the_burst_and_the_rate_allow(most: int, pauses: list[float]) -> None:
    clock = Clock()
    rate = RequestRate(limits=for_all(requests_per_minute=most), clock=clock)
    count = 0
    for pause in pauses:
        clock.now += pause
        count += admitted(rate, "ann", 2)
        assert count <= most + (clock.now - 1000) * most / 60 + 1e-6


# Answers


async def test_answers_beyond_the_limit_are_refused_before_they_begin() -> None:
    gate = asyncio.Event()
    answers = FakeAnswers(script=[AnswerStarted(), gate])
    bounded = BoundedAnswers(answers, limits=for_all(answers_at_once=2))
    under_way = [bounded.answer(question("ann")) for _ in range(2)]
    for events in under_way:
        assert await anext(events) == AnswerStarted()

    with pytest.raises(TooManyRequests) as caught:
        await anext(bounded.answer(question("ann")))
    assert caught.value.retry_after_s
    assert len(answers.requests) == 2

    async with aclosing(bounded.answer(question("bob"))) as others:
        assert await anext(others) == AnswerStarted()

    await under_way[0].aclose()
    async with aclosing(bounded.answer(question("ann"))) as again:
        assert await anext(again) == AnswerStarted()
    await under_way[1].aclose()


async def test_every_end_of_an_answer_frees_its_place() -> None:
    answers = FakeAnswers()
    bounded = BoundedAnswers(answers, limits=for_all(answers_at_once=1))
    whole = [event async for event in bounded.answer(question("ann"))]
    assert whole == [event async for event in FakeAnswers().answer(question("ann"))]

    answers.script = [AnswerStarted(), ValueError("broken")]
    with pytest.raises(ValueError, match="broken"):
        await collected(bounded.answer(question("ann")))

    answers.script = [AnswerStarted(), asyncio.Event()]
    task = asyncio.create_task(collected(bounded.answer(question("ann"))))
    answers.started.clear()
    await answers.started.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    answers.script = [AnswerStarted()]
    assert await collected(bounded.answer(question("ann"))) == [AnswerStarted()]


async def collected(events: AsyncGenerator[AnswerEvent]) -> list[AnswerEvent]:
    async with aclosing(events):
        return [event async for event in events]


# Bytes


async def test_a_file_is_taken_while_it_fits() -> None:
    stored = {"ann": 60, "bob": 0}

    async def used(tenant: str) -> int:
        return stored[tenant]

    storage = Storage(limits=for_all(stored_bytes=100), used=used)
    async with storage.room("ann", 40):
        pass
    with pytest.raises(QuotaExceeded, match="101 bytes, of 100"):
        async with storage.room("ann", 41):
            raise AssertionError
    async with storage.room("bob", 100):
        pass


async def test_of_two_files_at_once_only_as_many_are_taken_as_fit() -> None:
    async def used(_: str) -> int:
        await asyncio.sleep(0)
        return 0

    storage = Storage(limits=for_all(stored_bytes=100), used=used)
    async with storage.room("ann", 60):
        with pytest.raises(QuotaExceeded):
            async with storage.room("ann", 60):
                raise AssertionError
        async with storage.room("ann", 40):
            pass
    async with storage.room("ann", 60):
        pass


async def test_without_a_limit_nothing_is_counted() -> None:
    async def used(_: str) -> int:
        raise AssertionError

    async with Storage(limits=for_all(), used=used).room("ann", 10**15):
        pass
