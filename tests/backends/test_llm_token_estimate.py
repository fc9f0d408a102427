"""The estimate for engines that do not count, against the bundled model's own tokenizer."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.llm.llama_cpp import LlamaCppModel, start_llama_cpp
from privategpt.backends.llm.token_estimate import (
    TOKENS_PER_IMAGE,
    estimate_messages,
    estimate_text,
)
from privategpt.domain.conversation import Image, Message, Role, ToolCall

SAMPLES = {
    "English": "The park opens its eastern gate at nine in the morning, holidays excepted. ",
    "German": "Das Bundesverfassungsgericht entschied über die Verfassungsmäßigkeit des Gesetzes. ",
    "French": "L'établissement n'était pas responsable des dommages causés aux voisins. ",
    "Chinese": "公园的东门每天上午九点开放,公共假期除外。",
    "Japanese": "公園の東門は毎日午前九時に開きますが、祝日は除きます。",
    "Arabic": "تفتح البوابة الشرقية للحديقة في التاسعة صباحا. ",
    "Russian": "Восточные ворота парка открываются в девять часов утра. ",
    "code": "def f(x: int) -> list[int]:\n    return [y ** 2 for y in range(x) if y % 3 == 0]\n",
    "numbers": "2024-01-17; 3,141.59; 0x7fff; 192.0.2.1; +49 30 123456\n",
    "JSON": '{"id": 17, "tags": ["a", "b"], "nested": {"ok": true, "n": null}}\n',
    "emoji": "🏞️👩‍👩‍👧🎉 ",
}


@pytest.fixture(scope="module")
async def engine() -> AsyncGenerator[LlamaCppModel]:
    model = await start_llama_cpp(context_tokens=512, slots=1, threads=1)
    yield model
    await model.close()


@pytest.mark.parametrize("kind", SAMPLES)
async def test_the_estimate_leans_high_but_is_not_absurd(engine: LlamaCppModel, kind: str) -> None:
    messages = (Message(Role.USER, SAMPLES[kind] * 10),)
    counted = await engine.count_tokens(messages)
    assert 0.8 * counted <= estimate_messages(messages) <= 2.5 * counted


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_text(one) <= estimate_text(one + " " + other)


def test_calls_and_pictures_count() -> None:
    bare = estimate_messages([Message(Role.ASSISTANT, "Hi")])
    call = ToolCall("c", "get_weather", '{"city": "Rome"}')
    assert estimate_messages([Message(Role.ASSISTANT, "Hi", tool_calls=(call,))]) > bare + 8
    picture = Message(Role.ASSISTANT, "Hi", images=(Image("data:,"),))
    assert estimate_messages([picture]) == bare + TOKENS_PER_IMAGE
