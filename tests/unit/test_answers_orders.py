"""The orders of sources that the answers eval compares."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.answers.orders import Order, OrderedPrompt, arrange
from privategpt.domain.answers import Source
from privategpt.domain.conversation import Message, Role
from privategpt.grounding.prompt import PromptStyle, compose
from privategpt.services import prompting
from tests.fakes.language_model import ScriptedLanguageModel

QUESTION = Message(Role.USER, "How hot is it?")


def ranked(count: int) -> list[Source]:
    """Sources numbered by rank, as the product numbers them."""
    return [Source(number, "Report", "It is hot.", None, 0, 10) for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (Order.BEST_FIRST, [1, 2, 3, 4, 5, 6]),
        (Order.BEST_LAST, [6, 5, 4, 3, 2, 1]),
        (Order.BEST_OUTSIDE, [1, 3, 5, 6, 4, 2]),
    ],
)
def test_each_order_reads_the_sources_as_it_says(order: Order, numbers: list[int]) -> None:
    (system, _) = OrderedPrompt(order)([QUESTION], ranked(6))
    assert [int(number) for number in re.findall(r"<source>\[(\d)]", system.text)] == numbers


@given(count=st.integers(0, 12), order=st.sampled_from(Order))
def test_no_source_is_lost_or_doubled(count: int, order: Order) -> None:
    arranged = arrange(ranked(count), order)
    assert sorted(source.number for source in arranged) == list(range(1, count + 1))


@given(count=st.integers(1, 12))
def test_the_two_best_stand_outside_and_the_two_lowest_together(count: int) -> None:
    numbers = [source.number for source in arrange(ranked(count), Order.BEST_OUTSIDE)]
    assert {numbers[0], numbers[-1]} == {1, min(2, count)}
    lowest = {max(count - 1, 1), count}
    places = [numbers.index(number) for number in lowest]
    assert max(places) - min(places) == len(lowest) - 1


def test_best_first_is_the_prompt_of_the_product() -> None:
    ours = compose([QUESTION], ranked(4), system_prompt="Be brief.", style=PromptStyle.PLAIN)
    compose_first = OrderedPrompt(Order.BEST_FIRST)
    theirs = compose_first(
        [QUESTION], ranked(4), system_prompt="Be brief.", style=PromptStyle.PLAIN
    )
    assert theirs == ours


async def test_the_product_fits_the_prompt_in_that_order_and_keeps_its_ranking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompting, "compose", OrderedPrompt(Order.BEST_LAST))
    fitted = await prompting.fit(
        [QUESTION], ranked(3), llm=ScriptedLanguageModel(), reply_tokens=10
    )
    assert re.findall(r"<source>\[(\d)]", fitted.messages[0].text) == ["3", "2", "1"]
    assert [source.number for source in fitted.sources] == [1, 2, 3]
