"""Questions that wait together are answered together, and none suffers for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from privategpt.backends.gathering import Gathering
from privategpt.domain.errors import EngineFailed, EngineUnavailable

PATIENCE_S = 30


class Engine:
    """Doubles numbers. `gate` holds every call back; 13 fails, and 0 shows a defect."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.called = threading.Semaphore(0)
        self.gate = threading.Event()

    def answer(self, questions: Sequence[int]) -> list[int]:
        self.calls.append(list(questions))
        self.called.release()
        assert self.gate.wait(PATIENCE_S)
        if 13 in questions:
            raise EngineFailed("13")
        return [question * 2 * (question // question) for question in questions]

    def gathering(
        self, *, threads: int = 1, at_most: int = 8, wait_s: float | None = None
    ) -> Gathering[int, int]:
        return Gathering(self.answer, threads=threads, at_most=at_most, name="test", wait_s=wait_s)

    async def wait_for_call(self) -> None:
        assert await asyncio.to_thread(self.called.acquire, timeout=PATIENCE_S)


async def ask_while_busy(
    engine: Engine, gathering: Gathering[int, int], *questions: int
) -> list[asyncio.Task[int]]:
    """Tasks that ask 1, which is being answered, and then the others, which wait."""
    first = asyncio.create_task(gathering.ask(1))
    await engine.wait_for_call()
    others = [asyncio.create_task(gathering.ask(question)) for question in questions]
    await asyncio.sleep(0)
    return [first, *others]


async def test_nobody_waits_longer_than_allowed_whether_asked_or_waiting() -> None:
    engine = Engine()
    gathering = engine.gathering(wait_s=0.01)
    tasks = await ask_while_busy(engine, gathering, 2)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [TimeoutError, TimeoutError]
    engine.gate.set()
    gathering.close()


async def test_what_waits_is_asked_together_in_order_and_at_most_so_many_at_once() -> None:
    engine = Engine()
    gathering = engine.gathering(at_most=3)
    tasks = await ask_while_busy(engine, gathering, 2, 3, 4, 5)
    engine.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6, 8, 10]
    assert engine.calls == [[1], [2, 3, 4], [5]]
    gathering.close()


async def test_a_free_thread_takes_a_question_at_once() -> None:
    engine = Engine()
    gathering = engine.gathering(threads=2)
    tasks = await ask_while_busy(engine, gathering, 2)
    await engine.wait_for_call()
    engine.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4]
    assert sorted(engine.calls) == [[1], [2]]
    gathering.close()


async def test_a_question_that_fails_leaves_its_neighbours_their_answers() -> None:
    engine = Engine()
    gathering = engine.gathering()
    tasks = await ask_while_busy(engine, gathering, 2, 13, 3)
    engine.gate.set()
    first, second, failed, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, second, third) == (2, 4, 6)
    assert isinstance(failed, EngineFailed)
    gathering.close()


async def test_a_defect_reaches_all_who_asked_and_the_next_question_is_answered() -> None:
    engine = Engine()
    gathering = engine.gathering()
    tasks = await ask_while_busy(engine, gathering, 2, 0)
    engine.gate.set()
    _, *failed = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in failed] == [ZeroDivisionError, ZeroDivisionError]
    assert await gathering.ask(4) == 8
    gathering.close()


async def test_whoever_gives_up_is_not_asked_for() -> None:
    engine = Engine()
    gathering = engine.gathering()
    first, second, third = await ask_while_busy(engine, gathering, 2, 3)
    first.cancel()
    second.cancel()
    await asyncio.wait([first, second])
    engine.gate.set()
    assert await third == 6
    assert engine.calls == [[1], [3]]
    gathering.close()


async def test_when_all_who_wait_have_given_up_nothing_is_asked() -> None:
    engine = Engine()
    gathering = engine.gathering()
    first, second = await ask_while_busy(engine, gathering, 2)
    second.cancel()
    await asyncio.wait([second])
    engine.gate.set()
    assert await first == 2
    assert engine.calls == [[1]]
    gathering.close()


async def test_closing_lets_the_running_call_end_and_refuses_the_others() -> None:
    engine = Engine()
    gathering = engine.gathering()
    first, second, third = await ask_while_busy(engine, gathering, 2, 3)
    third.cancel()
    await asyncio.wait([third])
    gathering.close()
    gathering.close()
    with pytest.raises(EngineUnavailable):
        await second
    with pytest.raises(EngineUnavailable):
        await gathering.ask(4)
    engine.gate.set()
    assert await first == 2
