"""Bad input gets a clear error and nothing is lost: the table, row by row, against a process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import httpx
import pytest

from tests.e2e.bad_input import BOMBS, FAMILIES, HI, ROWS, Row
from tests.e2e.stacks import Stack, ours, plain, stack
from tests.fakes.llm_server import CHAT, ScriptedServer, answer
from tests.fakes.parser_files import docx, lines, pdf_of_pages, word_paragraph

FALLS_SHORT = (AssertionError, httpx.HTTPError, TimeoutError, IndexError)
"""What a row raises where a server does not keep to it; IndexError: it hung up without a word."""


@pytest.fixture(scope="module")
async def engine() -> AsyncGenerator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server.on(CHAT, answer("Hello"))


@pytest.fixture(scope="module")
async def our_server(
    engine: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Stack]:
    async with stack(ours, tmp_path_factory.mktemp("ours") / "data", engine) as running:
        yield running


@pytest.fixture(scope="module")
async def plain_server(
    engine: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Stack]:
    async with stack(plain, tmp_path_factory.mktemp("plain") / "data", engine) as running:
        yield running


@pytest.mark.parametrize("row", [*ROWS.values(), *BOMBS.values(), *FAMILIES.values()])
async def test_a_row_of_the_table_holds(row: Row, our_server: Stack) -> None:
    await row(our_server)


@pytest.mark.parametrize("row", ROWS.values())
async def test_a_plain_server_falls_short_of_the_row(row: Row, plain_server: Stack) -> None:
    with pytest.raises(FALLS_SHORT):
        await row(plain_server)


@pytest.mark.parametrize("row", BOMBS.values())
async def test_a_plain_server_does_not_defuse_the_bomb(
    row: Row, engine: ScriptedServer, tmp_path: Path
) -> None:
    # In a process of its own, which may still be busy with it when the answer has come.
    async with stack(plain, tmp_path / "data", engine) as running:
        with pytest.raises(FALLS_SHORT):
            await row(running)


@pytest.fixture(params=["our_server", "plain_server"])
def running(request: pytest.FixtureRequest) -> Stack:
    # Not within the test: there the loop that an asynchronous fixture needs is already running.
    return cast("Stack", request.getfixturevalue(request.param))


async def test_what_is_in_order_is_taken_by_both(running: Stack) -> None:
    running.engine.on(CHAT, answer("Hello"))
    async with running.client() as client:
        for name, data in (
            ("fine.txt", b"A text."),
            ("fine.pdf", pdf_of_pages([lines("A page of text.")])),
            ("fine.docx", docx(word_paragraph("A paragraph."))),
        ):
            ingested = await client.post("/v1/ingest", files={"file": (name, data)})
            assert ingested.status_code == 200, ingested.text
            assert ingested.json()["data"][0]["doc_metadata"]["file_name"] == name
        for body in ({"messages": HI}, {"messages": HI, "stream": True}):
            answered = await client.post("/v1/chat/completions", json=body)
            assert answered.status_code == 200
            assert "Hello" in answered.text
        searched = await client.post("/v1/chunks", json={"text": "text", "limit": 3})
        assert searched.json()["data"]
