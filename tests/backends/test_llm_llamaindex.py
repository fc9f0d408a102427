"""LlamaIndex's classes as language models, with engines small enough to read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ImageBlock,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from pydantic import Field

from privategpt.backends.llm.llamaindex import LlamaIndexModel, load_llamaindex_model
from privategpt.backends.llm.timeouts import Timeouts
from privategpt.domain.answers import (
    FinishReason,
    GenerationEvent,
    GenerationFinished,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from privategpt.domain.conversation import (
    GenerationRequest,
    Image,
    Message,
    Role,
    Sampling,
    ToolCall,
    Tooling,
)
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    PrivateGptError,
    UnsupportedParameter,
)

ASKED = (Message(Role.USER, "Hi"),)
REQUEST = GenerationRequest(ASKED)
TOOL = {"type": "function", "function": {"name": "f"}}


class Blocking(CustomLLM):
    """Knows blocking calls only, and gives the whole text so far instead of deltas."""

    temperature: float = 0.1
    num_output: int = 9
    seen: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    threads: set[str] = Field(default_factory=set[str])
    gate: Any = None
    at_gate: Any = Field(default_factory=threading.Event)
    closed: Any = Field(default_factory=threading.Event)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=2000)

    @classmethod
    def class_name(cls) -> str:
        return "blocking"

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text="Hi there")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse]:
        self.seen.append(kwargs)
        self.threads.add(threading.current_thread().name)
        try:
            yield CompletionResponse(text="Hi")
            if self.gate is not None:
                self.at_gate.set()
                self.gate.wait(30)
            yield CompletionResponse(text="Hi there")
        finally:
            self.closed.set()


class Scripted(CustomLLM):
    """Knows asynchronous calls, takes any keyword, and plays responses."""

    additional_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])
    responses: list[Any] = Field(default_factory=list[Any])
    seen: list[tuple[Any, dict[str, Any]]] = Field(default_factory=list[tuple[Any, dict[str, Any]]])
    closed: Any = Field(default_factory=asyncio.Event)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=2000, model_name="scripted-1")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text="")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse]:
        yield CompletionResponse(text="")

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        self.seen.append((messages, kwargs))

        async def play() -> ChatResponseAsyncGen:
            try:
                for response in self.responses:
                    if isinstance(response, BaseException):
                        raise response
                    if isinstance(response, asyncio.Event):
                        await response.wait()
                    else:
                        yield response
            finally:
                self.closed.set()

        return play()


def response(
    delta: str | None = "", *blocks: Any, raw: Any = None, **additional_kwargs: Any
) -> ChatResponse:
    message = ChatMessage(role=MessageRole.ASSISTANT, blocks=list(blocks))
    return ChatResponse(message=message, delta=delta, raw=raw, additional_kwargs=additional_kwargs)


async def play(
    *responses: Any, request: GenerationRequest = REQUEST, **settings: Any
) -> list[GenerationEvent]:
    model = LlamaIndexModel(llm=Scripted(responses=list(responses)), **settings)
    async with aclosing(model.generate(request)) as events:
        return [event async for event in events]


@pytest.fixture
async def blocking() -> AsyncGenerator[tuple[LlamaIndexModel, Blocking]]:
    llm = Blocking()
    model = LlamaIndexModel(llm=llm)
    yield model, llm
    await model.close()


async def test_a_blocking_class_runs_in_a_thread_of_its_own(
    blocking: tuple[LlamaIndexModel, Blocking],
) -> None:
    model, llm = blocking
    events = [event async for event in model.generate(REQUEST)]
    assert events[:-1] == [TextDelta("Hi"), TextDelta(" there")]
    assert all(name.startswith("llamaindex") for name in llm.threads)
    assert llm.closed.is_set()


async def test_leaving_a_blocking_reply_closes_its_generator_when_it_returns(
    blocking: tuple[LlamaIndexModel, Blocking],
) -> None:
    model, llm = blocking
    llm.gate = threading.Event()
    reply = model.generate(REQUEST)
    assert await anext(reply) == TextDelta("Hi")
    waiting = asyncio.ensure_future(anext(reply))
    # A step that has not begun is never taken, and the generator closed at once.
    assert await asyncio.to_thread(llm.at_gate.wait, 5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not llm.closed.is_set()
    llm.gate.set()
    assert await asyncio.to_thread(llm.closed.wait, 5)


async def test_what_a_class_has_no_field_for_is_refused(
    blocking: tuple[LlamaIndexModel, Blocking],
) -> None:
    model, llm = blocking
    taken = Sampling(max_tokens=5, temperature=0.5, reasoning_effort="low", logit_bias={"1": 1.0})
    _ = [event async for event in model.generate(GenerationRequest(ASKED, taken))]
    assert llm.seen == [{"num_output": 5, "temperature": 0.5}]
    refusals = {
        "stop": GenerationRequest(ASKED, Sampling(stop=("x",))),
        "seed": GenerationRequest(ASKED, Sampling(seed=1)),
        "tools": GenerationRequest(ASKED, tooling=Tooling((TOOL,))),
        "response_format": GenerationRequest(ASKED, response_format={"type": "json_object"}),
        "logprobs": GenerationRequest(ASKED, Sampling(top_logprobs=1)),
    }
    for param, request in refusals.items():
        with pytest.raises(UnsupportedParameter) as refused:
            await anext(model.generate(request))
        assert refused.value.param == param


async def test_a_class_that_hands_keywords_on_gets_them_all() -> None:
    llm = Scripted(responses=[response("Hi")])
    sampling = Sampling(max_tokens=5, top_p=0.5, stop=("x",), seed=3)
    tooling = Tooling((TOOL,), "auto")
    request = GenerationRequest(ASKED, sampling, tooling, {"type": "json_object"})
    _ = [event async for event in LlamaIndexModel(llm=llm).generate(request)]
    assert llm.seen[0][1] == {
        "max_tokens": 5,
        "top_p": 0.5,
        "stop": ["x"],
        "seed": 3,
        "response_format": {"type": "json_object"},
        "tools": [TOOL],
        "tool_choice": "auto",
    }


async def test_turns_become_chat_messages() -> None:
    llm = Scripted(responses=[response("Hi")])
    turns = (
        Message(Role.SYSTEM, "Be brief."),
        Message(Role.USER, "See", images=(Image("https://pictures.test/a.png", "low"),)),
        Message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "f", "{}"),)),
        Message(Role.TOOL, "sunny", tool_call_id="c1"),
    )
    _ = [event async for event in LlamaIndexModel(llm=llm).generate(GenerationRequest(turns))]
    messages = llm.seen[0][0]
    assert [message.role.value for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[0].blocks == [TextBlock(text="Be brief.")]
    assert isinstance(messages[1].blocks[1], ImageBlock)
    assert str(messages[1].blocks[1].url) == "https://pictures.test/a.png"
    call = ToolCallBlock(tool_call_id="c1", tool_name="f", tool_kwargs="{}")
    assert messages[2].blocks == [call]
    assert messages[3].additional_kwargs == {"tool_call_id": "c1"}


async def test_thoughts_and_calls_have_events_of_their_own() -> None:
    first = ToolCallBlock(tool_call_id="c1", tool_name="f", tool_kwargs={"x": "ü"})
    second = ToolCallBlock(tool_name="g", tool_kwargs="{}")
    responses = [response("", thinking_delta="Hm."), response("Yes"), response("", first, second)]
    *events, unnamed, end = await play(*responses)
    assert events == [
        ReasoningDelta("Hm."),
        TextDelta("Yes"),
        ToolCallDelta(0, '{"x": "ü"}', "c1", "f"),
    ]
    assert isinstance(unnamed, ToolCallDelta)
    assert (unnamed.index, unnamed.name, bool(unnamed.id)) == (1, "g", True)
    assert isinstance(end, GenerationFinished)
    assert end.reason is FinishReason.TOOL_CALLS
    alone = GenerationRequest(ASKED, tooling=Tooling((TOOL,), None, False))
    events = await play(*responses, request=alone)
    assert [e.id for e in events if isinstance(e, ToolCallDelta)] == ["c1"]


USAGES: list[tuple[Any, dict[str, Any]]] = [
    ({"usage": {"prompt_tokens": 7, "completion_tokens": 5}}, {}),
    (SimpleNamespace(usage=SimpleNamespace(prompt_tokens=7, completion_tokens=5)), {}),
    ({"usage": {"input_tokens": 7, "output_tokens": 5}}, {}),
    ({"prompt_eval_count": 7, "eval_count": 5}, {}),
    (None, {"prompt_tokens": 7, "completion_tokens": 5}),
]


@pytest.mark.parametrize(("raw", "extra"), USAGES)
async def test_usage_is_the_engines_own_wherever_it_tells_it(
    raw: Any, extra: dict[str, Any]
) -> None:
    events = await play(response("Hi"), response("", raw=raw, **extra))
    assert events[-1] == GenerationFinished(FinishReason.STOP, Usage(7, 5))


async def test_usage_is_counted_where_the_engine_tells_none() -> None:
    model = LlamaIndexModel(llm=Scripted())
    [_, end] = await play(response("Hello there, how are you?"))
    assert isinstance(end, GenerationFinished)
    assert end.usage == Usage(await model.count_tokens(ASKED), 7)


RAW_REASONS: list[tuple[Any, FinishReason]] = [
    ({"choices": [{"finish_reason": "length"}]}, FinishReason.LENGTH),
    (SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop")]), FinishReason.STOP),
    ({"done_reason": "length"}, FinishReason.LENGTH),
    ({"stop_reason": "max_tokens"}, FinishReason.LENGTH),
    ({"choices": []}, FinishReason.LENGTH),  # it does not say, and the bound is reached
]


@pytest.mark.parametrize(("raw", "reason"), RAW_REASONS)
async def test_the_reason_for_the_end_is_the_engines_or_follows_from_the_count(
    raw: Any, reason: FinishReason
) -> None:
    request = GenerationRequest(ASKED, Sampling(max_tokens=1))
    events = await play(response("Hi there"), response("", raw=raw), request=request)
    assert isinstance(events[-1], GenerationFinished)
    assert events[-1].reason is reason


async def test_a_whole_text_that_contradicts_what_went_before_adds_nothing() -> None:
    events = await play(
        response(None, TextBlock(text="Hi")),
        response(None, TextBlock(text="Hi there")),
        response(None, TextBlock(text="Something else")),
    )
    assert events[:-1] == [TextDelta("Hi"), TextDelta(" there")]


FAILURES: list[tuple[BaseException, type[PrivateGptError]]] = [
    (ConnectionRefusedError("10.0.0.7"), EngineUnavailable),
    (TimeoutError("10.0.0.7"), EngineTimedOut),
    (httpx.ReadTimeout("10.0.0.7"), EngineTimedOut),
    (httpx.ConnectError("10.0.0.7"), EngineUnavailable),
    (ValueError("10.0.0.7"), EngineFailed),
    (RuntimeError("10.0.0.7"), EngineFailed),
    (openai.APIConnectionError(request=None), EngineUnavailable),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize(("failure", "kind"), FAILURES)
async def test_a_classs_failures_are_the_domains(
    failure: BaseException, kind: type[PrivateGptError]
) -> None:
    with pytest.raises(kind) as failed:
        await play(response("Hi"), failure)
    assert "10.0.0.7" not in failed.value.message


async def test_a_class_that_stalls_times_out() -> None:
    stalled = Timeouts(first_byte_s=30, between_bytes_s=0.05)
    with pytest.raises(EngineTimedOut):
        await play(response("Hi"), asyncio.Event(), timeouts=stalled)


async def test_leaving_a_reply_closes_the_classs_generator() -> None:
    llm = Scripted(responses=[response("Hi"), asyncio.Event()])
    reply = LlamaIndexModel(llm=llm).generate(REQUEST)
    assert await anext(reply) == TextDelta("Hi")
    await reply.aclose()
    assert llm.closed.is_set()


async def test_a_class_is_found_by_its_dotted_path_and_built() -> None:
    model = await load_llamaindex_model(f"{__name__}.Scripted", {"responses": []})
    assert (model.name, model.context_tokens) == ("scripted-1", 2000)
    model = await load_llamaindex_model(f"{__name__}.Blocking", {}, context_tokens=700)
    assert (model.name, model.context_tokens) == ("blocking", 700)
    await model.check()
    await model.close()


BAD_CLASSES: list[tuple[str, dict[str, Any], str]] = [
    ("no_such_package.Model", {}, "is its package installed"),
    ("json.NoSuchClass", {}, "is its package installed"),
    ("Model", {}, "is its package installed"),
    ("json.JSONDecoder", {}, "is not a LlamaIndex LLM"),
    (f"{__name__}.Blocking", {"temperature": "warm"}, "do not suit"),
]


@pytest.mark.parametrize(("path", "arguments", "words"), BAD_CLASSES)
async def test_a_class_that_cannot_be_used_is_a_setting_to_correct(
    path: str, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSettings, match=words):
        await load_llamaindex_model(path, arguments)
