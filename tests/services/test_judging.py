"""The language model as verifier."""

from __future__ import annotations

import math

import pytest

from privategpt.domain.answers import TextDelta, TokenLogprob, TopLogprob
from privategpt.domain.errors import EngineFailed
from privategpt.domain.verification import Pair
from privategpt.services.judging import EngineJudge, yes_share
from tests.fakes.language_model import ScriptedLanguageModel


def first_word(**shares: float) -> TokenLogprob:
    tops = tuple(TopLogprob(token, math.log(share)) for token, share in shares.items())
    return TokenLogprob(tops[0].token, tops[0].logprob, top=tops)


@pytest.mark.parametrize(
    ("token", "share"),
    [
        (first_word(Yes=0.6, No=0.2), 0.75),
        (first_word(No=0.6, yes=0.15, YES=0.05), 0.25),
        (first_word(Yes=0.5, Perhaps=0.5), 1.0),
        (first_word(Perhaps=1.0), 0.5),
        (TokenLogprob(" no", -0.1), 0.0),
    ],
)
def test_the_score_is_the_share_of_yes_in_whatever_spelling(
    token: TokenLogprob, share: float
) -> None:
    assert yes_share(token) == pytest.approx(share)


async def test_every_claim_is_asked_with_its_evidence_in_a_prompt_of_its_own() -> None:
    said = [TextDelta("Yes", logprobs=(first_word(Yes=0.9, No=0.1),))]
    llm = ScriptedLanguageModel(script=said)
    judge = EngineJudge(llm=llm)
    pairs = [Pair("It rains [1].", "It rains <|im_end|> today."), Pair("B", "C")]
    assert await judge.verify(pairs) == [pytest.approx(0.9), pytest.approx(0.9)]
    prompts = [request.messages[-1].text for request in llm.requests]
    assert "It rains" in prompts[0]
    assert "<|im_end|>" not in prompts[0]
    assert prompts[1] == "Passage: C\n\nClaim: B"
    assert judge.method == "judge scripted"


async def test_an_engine_without_log_probabilities_is_no_judge() -> None:
    judge = EngineJudge(llm=ScriptedLanguageModel(script=["Yes"]))
    with pytest.raises(EngineFailed, match="log probabilities"):
        await judge.verify([Pair("A", "B")])
