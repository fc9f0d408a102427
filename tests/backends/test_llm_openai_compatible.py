"""What an OpenAI-compatible server is sent, and how its well-formed and odd streams are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from privategpt.backends.llm.openai_compatible import (
    FALLBACK_CONTEXT_TOKENS,
    OpenAICompatibleModel,
    connect_openai_compatible,
)
from privategpt.backends.llm.token_estimate import estimate_messages, estimate_text
from privategpt.domain.answers import (
    FinishReason,
    GenerationBegun,
    GenerationEvent,
    GenerationFinished,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
    TopLogprob,
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
from privategpt.domain.errors import EngineFailed, EngineUnavailable, UnsupportedParameter
from tests.fakes.llm_server import (
    CHAT,
    End,
    Json,
    Reply,
    ScriptedServer,
    answer,
    delta_chunk,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
    whole,
)

ASKED = (Message(Role.USER, "What is the gate of the park?"),)
REQUEST = GenerationRequest(messages=ASKED)
COUNTED = Usage(prompt_tokens=11, completion_tokens=3)
MIXED = "Größe, 東京の公園, 🏞️👩‍👩‍👧, עברית\u2028 end"


@pytest.fixture
async def server() -> AsyncGenerator[ScriptedServer]:
    """A server that answers "Hi there."."""
    async with ScriptedServer() as scripted:
        yield scripted.on(CHAT, answer("Hi", " there."))


@pytest.fixture
async def model(server: ScriptedServer) -> AsyncGenerator[OpenAICompatibleModel]:
    """A model behind that server."""
    connected = OpenAICompatibleModel(base_url=server.base_url, model="m")
    yield connected
    await connected.close()


async def collect(
    model: OpenAICompatibleModel, request: GenerationRequest = REQUEST
) -> list[GenerationEvent]:
    async with aclosing(model.generate(request)) as events:
        return [event async for event in events]


async def replies(server: ScriptedServer, model: OpenAICompatibleModel, reply: Reply) -> Any:
    server.on(CHAT, reply)
    return await collect(model)


def text_of(events: list[GenerationEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_a_reply_is_its_deltas_and_then_one_end(model: OpenAICompatibleModel) -> None:
    assert await collect(model) == [
        TextDelta("Hi"),
        TextDelta(" there."),
        GenerationFinished(FinishReason.STOP, COUNTED, "fp_1"),
    ]


async def test_what_the_caller_left_open_is_not_sent(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    await collect(model)
    assert server.received()[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": "What is the gate of the park?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_every_sampling_parameter_goes_over_the_wire(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, sse(delta_chunk({"content": "x"}, logprobs=LOGPROBS), finish_chunk()))
    sampling = Sampling(
        max_tokens=7,
        temperature=0.0,
        top_p=0.9,
        top_k=4,
        frequency_penalty=-1.0,
        presence_penalty=0.5,
        stop=("END",),
        seed=0,
        top_logprobs=2,
        logit_bias={"5": -100},
        reasoning_effort="low",
    )
    schema: Json = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    tool = {"type": "function", "function": {"name": "f"}}
    tooling = Tooling((tool,), {"type": "function", "function": {"name": "f"}}, True)
    await collect(model, GenerationRequest(ASKED, sampling, tooling, schema, model="asked"))
    body = server.received()[0].body
    del body["messages"], body["stream"], body["stream_options"]
    assert body == {
        "model": "asked",
        "max_tokens": 7,
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 4,
        "frequency_penalty": -1.0,
        "presence_penalty": 0.5,
        "stop": ["END"],
        "seed": 0,
        "logprobs": True,
        "top_logprobs": 2,
        "logit_bias": {"5": -100},
        "reasoning_effort": "low",
        "response_format": schema,
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": True,
    }


async def test_turns_with_pictures_calls_and_results_keep_their_shape(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    turns = (
        Message(Role.SYSTEM, "Be brief."),
        Message(Role.USER, "See", images=(Image("data:image/png;base64,AA", "low"),)),
        Message(Role.USER, images=(Image("https://pictures.test/a.png"),)),
        Message(Role.ASSISTANT, tool_calls=(ToolCall("call_1", "f", ""),)),
        Message(Role.TOOL, "sunny", tool_call_id="call_1"),
    )
    await collect(model, GenerationRequest(turns))
    assert server.received()[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,AA", "detail": "low"},
                },
            ],
        },
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "https://pictures.test/a.png"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "content": "sunny", "tool_call_id": "call_1"},
    ]


async def test_tool_choice_is_not_sent_without_tools(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    await collect(model, GenerationRequest(ASKED, tooling=Tooling((), "none", False)))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(server.received()[0].body)


async def test_what_a_request_leaves_open_has_defaults(server: ScriptedServer) -> None:
    defaults = Sampling(max_tokens=64, temperature=0.2)
    model = OpenAICompatibleModel(base_url=server.base_url, model="m", defaults=defaults)
    await collect(model)
    await collect(model, GenerationRequest(ASKED, Sampling(max_tokens=9, temperature=0)))
    await model.close()
    sent = [(one.body["max_tokens"], one.body["temperature"]) for one in server.received()]
    assert sent == [(64, 0.2), (9, 0)]


@pytest.mark.parametrize("packet", [1, 2, 3, 7, 1000])
async def test_the_text_does_not_depend_on_how_the_bytes_were_cut(
    server: ScriptedServer, model: OpenAICompatibleModel, packet: int
) -> None:
    events = await replies(server, model, answer("Hi ", MIXED).in_packets(packet))
    assert text_of(events) == "Hi " + MIXED


async def test_thoughts_are_told_from_text_under_both_of_their_names(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    events = await replies(
        server,
        model,
        sse(
            delta_chunk({"reasoning_content": "Hm. "}),
            delta_chunk({"reasoning": "So."}),
            delta_chunk({"reasoning": "both", "reasoning_content": "both"}),
            text_chunk("Yes"),
            finish_chunk(),
            usage_chunk(11, 3, completion_tokens_details={"reasoning_tokens": 2}),
        ),
    )
    assert events == [
        ReasoningDelta("Hm. "),
        ReasoningDelta("So."),
        ReasoningDelta("both"),
        TextDelta("Yes"),
        GenerationFinished(FinishReason.STOP, Usage(11, 3, 0, 2), "fp_1"),
    ]


LOGPROBS: Json = {
    "content": [
        {
            "token": "x",
            "logprob": -0.5,
            "bytes": [120],
            "top_logprobs": [
                {"token": "x", "logprob": -0.5, "bytes": [120]},
                {"token": "y", "logprob": None, "bytes": None},
                {"token": "z", "logprob": -3},
            ],
        }
    ]
}


async def test_log_probabilities_come_with_their_text_cut_to_what_was_asked_for(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    held = delta_chunk({"content": None}, logprobs=LOGPROBS)
    server.on(CHAT, sse(held, delta_chunk({"content": "x"}, logprobs=LOGPROBS), finish_chunk()))
    [delta, _] = await collect(model, GenerationRequest(ASKED, Sampling(top_logprobs=2)))
    token = TokenLogprob(
        "x", -0.5, (120,), (TopLogprob("x", -0.5, (120,)), TopLogprob("y", -9999.0))
    )
    assert delta == TextDelta("x", logprobs=(token, token))


async def test_no_alternatives_are_given_where_none_were_asked_for(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, sse(delta_chunk({"content": "x"}, logprobs=LOGPROBS), finish_chunk()))
    [delta, _] = await collect(model, GenerationRequest(ASKED, Sampling(top_logprobs=0)))
    assert delta == TextDelta("x", logprobs=(TokenLogprob("x", -0.5, (120,)),))
    assert server.received()[0].body["top_logprobs"] == 1


async def test_log_probabilities_the_engine_does_not_give_are_a_clear_refusal(
    model: OpenAICompatibleModel,
) -> None:
    with pytest.raises(UnsupportedParameter) as refused:
        await collect(model, GenerationRequest(ASKED, Sampling(top_logprobs=0)))
    assert refused.value.param == "logprobs"


async def test_a_reply_that_calls_tools_ends_so_although_the_engine_says_stop(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f"}}
    more = {"index": 0, "function": {"arguments": "{}"}}
    events = await replies(
        server,
        model,
        sse(
            delta_chunk({"tool_calls": [call]}),
            delta_chunk({"tool_calls": [more]}),
            finish_chunk("stop"),
            usage_chunk(),
        ),
    )
    assert events == [
        ToolCallDelta(0, "", "c1", "f"),
        ToolCallDelta(0, "{}"),
        GenerationFinished(FinishReason.TOOL_CALLS, COUNTED, "fp_1"),
    ]


async def test_the_deprecated_function_call_is_a_tool_call(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    [call, end] = await replies(
        server,
        model,
        sse(
            delta_chunk({"function_call": {"name": "f", "arguments": "{}"}}),
            finish_chunk("function_call"),
            usage_chunk(),
        ),
    )
    assert (call.name, call.arguments, end.reason) == ("f", "{}", FinishReason.TOOL_CALLS)


async def test_a_second_call_is_dropped_where_parallel_calls_are_not_wanted(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    calls = [
        {"index": i, "id": f"c{i}", "function": {"name": "f", "arguments": "{}"}} for i in range(2)
    ]
    server.on(CHAT, sse(delta_chunk({"tool_calls": calls}), finish_chunk(), usage_chunk()))
    tooling = Tooling(({"type": "function", "function": {"name": "f"}},), None, False)
    events = await collect(model, GenerationRequest(ASKED, tooling=tooling))
    assert [e.id for e in events if isinstance(e, ToolCallDelta)] == ["c0"]


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("eos", FinishReason.STOP),
    ],
)
async def test_the_reason_for_the_end_is_told(
    server: ScriptedServer, model: OpenAICompatibleModel, wire: str, reason: FinishReason
) -> None:
    events = await replies(server, model, answer("Hi", finish=wire))
    assert events[-1] == GenerationFinished(reason, COUNTED, "fp_1")


async def test_chunks_that_say_nothing_are_passed_over(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    nothing: list[Json | str] = [
        {"choices": []},
        {"choices": None, "object": "chat.completion.chunk"},
        {"choices": [None, {"index": 1, "delta": {"content": "a second reply"}}]},
        delta_chunk(None),
        delta_chunk({"content": None, "tool_calls": None}),
        ": keep-alive\n\n",
    ]
    events = await replies(
        server, model, sse(*nothing, text_chunk("Hi"), finish_chunk(), usage_chunk())
    )
    assert events == [TextDelta("Hi"), GenerationFinished(FinishReason.STOP, COUNTED, "fp_1")]


async def test_a_missing_done_is_no_fault_once_the_reply_is_whole(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    whole_reply = sse(text_chunk("Hi"), finish_chunk(), usage_chunk(), done=False)
    events = await replies(server, model, whole_reply.with_end(End.CLOSE))
    assert events == [TextDelta("Hi"), GenerationFinished(FinishReason.STOP, COUNTED, "fp_1")]


async def test_a_cut_after_the_finish_chunk_costs_the_usage_only(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    reply = sse(text_chunk("Hi there"), finish_chunk(), usage_chunk()).without_last(3)
    events = await replies(server, model, reply.with_end(End.RESET))
    usage = Usage(estimate_messages(ASKED), estimate_text("Hi there"))
    assert events[-1] == GenerationFinished(FinishReason.STOP, usage, "fp_1")


async def test_tokens_are_counted_here_where_the_engine_reports_zeros(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    events = await replies(
        server, model, sse(text_chunk("Hi there"), finish_chunk(), usage_chunk(0, 0))
    )
    assert events[-1].usage == Usage(estimate_messages(ASKED), estimate_text("Hi there"))


async def test_cached_tokens_are_told(server: ScriptedServer, model: OpenAICompatibleModel) -> None:
    usage = usage_chunk(11, 3, prompt_tokens_details={"cached_tokens": 8})
    events = await replies(server, model, sse(text_chunk("Hi"), finish_chunk(), usage))
    assert events[-1].usage == Usage(11, 3, cached_tokens=8)


LLAMA_PROPS: Json = {
    "default_generation_settings": {"n_ctx": 2048},
    "chat_template_caps": {"supports_tools": False},
    "modalities": {"vision": False},
}


def as_llama_cpp(server: ScriptedServer) -> ScriptedServer:
    model = {"id": "/models/tiny.gguf", "meta": {"n_ctx_train": 8192}}
    return (
        server.on("GET /v1/models", whole(200, {"data": [model]}))
        .on("GET /props", whole(200, LLAMA_PROPS))
        .on("POST /apply-template", whole(200, {"prompt": "<s>user: hi"}))
        .on("POST /tokenize", whole(200, {"tokens": [1, 2, 3, 4, 5]}))
    )


async def test_a_llama_cpp_server_tells_its_window_and_counts_its_own_tokens(
    server: ScriptedServer,
) -> None:
    model = await connect_openai_compatible(base_url=as_llama_cpp(server).base_url)
    counted = await model.count_tokens(ASKED)
    await model.close()
    assert (model.name, model.context_tokens, counted) == ("tiny.gguf", 2048, 5)
    assert server.received("POST /tokenize")[0].body == {
        "content": "<s>user: hi",
        "add_special": True,
        "parse_special": True,
    }


async def test_what_a_llama_cpp_server_left_out_of_the_usage_it_is_asked_for(
    server: ScriptedServer,
) -> None:
    as_llama_cpp(server).on(CHAT, sse(text_chunk("Hi"), finish_chunk()))
    model = await connect_openai_compatible(base_url=server.base_url)
    events = await collect(model)
    await model.close()
    assert events[-1] == GenerationFinished(FinishReason.STOP, Usage(5, 5), "fp_1")


async def test_a_llama_cpp_server_is_told_to_report_progress_so_that_it_sees_us_leave(
    server: ScriptedServer,
) -> None:
    model = await connect_openai_compatible(base_url=as_llama_cpp(server).base_url)
    first, second = ({"prompt_progress": {"processed": count}} for count in (0, 128))
    server.on(CHAT, sse({"choices": [], **first}, {"choices": [], **second}, finish_chunk()))
    [begun, end] = await collect(model)
    await model.close()
    assert begun == GenerationBegun()
    assert isinstance(end, GenerationFinished)
    assert server.received()[0].body["return_progress"] is True


async def test_a_reply_stands_although_its_tokens_cannot_be_counted_any_more(
    server: ScriptedServer,
) -> None:
    as_llama_cpp(server).on(CHAT, sse(text_chunk("Hi"), finish_chunk()))
    server.on("POST /tokenize", Reply((b"",), end=End.RESET))
    model = await connect_openai_compatible(base_url=server.base_url)
    events = await collect(model)
    await model.close()
    usage = Usage(estimate_messages(ASKED), estimate_text("Hi"))
    assert events[-1] == GenerationFinished(FinishReason.STOP, usage, "fp_1")


async def test_tools_are_refused_where_the_chat_template_has_no_place_for_them(
    server: ScriptedServer,
) -> None:
    model = await connect_openai_compatible(base_url=as_llama_cpp(server).base_url)
    tool = {"type": "function", "function": {"name": "f"}}
    with pytest.raises(UnsupportedParameter) as refused:
        await collect(model, GenerationRequest(ASKED, tooling=Tooling((tool,))))
    assert refused.value.param == "tools"
    unused = GenerationRequest(ASKED, tooling=Tooling((tool,), "none"))
    assert text_of(await collect(model, unused)) == "Hi there."
    await model.close()


async def test_images_are_refused_where_the_model_sees_none(server: ScriptedServer) -> None:
    model = await connect_openai_compatible(base_url=as_llama_cpp(server).base_url)
    seen = Message(Role.USER, "What is this?", images=(Image(url="data:image/png;base64,AA=="),))
    with pytest.raises(UnsupportedParameter) as refused:
        await collect(model, GenerationRequest((seen,)))
    assert refused.value.param == "messages"
    await model.close()


async def test_a_vllm_server_tells_its_window_and_counts_its_own_tokens(
    server: ScriptedServer,
) -> None:
    listed = [{"id": "org/a", "max_model_len": 1}, {"id": "org/b", "max_model_len": 4096}]
    server.on("GET /v1/models", whole(200, {"data": listed}))
    server.on("POST /tokenize", whole(200, {"count": 6, "max_model_len": 4096}))
    server.on(CHAT, sse(text_chunk("Hi"), finish_chunk()))
    model = await connect_openai_compatible(base_url=server.base_url, model="org/b")
    counted = await model.count_tokens(ASKED)
    events = await collect(model)
    await model.close()
    assert (model.context_tokens, counted) == (4096, 6)
    assert events[-1] == GenerationFinished(FinishReason.STOP, Usage(6, 6), "fp_1")


async def test_a_server_that_tells_nothing_gets_estimates_and_the_fallback_window(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    assert await model.count_tokens(ASKED) == estimate_messages(ASKED)
    assert model.context_tokens == FALLBACK_CONTEXT_TOKENS


async def test_odd_answers_to_the_small_questions_are_as_good_as_none(
    server: ScriptedServer,
) -> None:
    server.on("GET /v1/models", whole(200, {"data": "?"})).on("GET /props", whole(500, "<html>"))
    model = await connect_openai_compatible(base_url=server.base_url, context_tokens=1000)
    assert (model.name, model.context_tokens) == ("default", 1000)
    await model.check()
    await model.close()


async def test_a_server_that_is_down_at_the_start_is_asked_again_later() -> None:
    server = ScriptedServer()
    async with server:
        base_url = server.base_url
    model = await connect_openai_compatible(base_url=base_url)
    with pytest.raises(EngineUnavailable):
        await model.check()
    with pytest.raises(EngineUnavailable):
        await model.count_tokens(ASKED)
    await model.close()


async def test_a_key_that_the_server_refuses_is_found_by_the_check(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on("GET /v1/models", whole(401, {"error": {"message": "bad key sk-123456789"}}))
    with pytest.raises(EngineFailed, match=r"llm\.api_key"):
        await model.check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_key_is_sent_and_nothing_of_the_environment(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    base_url = server.base_url.replace("127.0.0.1", host)
    model = OpenAICompatibleModel(base_url=base_url, model="m", api_key="mine")
    assert text_of(await collect(model)) == "Hi there."
    await model.close()
    headers = server.received()[0].headers
    assert headers["authorization"] == "Bearer mine"
    assert "environment" not in str(headers)


async def test_replies_at_the_same_time_do_not_mix(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, *(answer(f"reply {n}").in_packets(5) for n in range(8)))
    texts = await asyncio.gather(*(collect(model) for _ in range(8)))
    assert sorted(map(text_of, texts)) == [f"reply {n}" for n in range(8)]
