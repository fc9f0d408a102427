"""HEAD, addresses that are nearly right, and what other servers serve and this one does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from privategpt.api.head import HeadRequests
from privategpt.api.scopes import SCOPES

READ_BY_GET = [
    path
    for method, _, path in (route.partition(" ") for route in SCOPES)
    if method == "GET" and "{" not in path
]


@pytest.mark.parametrize("path", READ_BY_GET)
async def test_head_has_the_status_and_headers_of_get_and_no_body(
    client: httpx.AsyncClient, path: str
) -> None:
    got, asked = await client.get(path), await client.head(path)
    assert asked.status_code == got.status_code
    assert asked.headers["content-type"] == got.headers["content-type"]
    assert asked.content == b""


async def test_head_of_what_is_posted_to_is_refused_with_the_methods_it_takes(
    client: httpx.AsyncClient,
) -> None:
    refused = await client.head("/v1/chat/completions")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert (await client.post("/v1/models")).headers["allow"] == "GET, HEAD"


async def test_head_of_a_stream_ends_with_its_headers() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[bytes]:
        try:
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(endless())(scope, receive, send)

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    scope: Scope = {"type": "http", "method": "HEAD", "path": "/", "headers": [], "asgi": {}}
    async with asyncio.timeout(10):
        await HeadRequests(app)(scope, receive, send)
        await ended.wait()
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[1]["body"] == b""


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("/v1//chat/completions", "/v1/chat/completions"),
        ("//v1/embeddings", "/v1/embeddings"),
        ("/api/v1/models", "/v1/models"),
        ("/openai/v1/completions", "/v1/completions"),
        ("/v2/rerank", "/v1/rerank"),
        ("/health/", "/health"),
        ("/v1/ingest/doc-1/", "/v1/ingest/{doc_id}"),
        ("/ingest/jobs/job-1", "/v1/ingest/jobs/{job_id}"),
        ("/models/org/some-model", "/v1/models/{model_id}"),
    ],
)
async def test_an_address_that_is_nearly_right_is_told_the_right_one(
    client: httpx.AsyncClient, path: str, meant: str
) -> None:
    response = await client.post(path, json={})
    assert response.status_code == 404
    message = response.json()["error"]["message"]
    assert message == f"There is no such route; did you mean {meant}? GET /openapi.json lists all"


async def test_the_list_of_models_with_a_slash_is_no_model(client: httpx.AsyncClient) -> None:
    error = (await client.get("/v1/models/")).json()["error"]
    assert error["code"] == "not_found"
    assert "did you mean /v1/models?" in error["message"]


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("/v1/responses", "/v1/chat/completions"),
        ("/v1/responses/resp_1/cancel", "/v1/chat/completions"),
        ("/v1/files", "/v1/ingest"),
        ("/v1/vector_stores/vs_1/search", "/v1/chunks"),
        ("/api/tags", "/v1"),
    ],
)
async def test_what_is_not_served_is_told_with_what_there_is_instead(
    client: httpx.AsyncClient, path: str, instead: str
) -> None:
    error = (await client.post(path, json={})).json()["error"]
    assert error["code"] == "not_found"
    assert instead in error["message"]


async def test_an_address_like_no_other_is_not_repeated(client: httpx.AsyncClient) -> None:
    response = await client.get("/some/secret/words")
    assert response.status_code == 404
    assert "secret" not in response.text
