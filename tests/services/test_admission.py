"""More answers than are taken on at once are refused; a place is free again when one ends."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from privategpt.domain.answers import AnswerEvent
from privategpt.domain.conversation import Message, Role
from privategpt.domain.errors import EngineFailed, TooManyRequests
from privategpt.services.admission import AdmittedAnswers
from privategpt.services.answering import AnswerRequest
from tests.fakes.answering import FakeAnswers, plain_answer

REQUEST = AnswerRequest(messages=(Message(Role.USER, "Hi"),), tenant="ann")


async def read(answers: AdmittedAnswers) -> list[AnswerEvent]:
    async with aclosing(answers.answer(REQUEST)) as events:
        return [event async for event in events]


async def test_one_too_many_is_refused_until_another_is_read_or_left() -> None:
    behind = FakeAnswers(script=plain_answer("Hello"))
    answers = AdmittedAnswers(behind, at_once=2)
    first, second = answers.answer(REQUEST), answers.answer(REQUEST)
    await anext(first)
    await anext(second)
    with pytest.raises(TooManyRequests) as refused:
        await read(answers)
    assert refused.value.retry_after_s
    await first.aclose()
    assert await read(answers) == plain_answer("Hello")
    assert await read(answers) == plain_answer("Hello")
    await second.aclose()


async def test_an_answer_that_fails_frees_its_place() -> None:
    behind = FakeAnswers(script=[EngineFailed("It broke")])
    answers = AdmittedAnswers(behind, at_once=1)
    for _ in range(2):
        with pytest.raises(EngineFailed):
            await read(answers)
