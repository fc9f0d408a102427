"""The generator in a task of its own: order, silence, errors, and being stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.api.relay import Relay
from privategpt.api.turns import Turns


async def numbers(count: int, *, closed: asyncio.Event | None = None) -> AsyncGenerator[int]:
    try:
        for number in range(count):
            if number % 3 == 0:
                await asyncio.sleep(0)
            yield number
    finally:
        if closed is not None:
            closed.set()


@given(count=st.integers(0, 60), capacity=st.integers(1, 10))
def test_everything_arrives_once_and_in_order_whatever_the_capacity(
    count: int, capacity: int
) -> None:
    async def read() -> list[int]:
        taken: list[int] = []
        async with Relay(numbers(count), capacity=capacity) as relay:
            while items := await relay.take():
                assert len(items) <= capacity
                taken += items
            assert relay.error() is None
        return taken

    assert asyncio.run(read()) == list(range(count))


async def test_silence_is_none_and_cuts_nothing() -> None:
    gate = asyncio.Event()

    async def slow() -> AsyncGenerator[str]:
        await gate.wait()
        yield "late"

    async with Relay(slow()) as relay:
        assert await relay.take(0.001) is None
        assert await relay.take(0.001) is None
        gate.set()
        assert await relay.take() == ["late"]
        assert await relay.take() == []


async def test_an_error_comes_after_what_was_yielded_before_it() -> None:
    async def failing() -> AsyncGenerator[str]:
        yield "before"
        raise LookupError("broken")

    async with Relay(failing()) as relay:
        assert await relay.take() == ["before"]
        assert await relay.take() == []
        assert isinstance(relay.error(), LookupError)


async def test_leaving_closes_a_generator_that_waits_for_room() -> None:
    closed = asyncio.Event()
    async with Relay(numbers(100, closed=closed), capacity=2) as relay:
        assert await relay.take() == [0, 1]
    assert closed.is_set()


async def test_leaving_closes_a_generator_that_was_never_read() -> None:
    closed = asyncio.Event()
    async with Relay(numbers(5, closed=closed), capacity=2):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert closed.is_set()


async def test_an_interruption_is_the_error_and_ends_the_generator() -> None:
    closed = asyncio.Event()
    async with Relay(numbers(100, closed=closed), capacity=2) as relay:
        await relay.take()
        relay.interrupt(TimeoutError("enough"))
        while await relay.take():
            pass
        assert str(relay.error()) == "enough"
    assert closed.is_set()


async def test_an_interruption_after_the_end_changes_nothing() -> None:
    async with Relay(numbers(1)) as relay:
        while await relay.take():
            pass
        relay.interrupt(TimeoutError("too late"))
        assert relay.error() is None


async def test_a_relay_is_read_inside_its_context() -> None:
    with pytest.raises(RuntimeError, match="inside its context"):
        await Relay(numbers(1)).take()


async def test_of_streams_that_are_faster_than_their_readers_one_goes_on_in_each_turn() -> None:
    turns, ahead = Turns(), [0] * 4

    async def endless(stream: int) -> AsyncGenerator[int]:
        while True:
            ahead[stream] += 1
            yield stream

    async def read(stream: int) -> None:
        async with Relay(endless(stream), capacity=2, turn=turns.mine) as relay:
            while ahead[stream] < 20:
                await relay.take()

    reading = [asyncio.create_task(read(stream)) for stream in range(len(ahead))]
    for _ in range(3):
        await asyncio.sleep(0)  # All have begun.
    while not any(task.done() for task in reading):
        before = sum(ahead)
        await asyncio.sleep(0)
        assert sum(ahead) - before <= 2, "more than one stream went on in one turn"
        assert max(ahead) - min(ahead) <= 4, "one stream goes on at the cost of another"
    await asyncio.gather(*reading)
