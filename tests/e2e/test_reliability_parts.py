"""The other parts go wrong under a running server: the vector database, the web's search engine,
the disk. What could not look is told, nothing is lost, and nobody has to restart anything.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.bad_input import CHAT_PATH, HI, LEAVING_S
from tests.e2e.stacks import Stack, ours, stack
from tests.fakes.fault_proxy import HEALTHY, Fault, FaultProxy, Then
from tests.fakes.llm_server import CHAT, ScriptedServer, answer
from tests.fakes.qdrant_server import QdrantServer
from tests.fakes.websearch import LISBON, LoopbackServer, loopback_server, reply, silence

ASKED = {"messages": [{"role": "user", "content": "How tall is the tower?"}], "use_context": True}
SEARCHED = {"messages": HI, "web_search": True}
TEXT = {"file_name": "tower", "text": "The tower is 92 metres tall."}
OTHER = {"file_name": "bridge", "text": "The bridge is 31 metres long."}
RESULTS = [{"url": one.url, "title": one.title, "content": one.text} for one in LISBON]
FOUND = reply({"results": RESULTS})
FULL: dict[str, tuple[int, int]] = {"for uploads": (30_000, 1_500), "for the state": (4_096, 20)}
"""How many bytes a file may grow to, and how many lines are sent."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A server, with what stands between it and its vector database, and its search engine."""

    server: Stack
    vectors: FaultProxy
    web: LoopbackServer

    async def ask(self, body: dict[str, Any], *, stream: bool = False) -> httpx.Response:
        """One question on a connection of its own."""
        async with self.server.client() as client:
            return await client.post(CHAT_PATH, json={**body, "stream": stream})

    async def get(self, path: str) -> httpx.Response:
        """What is there."""
        async with self.server.client() as client:
            return await client.get(path)

    async def ingest(self, text: dict[str, str]) -> httpx.Response:
        """A text; one that is there already costs nothing."""
        async with self.server.client() as client:
            return await client.post("/v1/ingest/text", json=text)


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Parts]:
    folder = tmp_path_factory.mktemp("parts") / "data"
    async with (
        ScriptedServer() as engine,
        loopback_server(QdrantServer().answer) as qdrant,
        FaultProxy(urlsplit(qdrant.url).port or 0) as vectors,
        loopback_server(FOUND) as web,
    ):
        engine.on(CHAT, answer("It is 92 metres tall [1]."))
        environ = {
            "PRIVATEGPT_VECTORS__MODE": "server",
            "PRIVATEGPT_VECTORS__URL": f"http://127.0.0.1:{vectors.port}",
            "PRIVATEGPT_VECTORS__PREFER_GRPC": "false",
            "PRIVATEGPT_VECTORS__TIMEOUT_S": "1",
            "PRIVATEGPT_WEB_SEARCH__PROVIDER": "searxng",
            "PRIVATEGPT_WEB_SEARCH__SEARXNG__URL": web.url,
            "PRIVATEGPT_WEB_SEARCH__DEADLINE_S": "1",
        }
        async with stack(ours, folder, engine, **environ) as server:
            yield Parts(server, vectors, web)


@pytest.fixture
async def parts(running: Parts) -> AsyncGenerator[Parts]:
    """The text is there before, and it is answered from again afterwards, without a restart."""
    stored = await running.ingest(TEXT)
    assert stored.status_code == 200, stored.text
    yield running
    reply = await running.ask(ASKED)
    assert reply.status_code == 200, reply.text
    chosen = reply.json()["choices"][0]
    assert [source["text"] for source in chosen["sources"]] == [TEXT["text"]]
    assert (await running.get("/health/ready")).status_code == 200


async def _down(vectors: FaultProxy) -> None:
    await vectors.refuse()


async def _silent(vectors: FaultProxy) -> None:
    await _spoil(vectors, Fault(after=0, then=Then.HANG))


async def _lost(vectors: FaultProxy) -> None:
    await _spoil(vectors, Fault(after=0, then=Then.RESET))


async def _cut(vectors: FaultProxy) -> None:
    await _spoil(vectors, Fault(after=40))


async def _spoil(vectors: FaultProxy, fault: Fault) -> None:
    vectors.fault = fault
    await vectors.drop()


async def _mend(vectors: FaultProxy) -> None:
    await vectors.refuse()
    vectors.fault = HEALTHY
    await vectors.listen()


