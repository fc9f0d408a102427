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


class Panic(BaseException):
    """What Rust raises where it panics."""


@pytest.mark.parametrize("threads", [0, 1])
async def test_a_panic_reaches_who_asked_and_the_next_question_is_answered(threads: int) -> None:
    def answer(questions: Sequence[int]) -> list[int]:
        if 0 in questions:
            raise Panic
        return list(questions)

    gathering = Gathering(answer, threads=threads, at_most=8, name="test")
    with pytest.raises(Panic):
        await gathering.ask(0)
    assert await gathering.ask(4) == 4
    gathering.close()


async def test_without_threads_the_loop_answers_once_a_round() -> None:
    here = threading.get_ident()
    asked: list[tuple[list[int], int]] = []
    rounds = 0

    def answer(questions: Sequence[int]) -> list[int]:
        assert threading.get_ident() == here
        asked.append((list(questions), rounds))
        if 13 in questions:
            raise EngineFailed("13")
        return [question * 2 for question in questions]

    async def count_rounds() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_rounds())
    gathering = Gathering(answer, threads=0, at_most=2, name="test")
    gone = asyncio.create_task(gathering.ask(9))
    tasks = [asyncio.create_task(gathering.ask(question)) for question in (1, 13, 2, 3)]
    await asyncio.sleep(0)
    gone.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    counting.cancel()

    assert outcomes[0] == 2
    assert isinstance(outcomes[1], EngineFailed)
    assert outcomes[2:] == [4, 6]
    assert [questions for questions, _ in asked] == [[1], [13, 2], [13], [2], [3]]
    assert len({rounds_so_far for _, rounds_so_far in asked}) == 3
    gathering.close()
    with pytest.raises(EngineUnavailable):
        await gathering.ask(4)


async def test_without_threads_nothing_is_asked_for_who_has_given_up() -> None:
    asked: list[list[int]] = []

    def answer(questions: Sequence[int]) -> list[int]:
        asked.append(list(questions))
        return list(questions)

    gathering = Gathering(answer, threads=0, at_most=2, name="test")
    task = asyncio.create_task(gathering.ask(1))
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.wait([task])
    assert await gathering.ask(2) == 2
    assert asked == [[2]]
    gathering.close()


async def test_a_loop_that_has_gone_harms_no_thread() -> None:
    engine = Engine()
    gathering = engine.gathering()

    def elsewhere() -> None:
        async def ask() -> None:
            asking = asyncio.create_task(gathering.ask(1))
            await engine.wait_for_call()
            asking.cancel()

        asyncio.run(ask())

    await asyncio.to_thread(elsewhere)
    engine.gate.set()
    gathering.close()
    threads = [thread for thread in threading.enumerate() if thread.name == "test-0"]
    for thread in threads:
        await asyncio.to_thread(thread.join, PATIENCE_S)
        assert not thread.is_alive()
