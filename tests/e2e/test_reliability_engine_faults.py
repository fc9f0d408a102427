"""Everything that an engine can do wrong, against a process: a clear error, never half a truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.e2e.bad_input import CHAT_PATH, HI
from tests.e2e.stacks import Stack, ours, stack
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.fault_proxy import HEALTHY, Fault, FaultProxy, Then
from tests.fakes.llm_server import CHAT, End, Reply, ScriptedServer, answer, whole

TEXT = "Seventeen words would be too many for a reply that is cut at each of its bytes."
WHOLE = answer(*(f"{word} " for word in TEXT.split()))


@dataclass(frozen=True, slots=True)
class Faulty:
    """A server, and everything between it and its answers."""

    server: Stack
    proxy: FaultProxy
    vectors: EmbeddingServer

    async def ask(self, *, stream: bool, **more: Any) -> httpx.Response:
        """One question, answered through the proxy on a new connection."""
        async with self.server.client() as client:
            return await client.post(CHAT_PATH, json={"messages": HI, "stream": stream, **more})

    async def spoil(self, fault: Fault, *replies: Reply) -> None:
        """Let the engine's next answers go wrong like this."""
        await self.proxy.drop()
        self.proxy.fault = fault
        self.server.engine.on(CHAT, *(replies or (WHOLE,)))


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Faulty]:
    folder = tmp_path_factory.mktemp("faults") / "data"
    async with (
        ScriptedServer() as engine,
        FaultProxy(engine.port) as proxy,
        EmbeddingServer() as vectors,
    ):
        environ = {
            "PRIVATEGPT_LLM__BASE_URL": proxy.base_url,
            "PRIVATEGPT_LLM__FIRST_BYTE_TIMEOUT_S": "1",
            "PRIVATEGPT_LLM__BETWEEN_BYTES_TIMEOUT_S": "1",
            "PRIVATEGPT_LLM__CONNECT_TIMEOUT_S": "1",
            "PRIVATEGPT_LLM__MAX_WAITING": "3",
            "PRIVATEGPT_EMBEDDING__MODE": "openai",
            "PRIVATEGPT_EMBEDDING__BASE_URL": vectors.url,
            "PRIVATEGPT_EMBEDDING__MODEL": "words",
            "PRIVATEGPT_EMBEDDING__TIMEOUT_S": "1",
        }
        async with stack(ours, folder, engine, **environ) as server:
            yield Faulty(server, proxy, vectors)


@pytest.fixture
async def faulty(running: Faulty) -> AsyncGenerator[Faulty]:
    """What went wrong is over with the test, and the next question is answered: no restart."""
    yield running
    running.vectors.reset()
    await running.spoil(HEALTHY)
    for stream in (False, True):
        reply = await running.ask(stream=stream, use_context=True)
        assert reply.status_code == 200, reply.text
        assert "bytes" in reply.text


def unavailable(reply: httpx.Response, status: int) -> dict[str, Any]:
    """The error of a reply that says: not now."""
    assert reply.status_code == status, reply.text
    assert int(reply.headers["retry-after"]) > 0
    error: dict[str, Any] = reply.json()["error"]
    assert error["type"] == ("rate_limit_error" if status == 429 else "server_error")
    return error


