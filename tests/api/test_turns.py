"""A crowd of requests begins one by one; a probe does not wait for it."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from privategpt.api.one_by_one import OneByOne
from privategpt.api.turns import Turns

CROWD = 5


class Door:
    """An app that notes who has come in, by path."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.one_by_one = OneByOne(self._enter, turns=Turns())

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.append(scope["path"])

    def knock(self, path: str, kind: str = "http") -> asyncio.Task[None]:
        scope = {"type": kind, "path": path}
        return asyncio.create_task(self.one_by_one(scope, _never, _nowhere))


async def _never() -> Message:
    raise AssertionError("nothing is read before a request has its turn")


async def _nowhere(message: Message) -> None:
    raise AssertionError("nothing is sent before a request has its turn")


async def _one_turn() -> None:
    """Return in the next turn of the loop, behind all that is ready in this one."""
    await asyncio.sleep(0)


async def test_of_a_crowd_one_begins_in_each_turn_in_the_order_of_arrival() -> None:
    door = Door()
    crowd = [door.knock(f"/v1/chat/{number}") for number in range(CROWD)]
    begun: list[int] = []
    while not all(task.done() for task in crowd):
        before = len(door.entered)
        await _one_turn()
        begun.append(len(door.entered) - before)
    assert max(begun) == 1
    assert door.entered == [f"/v1/chat/{number}" for number in range(CROWD)]


async def test_a_probe_and_the_lifespan_do_not_wait_behind_the_crowd() -> None:
    door = Door()
    crowd = [door.knock(f"/v1/chat/{number}") for number in range(CROWD)]
    probes = [door.knock("/health"), door.knock("", "lifespan")]
    await _one_turn()
    assert door.entered == ["/v1/chat/0", "/health", ""]
    await asyncio.gather(*crowd, *probes)


async def test_who_leaves_the_crowd_gives_up_the_place() -> None:
    door = Door()
    crowd = [door.knock(f"/v1/chat/{number}") for number in range(CROWD)]
    await _one_turn()
    crowd[1].cancel()
    crowd[2].cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    assert door.entered == ["/v1/chat/0", "/v1/chat/3", "/v1/chat/4"]


async def test_after_the_crowd_the_next_one_need_not_wait() -> None:
    door = Door()
    await asyncio.gather(*(door.knock(f"/v1/chat/{number}") for number in range(CROWD)))
    for _ in range(CROWD):
        await _one_turn()
    late = door.knock("/v1/chat/late")
    await _one_turn()
    assert late.done()
    assert door.entered[-1] == "/v1/chat/late"
