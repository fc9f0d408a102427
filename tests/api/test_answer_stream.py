"""Streams: heartbeats, errors before and in the middle, the end marker, and clients that leave."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from sse_starlette.sse import AppStatus

from privategpt.api.deps import ApiOptions
from privategpt.domain.answers import AnswerStarted, TextDelta
from privategpt.domain.errors import EngineFailed
from tests.api.conftest import NewClient
from tests.fakes.answering import plain_answer
from tests.fakes.asgi import TIMEOUT_S, Exchange, chunks_of, posted
from tests.fakes.edge import Edge

CHAT = "/v1/chat/completions"
PATHS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions": {"prompt": "Hi"},
}
ASK = PATHS[CHAT]
STREAM = {**ASK, "stream": True}
QUICK = ApiOptions(heartbeat_s=0.01, shutdown_grace_s=0.01, send_timeout_s=0.05)


async def test_a_stream_has_only_data_lines_and_ends_with_the_marker(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post(CHAT, json={**STREAM, "model": "private-gpt"})
    assert response.text.endswith("\n\ndata: [DONE]\n\n")
    chunks = chunks_of(response.text)
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello"},
        {"content": " there."},
        {"content": ""},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert {(chunk["id"], chunk["created"]) for chunk in chunks} == {
        (chunks[0]["id"], chunks[0]["created"])
    }


async def test_the_headers_of_a_stream_keep_proxies_from_holding_it_back(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post(CHAT, json=STREAM)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    "text",
    [
        "[DONE]",
        "data: [DONE]\n\n",
        "\r\n\r\ndata: {}\r\n\r\n",
        "a\u2028b\u2029c\x85d",
        "\x00\x0b\x0c\x1c\x1d\x1e",
        "event: error\nid: 5\nretry: 1",
        '"},{"',
        "\ufeff",
    ],
)
async def test_no_text_can_end_a_line_or_the_stream(
    text: str, edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = plain_answer(text)
    response = await client.post(CHAT, json=STREAM)
    # As PrivateGPT's SDK reads it: str.splitlines, stop at the marker anywhere in a line.
    lines = [line for line in response.text.splitlines() if line]
    assert [index for index, line in enumerate(lines) if "[DONE]" in line] == [len(lines) - 1]
    texts = [json.loads(line[5:])["choices"][0]["delta"]["content"] for line in lines[:-1]]
    assert "".join(texts) == text


async def test_a_lone_surrogate_of_the_engine_does_not_break_the_reply(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = plain_answer("a\ud800b")
    assert "a?b" in (await client.post(CHAT, json=STREAM)).text
    plain = await client.post(CHAT, json=ASK)
    assert plain.json()["choices"][0]["message"]["content"] == "a?b"


async def test_nothing_is_sent_before_the_first_event(edge: Edge) -> None:
    gate = asyncio.Event()
    edge.answers.script = [gate, *plain_answer("x")]
    async with posted(edge.app(QUICK), CHAT, STREAM) as under_way:
        await edge.answers.started.wait()
        await asyncio.sleep(0)
        assert under_way.sent.empty()
        gate.set()
        assert await under_way.status() == 200


async def test_silence_is_filled_with_chunks_of_no_content(edge: Edge) -> None:
    gate = asyncio.Event()
    edge.answers.script = [AnswerStarted(), gate, *plain_answer("x")[1:]]
    async with posted(edge.app(QUICK), CHAT, STREAM) as under_way:
        assert await under_way.status() == 200
        first = chunks_of(await under_way.next_text())
        assert first[0]["choices"][0]["delta"]["role"] == "assistant"
        for _ in range(2):
            (beat,) = chunks_of(await under_way.next_text())
            assert beat["choices"] == [
                {"index": 0, "delta": {"content": ""}, "logprobs": None, "finish_reason": None}
            ]
            assert beat["id"] == first[0]["id"]
        gate.set()
        assert "data: [DONE]" in await under_way.rest()


async def test_an_error_in_the_middle_is_an_event_and_no_finish(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = [*plain_answer("Half")[:-2], EngineFailed("The engine broke off")]
    response = await client.post(CHAT, json=STREAM)
    assert response.status_code == 200
    *chunks, error = chunks_of(response.text)
    assert error == {
        "error": {
            "message": "The engine broke off",
            "type": "server_error",
            "param": None,
            "code": "upstream_error",
        }
    }
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert response.text.endswith("data: [DONE]\n\n")


async def test_an_unforeseen_error_in_the_middle_is_told_without_its_text(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = [*plain_answer("Half")[:-2], RuntimeError("a secret")]
    response = await client.post(CHAT, json=STREAM)
    assert chunks_of(response.text)[-1]["error"]["code"] == "internal_error"
    assert "a secret" not in response.text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_before_the_first_event_stops_the_engine(
    path: str, stream: bool, edge: Edge
) -> None:
    edge.answers.script = [asyncio.Event()]
    async with posted(edge.app(), path, {**PATHS[path], "stream": stream}) as under_way:
        await edge.answers.started.wait()
        under_way.leave()
        await _closed(edge, under_way)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_in_the_middle_stops_the_engine(
    path: str, stream: bool, edge: Edge
) -> None:
    edge.answers.script = [AnswerStarted(), TextDelta("Half"), asyncio.Event()]
    async with posted(edge.app(), path, {**PATHS[path], "stream": stream}) as under_way:
        if stream:
            await under_way.status()
            await under_way.next_text()
        else:
            await edge.answers.started.wait()
        under_way.leave()
        await _closed(edge, under_way)


async def test_one_client_leaving_touches_nobody_elses_answer(edge: Edge) -> None:
    gate = asyncio.Event()
    edge.answers.script = [AnswerStarted(), gate, *plain_answer("whole")[1:]]
    app = edge.app()
    async with posted(app, CHAT, STREAM) as leaver, posted(app, CHAT, STREAM) as stayer:
        await leaver.status()
        await stayer.status()
        leaver.leave()
        await leaver.ended()
        gate.set()
        assert "whole" in await stayer.rest()


async def test_a_reader_that_stops_reading_is_given_up(edge: Edge) -> None:
    edge.answers.script = plain_answer(*["text"] * 1000)
    async with posted(edge.app(QUICK), CHAT, STREAM) as under_way:
        under_way.reading.clear()
        under_way.reading.set()
        await under_way.status()
        under_way.reading.clear()
        await _closed(edge, under_way)


async def test_a_server_that_stops_ends_its_streams_with_a_word(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge.answers.script = [AnswerStarted(), asyncio.Event()]
    async with posted(edge.app(QUICK), CHAT, STREAM) as under_way:
        await under_way.status()
        monkeypatch.setattr(AppStatus, "should_exit", True)
        text = await under_way.rest()
        assert chunks_of(text)[-1]["error"]["message"] == "The server is shutting down"
        assert text.endswith("data: [DONE]\n\n")
        await _closed(edge, under_way)


async def test_a_stream_that_ends_within_the_grace_is_not_cut(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    edge.answers.script = [AnswerStarted(), gate, *plain_answer("to its end")[1:]]
    async with posted(edge.app(), CHAT, STREAM) as under_way:
        await under_way.status()
        monkeypatch.setattr(AppStatus, "should_exit", True)
        gate.set()
        text = await under_way.rest()
    assert "to its end" in text
    assert "error" not in text


async def test_an_empty_stream_of_events_still_ends_with_the_marker(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = []
    response = await client.post(CHAT, json=STREAM)
    assert response.text == "data: [DONE]\n\n"


async def test_work_without_a_model_stops_too_when_its_client_leaves(edge: Edge) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def search(*_: object, **__: object) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    edge.search.search = search  # type: ignore[method-assign, assignment]
    async with posted(edge.app(), "/v1/chunks", {"text": "x"}) as under_way:
        await started.wait()
        under_way.leave()
        async with asyncio.timeout(TIMEOUT_S):
            await stopped.wait()


async def test_an_option_turns_heartbeats_down(new_client: NewClient, edge: Edge) -> None:
    async with new_client(ApiOptions(heartbeat_s=1000)) as client:
        response = await client.post(CHAT, json=STREAM)
    assert len(chunks_of(response.text)) == 4


async def _closed(edge: Edge, under_way: Exchange) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await edge.answers.closed.wait()
    await under_way.ended()
