"""Servers that the operator named: what is sent to them goes there, and nowhere else.

The language model's has a test of its own, in `test_llm_openai_compatible.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from privategpt import backends
from privategpt.backends.embedding.openai_compatible import connect_openai_compatible
from privategpt.backends.reranking.openai_compatible import connect_openai_compatible_reranker
from privategpt.backends.vectors.server import open_server_index
from privategpt.backends.websearch.searxng import SearxngSearch
from privategpt.domain.errors import Unavailable
from tests.fakes.websearch import loopback_server, raw, reply

Ask: TypeAlias = Callable[[str], Awaitable[object]]


async def embed(url: str) -> None:
    await connect_openai_compatible(base_url=f"{url}/v1", api_key="mine", model="words")


async def rerank(url: str) -> None:
    reranker = connect_openai_compatible_reranker(
        base_url=f"{url}/v1", api_key="mine", model="words"
    )
    try:
        await reranker.score("ducks", ["pond"])
    finally:
        await reranker.close()


async def search(url: str) -> None:
    engine = SearxngSearch(url=url)
    try:
        await engine.search("ducks", limit=1)
    finally:
        await engine.close()


async def open_index(url: str) -> None:
    await open_server_index(
        url, collection="c", dimensions=4, candidates=9, timeout_s=5, prefer_grpc=False
    )


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of somebody who has a proxy, and an account at OpenAI."""
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")


@pytest.mark.parametrize("ask", [embed, rerank, search, open_index])
async def test_one_on_this_machine_is_asked_without_the_environments_proxy_and_account(
    ask: Ask,
) -> None:
    async with loopback_server(reply(b"{}", status="400 Bad Request")) as server:
        with suppress(Unavailable):
            await ask(server.url)
    assert server.requests
    assert "of-the-environment" not in str([request.headers for request in server.requests])


@pytest.mark.parametrize("ask", [embed, rerank, search])
async def test_one_that_redirects_is_not_followed(ask: Ask) -> None:
    async with loopback_server(reply(b"{}")) as elsewhere:
        moved = (
            f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere.url}/\r\nContent-Length: 0\r\n\r\n"
        ).encode()
        async with loopback_server(raw(moved)) as server:
            with pytest.raises(Unavailable):
                await ask(server.url)
    assert server.requests
    assert elsewhere.requests == []


def test_openais_client_is_made_in_one_place() -> None:
    folder = Path(backends.__path__[0])
    makers = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("AsyncOpenAI")
    }
    assert makers == {"openai_client.py"}