@pytest.mark.parametrize("go_wrong", [_down, _silent, _lost, _cut])
async def test_a_vector_database_that_is_gone_is_told_and_got_over(
    go_wrong: Any, parts: Parts
) -> None:
    before = (await parts.get("/v1/ingest/list")).json()["data"]
    engine = parts.server.engine
    await go_wrong(parts.vectors)
    try:
        engine.requests.clear()
        for reply in (await parts.ask(ASKED), await parts.ask(ASKED, stream=True)):
            _not_now(reply)
        assert engine.received() == [], "the model was asked although nothing could be looked up"
        _not_now(await parts.ingest(OTHER))
        assert (await parts.get("/health")).status_code == 200
        ready = await parts.get("/health/ready")
        assert ready.status_code == 503
        told = {name for name, outcome in ready.json()["checks"].items() if outcome != "ok"}
        assert told == {"vectors"}
        assert (await parts.ask({"messages": HI})).status_code == 200
    finally:
        await _mend(parts.vectors)
    assert (await parts.get("/v1/ingest/list")).json()["data"] == before


def _not_now(reply: httpx.Response) -> None:
    assert reply.status_code in (502, 503, 504), reply.text
    assert int(reply.headers["retry-after"]) > 0
    assert reply.json()["error"]["code"] in ("upstream_error", "upstream_timeout")


@pytest.mark.parametrize("answer_of", [silence(), reply(b"<html>", media_type="text/html")])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_search_engine_that_does_not_answer_is_no_source(
    answer_of: Any, stream: bool, parts: Parts
) -> None:
    parts.web.answer = answer_of
    try:
        without = await parts.ask(SEARCHED, stream=stream)
    finally:
        parts.web.answer = FOUND
    assert without.status_code == 200, without.text
    assert LISBON[0].url not in without.text
    assert '"url_citation"' not in without.text
    assert '"grounded":true' not in without.text
    assert not _was_read(LISBON[0].text, parts.server.engine)
    assert (await parts.ask(SEARCHED, stream=stream)).status_code == 200
    assert _was_read(LISBON[0].text, parts.server.engine)


def _was_read(text: str, engine: ScriptedServer) -> bool:
    """Whether the model's last prompt had it."""
    return text in json.dumps(engine.received()[-1].body, ensure_ascii=False)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_in_a_search_of_the_web_ends_the_search(
    stream: bool, parts: Parts
) -> None:
    parts.web.answer = silence()
    parts.web.asked.clear()
    parts.web.departures.clear()
    parts.server.engine.requests.clear()
    try:
        writer = await _ask_and_do_not_read(parts.server, {**SEARCHED, "stream": stream})
        await parts.web.asked.wait()
        writer.close()
        async with asyncio.timeout(LEAVING_S):
            await parts.web.departures.wait()
    finally:
        parts.web.answer = FOUND
    assert parts.server.engine.received() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_in_the_retrieval_ends_it(stream: bool, parts: Parts) -> None:
    """The database takes the question and says nothing; with the client its connection goes."""
    parts.server.engine.requests.clear()
    async with loopback_server(silence()) as silent, _behind(parts.vectors, silent):
        writer = await _ask_and_do_not_read(parts.server, {**ASKED, "stream": stream})
        await silent.asked.wait()
        writer.close()
        async with asyncio.timeout(LEAVING_S):
            await silent.departures.wait()
    assert parts.server.engine.received() == []


@asynccontextmanager
async def _behind(vectors: FaultProxy, other: LoopbackServer) -> AsyncGenerator[None]:
    """Let the server's questions to its vector database go to `other` for a while."""
    real, vectors.upstream = vectors.upstream, urlsplit(other.url).port or 0
    await vectors.drop()
    try:
        yield
    finally:
        vectors.upstream = real
        await vectors.drop()


async def _ask_and_do_not_read(server: Stack, asked: dict[str, Any]) -> asyncio.StreamWriter:
    body = json.dumps(asked).encode()
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return writer


@pytest.mark.parametrize("where", FULL)
async def test_a_full_disk_is_told_nothing_is_lost_and_the_same_upload_works_later(
    where: str, parts: Parts
) -> None:
    limit, lines = FULL[where]
    upload = {"file": (f"{where}.txt", b"A line of a file.\n" * lines)}
    before = (await parts.get("/v1/ingest/list")).json()["data"]
    async with parts.server.client() as client:
        with _files_up_to(limit, parts.server.process.pid):
            refused = await client.post("/v1/ingest", files=upload)
            assert refused.status_code == 503, refused.text
            assert "/" not in refused.json()["error"]["message"], "a path is told"
            assert (await parts.get("/health")).status_code == 200
            assert (await parts.ask({"messages": HI})).status_code == 200
            assert (await parts.get("/v1/ingest/list")).json()["data"] == before
        stored = await client.post("/v1/ingest", files=upload)
        assert stored.status_code == 200, stored.text
        doc_id = stored.json()["data"][0]["doc_id"]
        assert (await client.delete(f"/v1/ingest/{doc_id}")).status_code == 200


@contextmanager
def _files_up_to(size_bytes: int, pid: int) -> Generator[None]:
    """To a process a disk is as full as its files may not grow."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