BEFORE: dict[str, tuple[Fault, Reply, int]] = {
    "a machine that hangs": (Fault(accept=False), WHOLE, 504),
    "silence": (Fault(after=0, then=Then.HANG), WHOLE, 504),
    "silence behind the head": (Fault(), WHOLE.cut(len(WHOLE.pieces[0]), End.HANG), 504),
    "closed without a byte": (Fault(after=0), WHOLE, 503),
    "reset without a byte": (Fault(after=0, then=Then.RESET), WHOLE, 503),
    "overloaded": (HEALTHY, whole(429, {"error": {}}, headers={"Retry-After": "7"}), 503),
    "loading": (HEALTHY, whole(503, {"error": {"message": "Loading model"}}), 503),
    "broken": (HEALTHY, whole(500, {"error": {"message": "CUDA error"}}), 502),
    "a proxy's page": (HEALTHY, whole(200, "<html>Welcome</html>"), 502),
    "a proxy's error page": (HEALTHY, whole(502, "<html>Bad Gateway</html>"), 502),
    "nothing at all": (HEALTHY, whole(200), 502),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("what", BEFORE)
async def test_before_the_first_byte_the_status_says_what_is_wrong(
    what: str, stream: bool, faulty: Faulty
) -> None:
    fault, reply, status = BEFORE[what]
    await faulty.spoil(fault, reply)
    response = await faulty.ask(stream=stream)
    error = unavailable(response, status)
    assert error["code"] == ("upstream_timeout" if status == 504 else "upstream_error")
    if what == "overloaded":
        assert response.headers["retry-after"] == "7"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refused_connection_is_told_and_got_over(stream: bool, faulty: Faulty) -> None:
    await faulty.proxy.refuse()
    try:
        unavailable(await faulty.ask(stream=stream), 503)
        async with faulty.server.client() as client:
            assert (await client.get("/health")).status_code == 200
            ready = await client.get("/health/ready")
            assert (ready.status_code, ready.json()["checks"]["llm"]) != (200, "ok")
    finally:
        await faulty.proxy.listen()


@pytest.mark.parametrize("then", list(Then))
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_cut_anywhere_is_whole_or_an_error(
    then: Then, stream: bool, faulty: Faulty
) -> None:
    # A sample, with primes for steps; each that hangs costs a second and more.
    step = 613 if then is Then.HANG else 149
    for after in range(1, WHOLE.size, step):
        await faulty.spoil(Fault(after=after, then=then))
        response = await faulty.ask(stream=stream)
        if response.status_code != 200:
            unavailable(response, response.status_code)
        elif stream:
            _whole_or_broken_off(response.text)
        else:
            assert response.json()["choices"][0]["message"]["content"].strip() == TEXT


def _whole_or_broken_off(body: str) -> None:
    *events, done = (line[6:] for line in body.splitlines() if line)
    assert done == "[DONE]"
    chunks = [json.loads(event) for event in events]
    choices = [chunk["choices"][0] for chunk in chunks if "error" not in chunk]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    finished = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    errors = [chunk for chunk in chunks if "error" in chunk]
    if errors:
        assert errors == [chunks[-1]]
        assert finished == []
        assert TEXT.startswith(text.rstrip())
    else:
        assert finished == ["stop"]
        assert text.strip() == TEXT


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_byte_by_byte_is_an_answer(stream: bool, faulty: Faulty) -> None:
    await faulty.spoil(Fault(packet=1))
    response = await faulty.ask(stream=stream)
    assert response.status_code == 200
    if stream:
        _whole_or_broken_off(response.text)
        assert '"finish_reason":"stop"' in response.text


def _fails(vectors: EmbeddingServer) -> None:
    vectors.status = 500


def _falls_silent(vectors: EmbeddingServer) -> None:
    vectors.silent = True


def _answers_nonsense(vectors: EmbeddingServer) -> None:
    vectors.raw = b"<html>"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("go_wrong", [_fails, _falls_silent, _answers_nonsense])
async def test_where_nothing_could_be_looked_up_nothing_is_answered(
    go_wrong: Callable[[EmbeddingServer], None], stream: bool, faulty: Faulty
) -> None:
    go_wrong(faulty.vectors)
    faulty.server.engine.requests.clear()
    response = await faulty.ask(stream=stream, use_context=True)
    unavailable(response, response.status_code)
    assert faulty.server.engine.received() == []


async def test_more_than_may_wait_are_refused_at_once_and_the_others_answered(
    faulty: Faulty,
) -> None:
    gate, engine = asyncio.Event(), faulty.server.engine
    await faulty.spoil(HEALTHY, WHOLE.held_at(2, gate))
    engine.requests.clear()
    waiting = [asyncio.create_task(faulty.ask(stream=True)) for _ in range(3)]
    async with asyncio.timeout(20):
        while len(engine.received()) < 3:
            engine.arrived.clear()
            await engine.arrived.wait()
    unavailable(await faulty.ask(stream=True), 429)
    unavailable(await faulty.ask(stream=False), 429)
    gate.set()
    for reply in await asyncio.gather(*waiting):
        _whole_or_broken_off(reply.text)
        assert '"finish_reason":"stop"' in reply.text
