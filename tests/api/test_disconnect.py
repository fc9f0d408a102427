"""Work ends when its client leaves, and only then."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from privategpt.api.disconnect import while_connected


class Client:
    """Leaves when it is told to."""

    def __init__(self) -> None:
        self.leaves = asyncio.Event()

    async def receive(self) -> Message:
        await self.leaves.wait()
        return {"type": "http.disconnect"}


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_the_result_of_the_work_is_returned_and_nobody_listens_any_more() -> None:
    client = Client()

    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    before = asyncio.all_tasks()
    assert await while_connected(client.receive, work()) == 7
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_who_leaves_ends_the_work_but_not_the_task_it_is_done_in() -> None:
    client = Client()
    client.leaves.set()
    with pytest.raises(ClientDisconnect):
        await while_connected(client.receive, for_ever())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_work_that_cleans_up_is_waited_for() -> None:
    client = Client()
    client.leaves.set()
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0)
            cleaned.append("all")

    with pytest.raises(ClientDisconnect):
        await while_connected(client.receive, work())
    assert cleaned == ["all"]


async def test_work_that_comes_to_its_end_all_the_same_counts() -> None:
    client = Client()
    client.leaves.set()

    async def work() -> int:
        try:
            await for_ever()
        except asyncio.CancelledError:
            return 7
        return 0

    assert await while_connected(client.receive, work()) == 7
    await asyncio.sleep(0)


async def test_an_error_of_the_work_reaches_who_asked() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await while_connected(Client().receive, work())


@pytest.mark.parametrize("leaving", [False, True])
async def test_a_task_that_is_cancelled_by_others_stays_cancelled(leaving: bool) -> None:
    client = Client()
    asked = asyncio.ensure_future(while_connected(client.receive, for_ever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if leaving:
        client.leaves.set()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
