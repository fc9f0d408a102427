"""What every `LanguageModel` does, whatever is behind it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any, cast

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

from privategpt.backends.llm.llama_cpp import start_llama_cpp
from privategpt.backends.llm.llamaindex import LlamaIndexModel
from privategpt.backends.llm.openai_compatible import OpenAICompatibleModel
from privategpt.domain.answers import (
    FinishReason,
    GenerationBegun,
    GenerationEvent,
    GenerationFinished,
    TextDelta,
)
from privategpt.domain.conversation import GenerationRequest, Message, Role, Sampling
from privategpt.domain.ports import LanguageModel
from tests.fakes.language_model import ScriptedLanguageModel
from tests.fakes.llm_server import CHAT, ScriptedServer, answer

ASKED = (
    Message(Role.SYSTEM, "You tell long stories."),
    Message(Role.USER, "Tell me one of the sea."),
)
WORDS = ("One,", " two,", " three,", " four,", " five.")
LIMIT = 3


class Counting(CustomLLM):
    """Counts to five, a word a piece; knows only blocking calls."""

    max_tokens: int = 64

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=4096, num_output=64, model_name="counting")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text="".join(WORDS))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse]:
        text = ""
        for word in WORDS[: kwargs.get("max_tokens", 64)]:
            text += word
            yield CompletionResponse(text=text, delta=word)


@pytest.fixture(scope="module")
async def scripted_server() -> AsyncGenerator[LanguageModel]:
    async with ScriptedServer() as server:
        model = OpenAICompatibleModel(base_url=server.base_url, model="m")
        bounded = answer(*WORDS[:LIMIT], finish="length")
        server.on(CHAT, bounded)
        yield model
        await model.close()


@pytest.fixture(scope="module")
async def llamaindex() -> AsyncGenerator[LanguageModel]:
    model = LlamaIndexModel(llm=Counting())
    yield model
    await model.close()


@pytest.fixture(scope="module")
async def embedded() -> AsyncGenerator[LanguageModel]:
    model = await start_llama_cpp(context_tokens=512, slots=1, threads=1)
    yield model
    await model.close()


@pytest.fixture(scope="module")
def fake() -> LanguageModel:
    return ScriptedLanguageModel(WORDS)


@pytest.fixture(scope="module", params=["scripted_server", "llamaindex", "embedded", "fake"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    """Each implementation in turn; "fake" is what other tests put in its place."""
    return cast("LanguageModel", request.getfixturevalue(request.param))


def asked(max_tokens: int = LIMIT) -> GenerationRequest:
    return GenerationRequest(ASKED, Sampling(max_tokens=max_tokens))


async def collect(model: LanguageModel, request: GenerationRequest) -> list[GenerationEvent]:
    async with aclosing(model.generate(request)) as events:
        return [event async for event in events]


async def test_a_reply_is_deltas_of_text_and_last_one_end(model: LanguageModel) -> None:
    *deltas, end = await collect(model, asked())
    if isinstance(deltas[0], GenerationBegun):
        del deltas[0]
    assert all(isinstance(delta, TextDelta) and delta.text for delta in deltas)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)).strip()
    assert isinstance(end, GenerationFinished)


async def test_a_bounded_reply_ends_at_its_bound_and_says_so(model: LanguageModel) -> None:
    *_, end = await collect(model, asked())
    assert isinstance(end, GenerationFinished)
    assert end.reason is FinishReason.LENGTH
    assert end.usage.completion_tokens >= LIMIT


async def test_usage_counts_the_whole_prompt(model: LanguageModel) -> None:
    *_, end = await collect(model, asked())
    assert isinstance(end, GenerationFinished)
    assert end.usage.prompt_tokens > len(ASKED)
    assert end.usage.total_tokens == end.usage.prompt_tokens + end.usage.completion_tokens


async def test_a_longer_prompt_counts_more_tokens(model: LanguageModel) -> None:
    short = await model.count_tokens(ASKED)
    longer = await model.count_tokens((*ASKED, Message(Role.USER, "And of a ship.")))
    assert 0 < short < longer


async def test_a_text_by_itself_is_less_than_a_turn_of_it(model: LanguageModel) -> None:
    text = " ".join(message.text for message in ASKED)
    assert 0 < await model.count_text(text) <= await model.count_tokens(ASKED)


async def test_a_reply_left_in_the_middle_leaves_the_model_working(model: LanguageModel) -> None:
    left = model.generate(asked())
    assert isinstance(await anext(left), TextDelta | GenerationBegun)
    await left.aclose()
    assert len(await collect(model, asked())) > 1


async def test_a_model_that_works_passes_its_check(model: LanguageModel) -> None:
    assert await model.check() is None  # type: ignore[func-returns-value]


async def test_a_model_has_a_name_and_a_window(model: LanguageModel) -> None:
    assert model.name
    assert model.context_tokens >= 512
