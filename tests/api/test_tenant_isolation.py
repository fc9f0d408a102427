"""One tenant and another's ids, over the real state store and vector index.

Every operation against every id of the other tenant answers, byte for byte, as for an id that
never was, and changes nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from privategpt.api.scopes import SCOPES, routes_of
from privategpt.domain.conversation import GenerationRequest
from privategpt.services.limits import Limits, TenantLimits
from tests.fakes.edge import Edge
from tests.fakes.language_model import Script
from tests.fakes.tenants import SharedServer, shared_server

SECRET = "The launch code of the submarine is nine four seven."
QUESTION = "What is the launch code of the submarine?"
UNKNOWN = "00000000-0000-4000-8000-000000000000"

REPLY_ID = re.compile(r"(?:chatcmpl-|cmpl-|msg_|req_)[0-9a-f-]{32,36}")

Request: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """A request that carries an id, and the route it goes to."""

    name: str
    route: str
    request: Callable[[str], Request]


def get(name: str, route: str, url: str, **params: int | str) -> Operation:
    return Operation(
        name,
        route,
        lambda item_id: {
            "method": route.split(" ", maxsplit=1)[0],
            "url": url.format(id=item_id),
            "params": {key: str(value).format(id=item_id) for key, value in params.items()},
        },
    )


def post(name: str, path: str, body: Callable[[str], Any]) -> Operation:
    return Operation(
        name,
        f"POST {path}",
        lambda item_id: {"method": "POST", "url": path, "json": body(item_id)},
    )


def chat(item_id: str, **more: Any) -> Any:
    return {
        "messages": [{"role": "user", "content": QUESTION}],
        "use_context": True,
        "context_filter": {"docs_ids": [item_id]},
        **more,
    }


def message(item_id: str, **more: Any) -> Any:
    return chat(item_id, model="private-gpt", max_tokens=50, **more)


OPERATIONS = [
    get("read a document", "GET /v1/documents/{doc_id}", "/v1/documents/{id}"),
    get("read a range", "GET /v1/documents/{doc_id}", "/v1/documents/{id}", start=4, end=9),
    get("read beyond the end", "GET /v1/documents/{doc_id}", "/v1/documents/{id}", start=10**6),
    get("list behind", "GET /v1/ingest/list", "/v1/ingest/list", after="{id}"),
    get("list one behind", "GET /v1/ingest/list", "/v1/ingest/list", after="{id}", limit=1),
    get("look at a job", "GET /v1/ingest/jobs/{job_id}", "/v1/ingest/jobs/{id}"),
    get("follow a job", "GET /v1/ingest/jobs/{job_id}/events", "/v1/ingest/jobs/{id}/events"),
    get("list jobs behind", "GET /v1/ingest/jobs", "/v1/ingest/jobs", after="{id}"),
    get("cancel a job", "POST /v1/ingest/jobs/{job_id}/cancel", "/v1/ingest/jobs/{id}/cancel"),
    get("delete", "DELETE /v1/ingest/{doc_id}", "/v1/ingest/{id}"),
    post(
        "search in",
        "/v1/chunks",
        lambda item_id: {"text": QUESTION, "context_filter": {"docs_ids": [item_id]}},
    ),
    post(
        "search in, with neighbours",
        "/v1/chunks",
        lambda item_id: {
            "text": QUESTION,
            "context_filter": {"docs_ids": [item_id]},
            "limit": 100,
            "prev_next_chunks": 10,
        },
    ),
    post(
        "search by metadata",
        "/v1/chunks",
        lambda item_id: {"text": QUESTION, "context_filter": {"metadata": {"file_id": item_id}}},
    ),
    post("ask of", "/v1/chat/completions", chat),
    post("ask of, streamed", "/v1/chat/completions", lambda i: chat(i, stream=True)),
    post("ask of alone", "/v1/chat/completions", lambda i: chat(i, context_only=True)),
    post(
        "complete from",
        "/v1/completions",
        lambda item_id: {
            "prompt": QUESTION,
            "use_context": True,
            "context_filter": {"docs_ids": [item_id]},
        },
    ),
    post("ask of, as Anthropic's", "/v1/messages", message),
    post("ask of, as Anthropic's, streamed", "/v1/messages", lambda i: message(i, stream=True)),
    post("count tokens of", "/v1/messages/count_tokens", message),
]

NO_ID_OF_A_TENANT = {
    "POST /v1/ingest",  # own tests below: names and contents
    "POST /v1/ingest/file",
    "POST /v1/ingest/text",
    "POST /v1/embeddings",
    "POST /v1/rerank",
    "GET /v1/models",
    "GET /v1/models/{model_id:path}",
    "GET /v1/usage/searches",  # own test below
}


def test_the_matrix_has_every_operation() -> None:
    tried = {operation.route for operation in OPERATIONS}
    served = {route for route in routes_of(Edge().app().routes) if " /v1/" in route}
    assert served - tried - NO_ID_OF_A_TENANT == set()
    assert tried | NO_ID_OF_A_TENANT <= set(SCOPES)


@dataclass(frozen=True, slots=True)
class Tenants:
    """Ann has documents; Bob looks for them."""

    server: SharedServer
    ann: httpx.AsyncClient
    bob: httpx.AsyncClient
    ids: Mapping[str, str]

    async def anns(self) -> list[bytes]:
        """All that Ann can see of her own."""
        found = [(await self.ann.get("/v1/ingest/list")).content]
        found += [(await self.ann.get("/v1/ingest/jobs")).content]
        found += [
            (await self.ann.get(f"/v1/documents/{doc_id}")).content
            for name, doc_id in self.ids.items()
            if name.startswith("document")
        ]
        search = {"text": QUESTION, "limit": 100, "prev_next_chunks": 2}
        return [*found, (await self.ann.post("/v1/chunks", json=search)).content]


@pytest.fixture
async def tenants(tmp_path: Path) -> AsyncGenerator[Tenants]:
    async with shared_server(tmp_path) as server:
        ann, bob = await server.client("ann"), await server.client("bob")
        async with ann, bob:
            documents = await ingested(ann, "secret.txt", f"{SECRET}\f{SECRET} Again.")
            await ingested(bob, "own.txt", "The cafeteria of the submarine opens at noon.")
            found = await server.retrieval.search(QUESTION, tenant="ann", limit=1)
            job = await ann.post(
                "/v1/ingest?background=true", files={"file": ("job.txt", SECRET.encode())}
            )
            job_id = job.json()["job_id"]
            await ann.get(f"/v1/ingest/jobs/{job_id}/events")
            ids = {
                "job": job_id,
                "file": documents[0]["doc_metadata"]["file_id"],
                "document 1": documents[0]["doc_id"],
                "document 2": documents[1]["doc_id"],
                "chunk": found.chunks[0].chunk.chunk_id,
            }
            yield Tenants(server, ann, bob, ids)


async def ingested(client: httpx.AsyncClient, name: str, text: str, **more: Any) -> Any:
    reply = await client.post("/v1/ingest/text", json={"file_name": name, "text": text, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]


def without_what_always_differs(reply: httpx.Response) -> tuple[int, list[tuple[str, str]], str]:
    headers = [
        (name, value)
        for name, value in reply.headers.items()
        if name not in {"x-request-id", "request-id"}
    ]
    text = REPLY_ID.sub("", reply.text)
    return reply.status_code, headers, text


async def test_anothers_ids_answer_as_ids_that_never_were_and_change_nothing(
    tenants: Tenants,
) -> None:
    before = await tenants.anns()
    told: list[str] = []
    for operation in OPERATIONS:
        never = await tenants.bob.request(**operation.request(UNKNOWN))
        for name, item_id in tenants.ids.items():
            reply = await tenants.bob.request(**operation.request(item_id))
            alike = without_what_always_differs(reply) == without_what_always_differs(never)
            if not alike or "nine four seven" in reply.text or await tenants.anns() != before:
                told.append(f"{operation.name}: {name}")
    assert told == []


async def test_the_matrix_can_fail_as_ones_own_ids_answer_otherwise(tenants: Tenants) -> None:
    silent: list[str] = []
    for operation in sorted(OPERATIONS, key=lambda each: each.name == "delete"):
        never = await tenants.ann.request(**operation.request(UNKNOWN))
        replies = [
            await tenants.ann.request(**operation.request(item_id))
            for item_id in tenants.ids.values()
        ]
        if all(
            without_what_always_differs(reply) == without_what_always_differs(never)
            for reply in replies
        ):
            silent.append(operation.name)
    # It counts what was sent, and reads no document.
    assert silent == ["count tokens of"]


async def test_a_search_finds_ones_own_alone_whatever_it_asks_for(tenants: Tenants) -> None:
    for filter_ in (
        {},
        {"context_filter": None},
        {"context_filter": {"metadata": {"tenant": "ann"}}},
        {"context_filter": {"docs_ids": [*tenants.ids.values()]}},
        {"tenant": "ann"},
    ):
        body = {"text": SECRET, "limit": 100, "prev_next_chunks": 10, **filter_}
        reply = await tenants.bob.post("/v1/chunks", json=body)
        assert reply.status_code == 200
        assert "nine four seven" not in reply.text


async def test_the_model_is_never_given_anothers_documents(tenants: Tenants) -> None:
    for body in (chat(UNKNOWN), chat(tenants.ids["file"]), chat("", context_filter=None)):
        await tenants.bob.post("/v1/chat/completions", json=body)
    assert tenants.server.llm.requests
    assert "nine four seven" not in repr(tenants.server.llm.requests)
    await tenants.ann.post("/v1/chat/completions", json=chat("", context_filter=None))
    assert "nine four seven" in repr(tenants.server.llm.requests[-1])


async def test_the_same_file_of_two_tenants_is_two_files(tenants: Tenants) -> None:
    before = await tenants.anns()
    mine = await ingested(tenants.bob, "secret.txt", f"{SECRET}\f{SECRET} Again.")
    assert not {document["doc_id"] for document in mine} & set(tenants.ids.values())
    assert await tenants.anns() == before
    for document in mine:
        assert (await tenants.bob.delete(f"/v1/ingest/{document['doc_id']}")).status_code == 200
    assert await tenants.anns() == before


async def test_replacing_by_name_replaces_ones_own_alone(tenants: Tenants) -> None:
    before = await tenants.anns()
    await ingested(tenants.bob, "secret.txt", "Something else.", replace=True)
    await ingested(tenants.bob, "secret.txt", "Something else again.", replace=True)
    assert await tenants.anns() == before


async def test_two_tenants_upload_the_same_bytes_at_once(tenants: Tenants) -> None:
    both = await asyncio.gather(
        *(ingested(client, "same.txt", "The same.") for client in (tenants.ann, tenants.bob) * 4)
    )
    assert len({documents[0]["doc_id"] for documents in both}) == 2


async def test_a_tenant_named_in_a_request_changes_nothing(tenants: Tenants) -> None:
    headers = {"x-tenant": "ann", "x-tenant-id": "ann", "OpenAI-Organization": "ann"}
    body = {"file_name": "x.txt", "text": "Mine.", "tenant": "ann", "metadata": {"tenant": "ann"}}
    before = await tenants.anns()
    await tenants.bob.post("/v1/ingest/text?tenant=ann", json=body, headers=headers)
    assert await tenants.anns() == before
    found = await tenants.bob.get("/v1/ingest/list?tenant=ann", headers=headers)
    assert [each["doc_metadata"]["file_name"] for each in found.json()["data"]] == [
        "own.txt",
        "x.txt",
    ]


# Limits, over the same server


async def test_a_full_account_keeps_what_it_has_and_others_go_on(tmp_path: Path) -> None:
    limits = TenantLimits(of_all=Limits(stored_bytes=100))
    async with (
        shared_server(tmp_path, limits=limits) as server,
        await server.client("ann") as ann,
        await server.client("bob") as bob,
    ):
        (first,) = await ingested(ann, "a.txt", "a" * 80)
        full = {"file_name": "b.txt", "text": "b" * 30}
        reply = await ann.post("/v1/ingest/text", json=full)
        assert (reply.status_code, reply.json()["error"]["code"]) == (429, "insufficient_quota")
        assert reply.headers["x-should-retry"] == "false"
        assert "retry-after" not in reply.headers
        # The same bytes under the same name are there already and take no room.
        assert await ingested(ann, "a.txt", "a" * 80) == [first]
        await ingested(bob, "b.txt", "b" * 30)
        await ann.delete(f"/v1/ingest/{first['doc_id']}")
        await ingested(ann, "b.txt", "b" * 30)


async def test_answers_under_way_are_counted_per_tenant(tmp_path: Path) -> None:
    limits = TenantLimits(of_all=Limits(answers_at_once=1))
    async with (
        shared_server(tmp_path, limits=limits) as server,
        await server.client("ann") as ann,
        await server.client("bob") as bob,
    ):
        gate, begun = asyncio.Event(), asyncio.Queue[GenerationRequest]()

        def script(request: GenerationRequest) -> Script:
            begun.put_nowait(request)
            return ["Hello", gate]

        server.llm.script = script
        body = {"messages": [{"role": "user", "content": "Hello"}]}
        first = asyncio.create_task(ann.post("/v1/chat/completions", json=body))
        await begun.get()
        for stream in (True, False):
            refused = await ann.post("/v1/chat/completions", json={**body, "stream": stream})
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
            assert refused.json()["error"]["type"] == "rate_limit_error"
        other = asyncio.create_task(bob.post("/v1/chat/completions", json=body))
        await begun.get()
        gate.set()
        assert [(await first).status_code, (await other).status_code] == [200, 200]
        assert (await ann.post("/v1/chat/completions", json=body)).status_code == 200


async def test_requests_are_counted_per_tenant_not_per_key(tmp_path: Path) -> None:
    limits = TenantLimits(of_all=Limits(requests_per_minute=3))
    async with (
        shared_server(tmp_path, limits=limits) as server,
        await server.client("ann") as one,
        await server.client("ann") as two,
        await server.client("bob") as bob,
    ):
        replies = [await client.get("/v1/models") for client in (one, two, one, two)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
        assert (await one.get("/health")).status_code == 200
        assert (await bob.get("/v1/models")).status_code == 200
