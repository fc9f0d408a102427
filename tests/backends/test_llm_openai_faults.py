"""What becomes of a reply when an OpenAI-compatible server fails, stalls or talks nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.llm.openai_compatible import OpenAICompatibleModel
from privategpt.backends.llm.timeouts import Timeouts
from privategpt.backends.llm.wire_errors import MAX_MESSAGE_CHARS, sanitise
from privategpt.domain.answers import GenerationEvent, GenerationFinished, TextDelta
from privategpt.domain.conversation import GenerationRequest, Message, Role
from privategpt.domain.errors import (
    ContextLengthExceeded,
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidRequest,
    ModelNotFound,
    PrivateGptError,
    Unavailable,
    UnsupportedParameter,
)
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

REQUEST = GenerationRequest((Message(Role.USER, "Hi"),))
SHORT = Timeouts(connect_s=0.2, first_byte_s=0.2, between_bytes_s=0.2)
LONG = Timeouts(connect_s=5, first_byte_s=30, between_bytes_s=30)


@pytest.fixture
async def server() -> AsyncGenerator[ScriptedServer]:
    async with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture
async def model(server: ScriptedServer) -> AsyncGenerator[OpenAICompatibleModel]:
    connected = OpenAICompatibleModel(base_url=server.base_url, model="m", timeouts=LONG)
    yield connected
    await connected.close()


async def outcome(
    model: OpenAICompatibleModel, request: GenerationRequest = REQUEST
) -> tuple[list[GenerationEvent], PrivateGptError | None]:
    events: list[GenerationEvent] = []
    try:
        async with aclosing(model.generate(request)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before an error counts
    except PrivateGptError as error:
        return events, error
    return events, None


def error_body(message: str, **fields: object) -> Json:
    return {"error": {"message": message, "type": "x", "param": None, "code": None, **fields}}


STATUSES: list[tuple[int, Json | str, type[PrivateGptError]]] = [
    (400, error_body("Bad schema"), InvalidRequest),
    (422, {"detail": "max_tokens must be positive"}, InvalidRequest),
    (413, "<html>too large</html>", InvalidRequest),
    (400, {"error": "plain words"}, InvalidRequest),
    (400, error_body("no", code="unsupported_parameter"), UnsupportedParameter),
    (400, error_body("no", code="unsupported_value"), UnsupportedParameter),
    (400, error_body("no", code="context_length_exceeded"), ContextLengthExceeded),
    (400, error_body("no", type="exceed_context_size_error"), ContextLengthExceeded),
    (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens."},
        ContextLengthExceeded,
    ),
    (422, error_body("`inputs` must have less than 1024 tokens: input too long"), InvalidRequest),
    (401, error_body("Incorrect API key"), EngineFailed),
    (403, error_body("No"), EngineFailed),
    (404, error_body("no model m"), EngineFailed),
    (302, "", EngineFailed),
    (408, "", EngineTimedOut),
    (504, "<html>gateway</html>", EngineTimedOut),
    (429, error_body("Slow down"), EngineUnavailable),
    (503, error_body("Loading model"), EngineUnavailable),
    (500, error_body("boom"), EngineFailed),
    (502, "<html>bad gateway</html>", EngineFailed),
    (418, "", EngineFailed),
]


@pytest.mark.parametrize(("status", "body", "kind"), STATUSES)
async def test_each_status_has_its_error(
    server: ScriptedServer,
    model: OpenAICompatibleModel,
    status: int,
    body: Json | str,
    kind: type[PrivateGptError],
) -> None:
    server.on(CHAT, whole(status, body))
    events, error = await outcome(model)
    assert events == []
    assert isinstance(error, kind)
    assert len(server.received()) == 1


async def test_the_parameter_at_fault_is_named(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    body = error_body(
        "logit_bias is not supported", code="unsupported_parameter", param="logit_bias"
    )
    server.on(CHAT, whole(400, body))
    _, error = await outcome(model)
    assert error is not None
    assert error.param == "logit_bias"
    assert error.message == "The language model refused this: logit_bias is not supported"


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7), ("99999", 120), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
async def test_an_overloaded_engine_says_when_to_come_back(
    server: ScriptedServer, model: OpenAICompatibleModel, header: str, seconds: int | None
) -> None:
    server.on(CHAT, whole(429, error_body("busy"), headers={"Retry-After": header}))
    _, error = await outcome(model)
    assert isinstance(error, EngineUnavailable)
    assert error.retry_after_s == seconds


async def test_a_model_the_caller_named_is_the_callers_fault(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, whole(404, error_body("no")))
    _, error = await outcome(model, GenerationRequest(REQUEST.messages, model="theirs"))
    assert isinstance(error, ModelNotFound)
    assert (error.param, "'theirs'" in error.message) == ("model", True)


async def test_no_secret_of_the_engine_reaches_the_caller(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    leak = (
        "bad key sk-abcdef123456 at http://user:pw@10.0.0.7:8000/v1?k=1 in"
        " /srv/models/secret/x.gguf, C:\\models\\x, Bearer tok_en, 10.1.2.3:99\x1b[31m\n"
        + "y"
        * 999
    )
    server.on(CHAT, whole(400, error_body(leak)))
    _, error = await outcome(model)
    assert error is not None
    for secret in ("sk-abc", "10.0", "10.1", "/srv", "secret", "models", "tok_en", "\x1b", "\n"):
        assert secret not in error.message
    assert len(error.message) < MAX_MESSAGE_CHARS + 50


@given(st.text())
def test_a_sanitised_message_is_one_printable_line_of_bounded_length(message: str) -> None:
    cleaned = sanitise(message)
    assert cleaned.isprintable()
    assert len(cleaned) <= MAX_MESSAGE_CHARS
    assert sanitise(cleaned) == cleaned


NONSENSE: list[Reply] = [
    whole(200, "<html>login</html>"),
    whole(200, ""),
    whole(200, {"choices": [{"message": {"content": "not streamed"}}]}),
    sse(),
    sse("data: {not json\n\n"),
    sse("data: [1, 2]\n\n"),
    sse("data: 7\n\n"),
    sse({"detail": "oops"}),
    sse({"object": "error", "message": "flat"}),
    sse(delta_chunk({"content": ["a", "list"]})),
    Reply((b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\ndata: \xff\xfe{"a": 1}',)),
]


@pytest.mark.parametrize("reply", NONSENSE)
async def test_what_is_not_a_stream_of_chunks_is_a_failure(
    server: ScriptedServer, model: OpenAICompatibleModel, reply: Reply
) -> None:
    server.on(CHAT, reply)
    events, error = await outcome(model)
    assert events == []
    assert isinstance(error, EngineFailed)


@pytest.mark.parametrize("bytes_", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le"])
async def test_a_server_that_does_not_speak_http_is_unavailable(
    server: ScriptedServer, model: OpenAICompatibleModel, bytes_: bytes
) -> None:
    server.on(CHAT, Reply((bytes_,), end=End.CLOSE))
    events, error = await outcome(model)
    assert events == []
    assert isinstance(error, EngineUnavailable)


EVENT_ERRORS: list[tuple[Json, type[PrivateGptError]]] = [
    (error_body("boom"), EngineFailed),
    ({"error": "boom"}, EngineFailed),
    (error_body("boom", code=500), EngineFailed),
    (error_body("busy", code=503), EngineUnavailable),
    (error_body("x", code=400, type="exceed_context_size_error"), ContextLengthExceeded),
    (error_body("bad", code=400), InvalidRequest),
    (error_body("x", code="context_length_exceeded"), ContextLengthExceeded),
]


@pytest.mark.parametrize(("body", "kind"), EVENT_ERRORS)
@pytest.mark.parametrize("before", [(), (text_chunk("Hi"),)])
async def test_an_error_event_within_the_stream_is_an_error(
    server: ScriptedServer,
    model: OpenAICompatibleModel,
    before: tuple[Json, ...],
    body: Json,
    kind: type[PrivateGptError],
) -> None:
    server.on(CHAT, sse(*before, body))
    events, error = await outcome(model)
    assert events == [TextDelta("Hi")] * len(before)
    assert isinstance(error, kind)


async def test_an_engine_that_gives_up_is_no_finished_reply(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, sse(text_chunk("Hi"), finish_chunk("abort")))
    events, error = await outcome(model)
    assert events == [TextDelta("Hi")]
    assert isinstance(error, EngineUnavailable)


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
async def test_a_stream_cut_at_any_byte_is_whole_or_an_error(
    server: ScriptedServer, model: OpenAICompatibleModel, end: End
) -> None:
    reply = answer("Grüße ", "東京 🏞️")
    finish = reply.size - sum(map(len, reply.pieces[-4:])) + len(reply.pieces[-4]) - 2
    for at in range(0, reply.size, 3):
        server.on(CHAT, reply.cut(at, end))
        events, error = await outcome(model)
        text = "".join(e.text for e in events if isinstance(e, TextDelta))
        ended = [e for e in events if isinstance(e, GenerationFinished)]
        assert "Grüße 東京 🏞️".startswith(text)
        if at >= finish:
            assert (text, len(ended), error) == ("Grüße 東京 🏞️", 1, None)
        else:
            assert ended == []
            assert isinstance(error, Unavailable)


async def test_a_reply_that_ends_without_its_finish_chunk_broke_off(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, sse(text_chunk("Hi")))
    events, error = await outcome(model)
    assert events == [TextDelta("Hi")]
    assert isinstance(error, EngineUnavailable)
    assert "broke off" in error.message


async def test_a_refused_connection_is_unavailable(server: ScriptedServer) -> None:
    base_url = server.base_url
    await server.stop()
    model = OpenAICompatibleModel(base_url=base_url, model="m", timeouts=LONG)
    events, error = await outcome(model)
    await model.close()
    assert events == []
    assert isinstance(error, EngineUnavailable)


async def test_a_connection_lost_before_the_first_byte_is_tried_once_more(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, Reply((b"",), end=End.RESET), answer("Hi"))
    events, error = await outcome(model)
    assert error is None
    assert events[0] == TextDelta("Hi")
    server.on(CHAT, Reply((b"",), end=End.RESET))
    _, error = await outcome(model)
    assert isinstance(error, EngineUnavailable)
    assert len(server.received()) == 4


async def test_nothing_is_tried_again_after_the_first_byte(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, answer("Hi").cut(150, End.RESET))
    _, error = await outcome(model)
    assert isinstance(error, EngineUnavailable)
    assert len(server.received()) == 1


STALLS: list[tuple[str, Reply]] = [
    ("before the head", Reply((b"",), end=End.HANG)),
    ("after the head", sse(text_chunk("Hi")).without_last(3).with_end(End.HANG)),
    ("with comments only", sse(": ping\n\n", done=False).without_last(1).with_end(End.HANG)),
    ("in the body of an error", whole(500, "x" * 99).cut(100, End.HANG)),
]


@pytest.mark.parametrize(("where", "reply"), STALLS)
async def test_an_engine_that_stalls_before_its_first_chunk_times_out(
    server: ScriptedServer, where: str, reply: Reply
) -> None:
    server.on(CHAT, reply)
    model = OpenAICompatibleModel(base_url=server.base_url, model="m", timeouts=SHORT)
    await model.learn()
    events, error = await outcome(model)
    await model.close()
    assert events == []
    assert isinstance(error, EngineTimedOut)


async def test_an_engine_that_stalls_between_chunks_times_out(server: ScriptedServer) -> None:
    server.on(CHAT, answer("Hi", "there").held_at(3, asyncio.Event()))
    timeouts = Timeouts(first_byte_s=30, between_bytes_s=0.2)
    model = OpenAICompatibleModel(base_url=server.base_url, model="m", timeouts=timeouts)
    events, error = await outcome(model)
    await asyncio.wait_for(server.left.wait(), 2)
    await model.close()
    assert events == [TextDelta("Hi")]
    assert isinstance(error, EngineTimedOut)


async def test_an_engine_that_stalls_once_it_has_finished_keeps_nobody_waiting(
    server: ScriptedServer,
) -> None:
    server.on(CHAT, sse(text_chunk("Hi"), finish_chunk()).without_last(2).with_end(End.HANG))
    model = OpenAICompatibleModel(base_url=server.base_url, model="m", timeouts=SHORT)
    await model.learn()
    events, error = await outcome(model)
    await model.close()
    assert error is None
    assert isinstance(events[-1], GenerationFinished)
    assert events[-1].usage.completion_tokens > 0


async def test_closing_the_reply_closes_the_connection_to_the_engine(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    server.on(CHAT, answer("Hi", "there").held_at(3, asyncio.Event()))
    stream = model.generate(REQUEST)
    assert await anext(stream) == TextDelta("Hi")
    assert not server.left.is_set()
    await stream.aclose()
    await asyncio.wait_for(server.left.wait(), 2)


@pytest.mark.parametrize("piece", [0, 1, 2])
async def test_leaving_before_the_first_text_closes_the_connection_to_the_engine(
    server: ScriptedServer, model: OpenAICompatibleModel, piece: int
) -> None:
    await model.learn()
    server.arrived.clear()
    server.on(CHAT, answer("Hi").held_at(piece, asyncio.Event()))
    asking = asyncio.ensure_future(outcome(model))
    await asyncio.wait_for(server.arrived.wait(), 2)
    asking.cancel()
    await asyncio.wait_for(server.left.wait(), 2)
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_one_client_leaving_does_not_touch_anothers_reply(
    server: ScriptedServer, model: OpenAICompatibleModel
) -> None:
    gate = asyncio.Event()
    server.on(CHAT, answer("A", "B").held_at(3, asyncio.Event()), answer("C", "D").held_at(3, gate))
    leaving, staying = model.generate(REQUEST), model.generate(REQUEST)
    assert [await anext(leaving), await anext(staying)] == [TextDelta("A"), TextDelta("C")]
    await leaving.aclose()
    await asyncio.wait_for(server.left.wait(), 2)
    gate.set()
    assert await anext(staying) == TextDelta("D")
    await staying.aclose()


async def test_connections_are_reused_and_closed_at_the_end(server: ScriptedServer) -> None:
    server.on(CHAT, sse(text_chunk("Hi"), finish_chunk(), usage_chunk()))
    model = OpenAICompatibleModel(base_url=server.base_url, model="m", timeouts=LONG)
    for _ in range(5):
        await outcome(model)
    assert server.connections == 1
    await model.close()
    await asyncio.wait_for(server.idle(), 2)
    assert server.connections == 0
