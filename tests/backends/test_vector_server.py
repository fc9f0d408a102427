"""The server's vector index: its collection, and every way a server can fail to answer."""

from __future__ import annotations

import asyncio
import socket
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import grpc
import pytest
from qdrant_client import AsyncQdrantClient, models

from privategpt.backends.vectors.points import DENSE
from privategpt.backends.vectors.server import ServerIndex, open_server_index
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.documents import Chunk
from privategpt.domain.errors import (
    EmbeddingModelChanged,
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    Unavailable,
)
from privategpt.domain.library import IndexedChunk, VectorQuery

pytestmark = pytest.mark.filterwarnings(
    "ignore:Payload indexes have no effect in the local", "ignore:Api key is used with an insecure"
)

QUERY = VectorQuery(text="x", vector=array("f", [1.0] * 4), tenant="alpha", limit=3)

Answer: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def index_of(
    client: AsyncQdrantClient, *, dimensions: int = 4, timeout_s: float = 5
) -> ServerIndex:
    return ServerIndex(
        client=client,
        words=WordEncoder(),
        collection="privategpt",
        dimensions=dimensions,
        candidates=10,
        timeout_s=timeout_s,
    )


async def test_a_collection_of_other_dimensions_is_refused_and_can_be_replaced() -> None:
    client = AsyncQdrantClient(location=":memory:")
    await index_of(client).prepare()
    await index_of(client).prepare()
    with pytest.raises(EmbeddingModelChanged) as refused:
        await index_of(client, dimensions=8).prepare()
    for part in ("4", "8", "reindex"):
        assert part in refused.value.message
    await index_of(client, dimensions=8).prepare(replace=True)
    await index_of(client, dimensions=8).prepare()
    await client.close()


async def test_a_foreign_collection_without_our_vectors_is_refused() -> None:
    client = AsyncQdrantClient(location=":memory:")
    plain = models.VectorParams(size=4, distance=models.Distance.COSINE)
    await client.create_collection("privategpt", vectors_config=plain)
    with pytest.raises(EmbeddingModelChanged):
        await index_of(client).prepare()
    await client.close()


async def test_a_collection_whose_words_were_weighed_otherwise_is_refused_with_the_remedy() -> None:
    client = AsyncQdrantClient(location=":memory:")
    dense = models.VectorParams(size=4, distance=models.Distance.COSINE)
    words = models.SparseVectorParams(modifier=models.Modifier.IDF)
    await client.create_collection(
        "privategpt", vectors_config={DENSE: dense}, sparse_vectors_config={"words": words}
    )
    with pytest.raises(EmbeddingModelChanged) as refused:
        await index_of(client).prepare()
    for part in ("words", "reindex"):
        assert part in refused.value.message
    await index_of(client).prepare(replace=True)
    await index_of(client).prepare()
    await client.close()


async def test_a_collection_that_vanished_fails_the_check() -> None:
    client = AsyncQdrantClient(location=":memory:")
    index = index_of(client)
    await index.prepare()
    await index.check()
    await client.delete_collection("privategpt")
    with pytest.raises(EngineFailed, match="not there"):
        await index.check()
    await client.close()


@asynccontextmanager
async def server_that(answer: Answer) -> AsyncGenerator[str]:
    """A loopback server; its address."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()


def http(status: str, body: bytes, *headers: str) -> Answer:
    """Answers every request alike."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        writer.close()

    return answer


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()


async def failures(url: str, *, timeout_s: float = 5) -> list[Unavailable]:
    """What opening, searching, writing, deleting and checking raise over HTTP."""
    client = AsyncQdrantClient(url=url, check_compatibility=False)
    index = index_of(client, timeout_s=timeout_s)
    chunk = Chunk(chunk_id="c", doc_id="d", position=0, start=0, end=1, text="x")
    point = IndexedChunk(chunk=chunk, tenant="alpha", file_id="f", vector=QUERY.vector)
    raised: list[Unavailable] = []
    for call in (
        index.prepare(),
        index.prepare(replace=True),
        index.search(QUERY),
        index.upsert([point]),
        index.count("f"),
        index.delete_file("f"),
        index.delete_document("d"),
        index.chunk_counts(),
        index.check(),
    ):
        with pytest.raises(Unavailable) as error:
            await call
        raised.append(error.value)
    await index.close()
    return raised


