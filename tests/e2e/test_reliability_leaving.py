"""Who leaves stops only its own work; who stops the server leaves nothing running."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from tests.e2e.bad_input import CHAT_PATH, HI, LEAVING_S
from tests.e2e.processes import family, is_alive
from tests.e2e.server import running_server
from tests.e2e.stacks import Stack, ours, stack
from tests.fakes.llm_server import CHAT, ScriptedServer, answer, sse, text_chunk

STOP_S = 20.0
EMBEDDED_S = 60.0
END_OF_TURN = "2"  # of the bundled model, which would end by itself within the grace
STAGES = {"queued": 0, "while the prompt is read": 1, "in the middle": 2}
"""At which piece of its answer the engine is when the client leaves; 0 is before its head."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    async with (
        ScriptedServer() as engine,
        stack(ours, tmp_path_factory.mktemp("leaving") / "data", engine) as running,
    ):
        yield running


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_client_that_leaves_stops_its_engine_and_touches_nobody_else(
    stage: str, stream: bool, server: Stack
) -> None:
    gate, engine = asyncio.Event(), server.engine
    leaving = sse(text_chunk("One")).held_at(STAGES[stage], asyncio.Event())
    staying = answer("Here ", "to ", "stay").held_at(3, gate)
    engine.on(CHAT, staying, leaving)
    engine.left = asyncio.Event()
    engine.arrived.clear()
    async with server.client() as client:
        other = asyncio.create_task(client.post(CHAT_PATH, json={"messages": HI, "stream": True}))
        await _next_request(engine)
        writer = await _ask_and_do_not_read(server, stream=stream)
        await _next_request(engine)
        writer.close()
        async with asyncio.timeout(LEAVING_S):
            await engine.left.wait()
        gate.set()
        body = (await other).text
    assert '"finish_reason":"stop"' in body
    assert '"stay"' in body


async def _next_request(engine: ScriptedServer) -> None:
    async with asyncio.timeout(STOP_S):
        await engine.arrived.wait()
    engine.arrived.clear()


async def _ask_and_do_not_read(server: Stack, *, stream: bool) -> asyncio.StreamWriter:
    body = json.dumps({"messages": HI, "stream": stream}).encode()
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return writer


async def test_a_second_signal_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    async with ScriptedServer() as engine:
        engine.on(CHAT, sse(text_chunk("One")).held_at(2, asyncio.Event()))
        patient = {"PRIVATEGPT_SERVER__SHUTDOWN_GRACE_S": "600"}
        async with (
            stack(ours, tmp_path / "data", engine, **patient) as server,
            server.client() as client,
            client.stream("POST", CHAT_PATH, json={"messages": HI, "stream": True}) as response,
        ):
            await anext(response.aiter_lines())
            server.process.send_signal(signal.SIGTERM)
            await _until_refused(server)
            server.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(server.process.wait, STOP_S) == 0


async def _until_refused(server: Stack) -> None:
    """Return when the server takes no more connections: it has read the signal."""
    async with asyncio.timeout(STOP_S):
        while True:
            try:
                _, writer = await asyncio.open_connection(*server.address)
            except ConnectionError:
                return
            writer.close()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_the_embedded_engine_ends_with_its_server_in_the_middle_of_an_answer(
    ending: signal.Signals, tmp_path: Path
) -> None:
    brief = {"PRIVATEGPT_SERVER__SHUTDOWN_GRACE_S": "0.1"}
    body = {
        "messages": [{"role": "user", "content": "Count from one to a thousand."}],
        "stream": True,
        "max_tokens": 4000,
        "logit_bias": {END_OF_TURN: -100},
    }
    with (
        running_server(tmp_path / "data", **brief) as server,
        httpx.Client(base_url=server.base_url, timeout=EMBEDDED_S, trust_env=False) as client,
    ):
        with client.stream("POST", CHAT_PATH, json=body) as response:
            received = response.iter_lines()
            next(received)
            children = [use.pid for use in family(server.process.pid)][1:]
            assert children
            server.process.send_signal(ending)
            if ending is signal.SIGTERM:
                lines = [line for line in received if line]
                assert lines[-1] == "data: [DONE]"
                last = json.loads(lines[-2][6:])
                assert last["error"]["type"] == "server_error", last
        status = server.process.wait(timeout=STOP_S)
    assert status == (0 if ending is signal.SIGTERM else -signal.SIGKILL)
    # The kernel tells them; it may take them a moment to go.
    deadline = time.monotonic() + STOP_S
    while any(map(is_alive, children)):
        assert time.monotonic() < deadline, "a child outlives its server"
        time.sleep(0.05)
