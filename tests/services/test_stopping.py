"""A reply that ends at a stop sequence, whatever the engine knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.answers import (
    FinishReason,
    GenerationEvent,
    GenerationFinished,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from privategpt.domain.conversation import GenerationRequest, Message, Role
from privategpt.services.stopping import first_stop, until_stopped
from tests.fakes.language_model import ScriptedLanguageModel, Step

LETTERS = st.text("ab ", max_size=12)
STOPS = st.lists(st.text("ab ", min_size=1, max_size=3), min_size=1, max_size=3)


async def events(script: Sequence[Step], stop: Sequence[str]) -> list[GenerationEvent]:
    llm = ScriptedLanguageModel(script=script)
    request = GenerationRequest(messages=(Message(Role.USER, "Hi"),))
    stopped = until_stopped(llm.generate(request), stop, llm=llm, prompt=request.messages)
    async with aclosing(stopped) as found:
        seen = [event async for event in found]
    assert llm.open_replies == 0
    return seen


def said(found: Sequence[GenerationEvent]) -> str:
    return "".join(event.text for event in found if isinstance(event, TextDelta))


@given(text=LETTERS, stop=STOPS, cuts=st.lists(st.integers(0, 12), max_size=4))
async def test_the_text_ends_at_the_sequence_that_is_complete_first_however_it_is_cut(
    text: str, stop: list[str], cuts: list[int]
) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(places)]
    found = await events(pieces, stop)
    ends = [end for end in range(len(text) + 1) if any(text[:end].endswith(s) for s in stop)]
    (finished,) = (event for event in found if isinstance(event, GenerationFinished))
    if not ends:
        assert (said(found), finished.stop_sequence) == (text, None)
        return
    before = text[: ends[0]]
    longest = max((s for s in stop if before.endswith(s)), key=len)
    assert (said(found), finished.stop_sequence) == (before.removesuffix(longest), longest)
    assert finished.reason is FinishReason.STOP


async def test_the_engine_is_stopped_and_what_it_read_and_wrote_is_counted() -> None:
    llm = ScriptedLanguageModel(script=[ReasoningDelta("Hm hm. "), "One two", " END", "more"])
    request = GenerationRequest(messages=(Message(Role.USER, "Hi"),))
    stopped = until_stopped(llm.generate(request), ["END"], llm=llm, prompt=request.messages)
    async with aclosing(stopped) as found:
        last = [event async for event in found][-1]
    assert last == GenerationFinished(FinishReason.STOP, Usage(4, 5), stop_sequence="END")
    assert llm.open_replies == 0


async def test_a_call_of_a_tool_lets_out_what_was_held() -> None:
    found = await events(["E", ToolCallDelta(0, id="c", name="f")], ["END"])
    assert found[0] == TextDelta("E")
    assert isinstance(found[1], ToolCallDelta)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("xabcx", (1, "abc")), ("xbc", (1, "bc")), ("none", None), ("abcd", (0, "abc"))],
)
def test_of_sequences_that_end_together_the_longest_counts(
    text: str, expected: tuple[int, str] | None
) -> None:
    assert first_stop(text, ["bc", "abc", "abcd"]) == expected