def kinds(raised: list[Unavailable]) -> set[type[Unavailable]]:
    return {type(error) for error in raised}


async def test_a_refused_connection_is_unavailable() -> None:
    assert kinds(await failures(f"http://127.0.0.1:{free_port()}")) == {EngineUnavailable}


async def test_a_server_that_hangs_up_is_unavailable() -> None:
    async with server_that(hang_up) as url:
        assert kinds(await failures(url)) == {EngineUnavailable}


async def test_a_silent_server_times_out() -> None:
    async with server_that(silence) as url:
        assert kinds(await failures(url, timeout_s=0.05)) == {EngineTimedOut}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        ("500 Internal Server Error", b'{"status":{"error":"disk full"}}', EngineFailed),
        ("401 Unauthorized", b"Invalid API key", EngineFailed),
        ("503 Service Unavailable", b"", EngineUnavailable),
        ("429 Too Many Requests", b"{}", EngineUnavailable),
        ("502 Bad Gateway", b"<html>", EngineUnavailable),
        ("200 OK", b"<html>welcome</html>", EngineFailed),
        ("200 OK", b"", EngineFailed),
    ],
)
async def test_every_answer_that_is_none_is_told_apart(
    status: str, body: bytes, expected: type[Unavailable]
) -> None:
    async with server_that(http(status, body, "Content-Type: application/json")) as url:
        raised = await failures(url)
    assert kinds(raised) == {expected}
    assert not any("disk full" in error.message or url in error.message for error in raised)


async def test_a_nonsensical_retry_after_is_a_failure() -> None:
    async with server_that(http("429 Too Many Requests", b"{}", "Retry-After: soon")) as url:
        assert kinds(await failures(url)) == {EngineFailed}


async def test_an_overloaded_server_says_when_to_come_back() -> None:
    answer = http("429 Too Many Requests", b"{}", "Retry-After: 7")
    async with server_that(answer) as url:
        raised = await failures(url)
    assert kinds(raised) == {EngineUnavailable}
    assert {error.retry_after_s for error in raised} == {7}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def grpc_failure(code: grpc.StatusCode | None, *, timeout_s: float = 5) -> Unavailable:
    """What a search over gRPC raises where the server aborts with `code` (None: never answers)."""

    async def answer(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        if code is None:
            await asyncio.Event().wait()
        await context.abort(code or grpc.StatusCode.OK, "a secret reason")
        return b""

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(answer)
    handlers = grpc.method_handlers_generic_handler("qdrant.Points", {"QueryBatch": handler})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    client = AsyncQdrantClient(
        url="http://127.0.0.1:1", grpc_port=port, prefer_grpc=True, check_compatibility=False
    )
    index = index_of(client, timeout_s=timeout_s)
    try:
        with pytest.raises(Unavailable) as raised:
            await index.search(QUERY)
    finally:
        await index.close()
        await server.stop(grace=None)
    return raised.value


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.UNAVAILABLE, EngineUnavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, EngineTimedOut),
        (grpc.StatusCode.INTERNAL, EngineFailed),
        (grpc.StatusCode.UNAUTHENTICATED, EngineFailed),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, EngineUnavailable),
    ],
)
async def test_every_grpc_status_is_told_apart(
    code: grpc.StatusCode, expected: type[Unavailable]
) -> None:
    error = await grpc_failure(code)
    assert type(error) is expected
    assert "secret" not in error.message


async def test_a_silent_grpc_server_times_out() -> None:
    assert type(await grpc_failure(None, timeout_s=0.1)) is EngineTimedOut


@pytest.mark.parametrize("prefer_grpc", [True, False])
async def test_opening_a_server_that_is_not_there_is_unavailable(prefer_grpc: bool) -> None:
    with pytest.raises(EngineUnavailable):
        await open_server_index(
            f"http://127.0.0.1:{free_port()}",
            collection="privategpt",
            dimensions=4,
            candidates=10,
            timeout_s=5,
            api_key="key",
            prefer_grpc=prefer_grpc,
        )
