"""Streams of /v1/messages: names, pings, errors in the middle, and clients that leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from privategpt.api.deps import ApiOptions
from privategpt.domain.answers import AnswerStarted, TextDelta
from privategpt.domain.errors import EngineFailed, EngineTimedOut
from tests.fakes.answering import plain_answer
from tests.fakes.anthropic_events import events_of, message_of, text_of
from tests.fakes.asgi import posted
from tests.fakes.edge import Edge

MESSAGES = "/v1/messages"
STREAM: dict[str, Any] = {
    "model": "private-gpt",
    "max_tokens": 9,
    "stream": True,
    "messages": [{"role": "user", "content": "Hi"}],
}
QUICK = ApiOptions(heartbeat_s=0.01)
PATIENT = ApiOptions(heartbeat_s=60.0)


async def test_nothing_is_sent_before_the_first_event(edge: Edge) -> None:
    gate = asyncio.Event()
    edge.answers.script = [gate, *plain_answer("x")]
    async with posted(edge.app(QUICK), MESSAGES, STREAM) as under_way:
        await edge.answers.started.wait()
        await asyncio.sleep(0)
        assert under_way.sent.empty()
        gate.set()
        assert await under_way.status() == 200
        assert text_of(message_of(events_of(await under_way.rest()))) == "x"


async def test_silence_is_filled_with_pings(edge: Edge) -> None:
    gate = asyncio.Event()
    edge.answers.script = [AnswerStarted(), gate, *plain_answer("x")[1:]]
    async with posted(edge.app(QUICK), MESSAGES, STREAM) as under_way:
        await under_way.status()
        assert events_of(await under_way.next_text())[0]["type"] == "message_start"
        for _ in range(2):
            assert await under_way.next_text() == 'event: ping\ndata: {"type":"ping"}\n\n'
        gate.set()
        assert "event: message_stop" in await under_way.rest()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EngineFailed("It broke"), "api_error"),
        (EngineTimedOut("It broke"), "timeout_error"),
        (RuntimeError("secret"), "api_error"),
    ],
)
async def test_an_error_in_the_middle_is_an_event_and_the_last(
    edge: Edge, error: Exception, kind: str
) -> None:
    edge.answers.script = [AnswerStarted(), TextDelta("Half"), error]
    async with posted(edge.app(PATIENT), MESSAGES, STREAM) as under_way:
        assert await under_way.status() == 200
        text = await under_way.rest()
    last = events_of(text)[-1]
    assert (last["type"], last["error"]["type"]) == ("error", kind)
    assert last["request_id"].startswith("req_")
    assert "secret" not in text
    assert "message_stop" not in text
    assert "[DONE]" not in text


async def test_the_engine_stops_when_the_client_leaves(edge: Edge) -> None:
    edge.answers.script = [AnswerStarted(), TextDelta("Half"), asyncio.Event()]
    async with posted(edge.app(PATIENT), MESSAGES, STREAM) as under_way:
        await under_way.status()
        under_way.leave()
        await under_way.ended()
    assert edge.answers.closed.is_set()


async def test_the_reading_of_a_pdf_stops_when_the_client_leaves(edge: Edge) -> None:
    edge.parser.gate.clear()
    source = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
    content = [{"type": "document", "source": source}]
    body = {**STREAM, "messages": [{"role": "user", "content": content}]}
    async with posted(edge.app(PATIENT), MESSAGES, body) as under_way:
        under_way.leave()
        await under_way.ended()
    assert edge.answers.requests == []
