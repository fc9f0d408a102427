"""The rows of the table that end, kill or start processes; a plain server fails each of them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from tests.e2e.bad_input import CHAT_PATH, HI, files_below
from tests.e2e.processes import family, is_alive
from tests.e2e.stacks import Launch, Stack, ours, plain, stack
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.llm_server import CHAT, ScriptedServer, answer, sse, text_chunk

Row: TypeAlias = Callable[[Launch, Path, ScriptedServer], Awaitable[None]]

PAGES = 1500
STOP_S = 12.0


@pytest.fixture
async def engine() -> AsyncGenerator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server.on(CHAT, answer("Hello"))


async def a_stop_with_a_stream_open(launch: Launch, folder: Path, engine: ScriptedServer) -> None:
    """The grace, an error within the stream, status 0, and nothing left behind."""
    engine.on(CHAT, sse(text_chunk("One")).held_at(2, asyncio.Event()))
    async with stack(launch, folder, engine) as running, running.client() as client:
        children = [use.pid for use in family(running.process.pid)]
        body = {"messages": HI, "stream": True}
        async with client.stream("POST", CHAT_PATH, json=body) as response:
            received = response.aiter_lines()
            await anext(received)
            running.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(STOP_S):
                lines = [line async for line in received if line]
        assert lines[-1] == "data: [DONE]"
        assert json.loads(lines[-2][6:])["error"]["code"] == "upstream_error"
        assert not any('"finish_reason":"stop"' in line for line in lines)
        assert await _ended(running) == 0
        assert not any(map(is_alive, children))


async def a_kill_in_the_middle_of_an_ingest(
    launch: Launch, folder: Path, engine: ScriptedServer
) -> None:
    """Nothing is visible after it, the folder is not locked, and the same upload works."""
    pages = "\f".join(f"Page {number} tells of {number * 7} things." for number in range(PAGES))
    upload = {"file": ("book.txt", pages.encode())}
    async with stack(launch, folder, engine) as running, running.client() as client:
        before = _sizes(folder)
        sending = asyncio.create_task(client.post("/v1/ingest", files=upload))
        async with asyncio.timeout(STOP_S):
            while _sizes(folder) == before:  # noqa: ASYNC110 - the disk tells nobody
                await asyncio.sleep(0.01)
        running.process.kill()
        with pytest.raises(httpx.TransportError):
            await sending
    async with stack(launch, folder, engine) as running, running.client() as client:
        assert (await client.get("/v1/ingest/list")).json()["data"] == []
        again = await client.post("/v1/ingest", files=upload)
        assert again.status_code == 200, again.text
        assert len((await client.get("/v1/ingest/list")).json()["data"]) == len(
            again.json()["data"]
        )


async def a_key_that_is_no_ascii(launch: Launch, folder: Path, engine: ScriptedServer) -> None:
    if launch is ours:
        command = [sys.executable, "-m", "privategpt", "keys", "create", "--data-dir", str(folder)]
        await asyncio.to_thread(
            subprocess.run, command, check=True, capture_output=True, timeout=60
        )
    async with stack(launch, folder, engine, PLAIN_API_KEY="a-key") as running:
        for given in ("Bearer é", "Bearer \u00ff", "é", "Bearer", "Basic é"):
            async with running.client() as client:
                response = await client.post(
                    CHAT_PATH,
                    json={"messages": HI},
                    headers={b"Authorization": given.encode("latin-1")},
                )
            assert response.status_code == 401, response.text


async def another_embedding_model(launch: Launch, folder: Path, engine: ScriptedServer) -> None:
    """Refused at the start, by the names of both and of the command that helps."""
    async with EmbeddingServer() as vectors:
        first = {
            "PRIVATEGPT_EMBEDDING__MODE": "openai",
            "PRIVATEGPT_EMBEDDING__BASE_URL": vectors.url,
            "PRIVATEGPT_EMBEDDING__MODEL": "model-one",
        }
        async with stack(launch, folder, engine, **first) as running, running.client() as client:
            text = {"file_name": "a", "text": "A text that is kept."}
            assert (await client.post("/v1/ingest/text", json=text)).status_code == 200
        second = first | {"PRIVATEGPT_EMBEDDING__MODEL": "model-two"}
        with pytest.raises(AssertionError, match="did not start"):
            async with stack(launch, folder, engine, **second):
                pass
    log = (folder.parent / f"{folder.name}.log").read_text()
    for word in ("model-one", "model-two", "privategpt reindex"):
        assert word in log
    assert "Traceback" not in log


async def a_second_process_on_the_folder(
    launch: Launch, folder: Path, engine: ScriptedServer
) -> None:
    async with stack(launch, folder, engine) as running:
        with pytest.raises(AssertionError, match="did not start"):
            async with stack(launch, folder, engine):
                pass
        log = (folder.parent / f"{folder.name}.log").read_text()
        assert str(folder) in log
        assert "Traceback" not in log
        async with running.client() as client:
            assert (await client.get("/health")).status_code == 200


def _sizes(folder: Path) -> dict[Path, int]:
    """What is stored, without the file that is on its way in."""
    return {
        path: path.stat().st_size for path in files_below(folder) if "uploads" not in path.parts
    }


async def _ended(running: Stack) -> int:
    return await asyncio.to_thread(running.process.wait, STOP_S)


ROWS: dict[str, Row] = {
    row.__name__: row
    for row in (
        a_stop_with_a_stream_open,
        a_kill_in_the_middle_of_an_ingest,
        a_key_that_is_no_ascii,
        another_embedding_model,
        a_second_process_on_the_folder,
    )
}


@pytest.mark.parametrize("row", ROWS.values())
async def test_a_row_of_the_table_holds(row: Row, engine: ScriptedServer, tmp_path: Path) -> None:
    await row(ours, tmp_path / "data", engine)


@pytest.mark.parametrize("row", ROWS.values())
async def test_a_plain_server_falls_short_of_the_row(
    row: Row, engine: ScriptedServer, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, TimeoutError, httpx.HTTPError, pytest.fail.Exception)):
        await row(plain, tmp_path / "data", engine)
