"""The language model as verifier: the probability of yes over no, one short prompt per claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import aclosing

from privategpt.domain.answers import TextDelta, TokenLogprob
from privategpt.domain.conversation import GenerationRequest, Message, Role, Sampling
from privategpt.domain.errors import EngineFailed
from privategpt.domain.ports import LanguageModel
from privategpt.domain.verification import Pair
from privategpt.grounding.prompt import neutralise

_INSTRUCTION = (
    "Decide whether the passage says what the claim says, numbers and names included. "
    "Answer with one word: Yes or No."
)
_SAMPLING = Sampling(max_tokens=1, temperature=0, top_logprobs=20)


class EngineJudge:
    """Asks a language model that gives log probabilities."""

    def __init__(self, *, llm: LanguageModel) -> None:
        self._llm = llm

    @property
    def method(self) -> str:
        """The kind of judge and the model's name."""
        return f"judge {self._llm.name}"

    async def verify(self, pairs: Sequence[Pair]) -> list[float]:
        """The probability of yes over no, as the first word of the model's reply.

        Raises `EngineFailed` where the engine gives no log probabilities.
        """
        return [await self._ask(pair) for pair in pairs]

    async def _ask(self, pair: Pair) -> float:
        question = f"Passage: {neutralise(pair.evidence)}\n\nClaim: {neutralise(pair.claim)}"
        request = GenerationRequest(
            messages=(Message(Role.SYSTEM, _INSTRUCTION), Message(Role.USER, question)),
            sampling=_SAMPLING,
        )
        async with aclosing(self._llm.generate(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.logprobs:
                    return yes_share(event.logprobs[0])
        raise EngineFailed("The language model gives no log probabilities to judge by")


def yes_share(token: TokenLogprob) -> float:
    """The probability of yes among yes and no at one position; 0.5 where neither is a candidate."""
    candidates = {(top.token, top.logprob) for top in token.top} | {(token.token, token.logprob)}
    weights = {"yes": 0.0, "no": 0.0}
    for text, logprob in candidates:
        word = text.strip().casefold()
        if word in weights:
            weights[word] += math.exp(logprob)
    total = weights["yes"] + weights["no"]
    return weights["yes"] / total if total else 0.5
