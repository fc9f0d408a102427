"""Keys at the edge: who is let in, to what, and what everybody else is told."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from privategpt.api.deps import ApiOptions
from privategpt.api.scopes import SCOPES, refuse_routes_without_scope, routes_of
from privategpt.domain.access import Scope
from privategpt.domain.errors import TooManyRequests, Unavailable
from privategpt.services.access import Keys
from tests.fakes.asgi import exchange
from tests.fakes.clock import Clock
from tests.fakes.edge import Edge
from tests.fakes.keys import FakeKeyStore

CHAT = {"messages": [{"role": "user", "content": "Hello"}]}
ALL = tuple(Scope)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(clock: Clock) -> Keys:
    return Keys(store=FakeKeyStore(), now=clock, random_bytes=secrets.token_bytes)


@pytest.fixture
async def client(edge: Edge, keys: Keys) -> AsyncGenerator[httpx.AsyncClient]:
    edge.keys = keys
    transport = httpx.ASGITransport(edge.app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as opened:
        yield opened


async def key(keys: Keys, *scopes: Scope, tenant: str = "ann") -> str:
    return (await keys.create(tenant, scopes=scopes or ALL)).text


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


async def ask(client: httpx.AsyncClient, headers: Any = None) -> httpx.Response:
    return await client.post("/v1/chat/completions", json=CHAT, headers=headers)


# Routes and scopes


def filled(path: str) -> str:
    return path.replace("{doc_id}", "x").replace("{model_id:path}", "x")


ROUTES = sorted(routes_of(Edge().app().routes))


def test_the_table_has_every_route() -> None:
    assert set(ROUTES) - set(SCOPES) == set()


def test_a_route_without_a_scope_is_no_app() -> None:
    app = FastAPI(openapi_url=None)
    app.add_api_route("/v1/forgotten", lambda: None)
    with pytest.raises(ValueError, match="GET /v1/forgotten"):
        refuse_routes_without_scope(app.routes)


async def test_health_alone_is_open(client: httpx.AsyncClient) -> None:
    statuses: dict[str, int] = {}
    for route in ROUTES:
        method, path = route.split(" ")
        statuses[route] = (await client.request(method, filled(path))).status_code
    assert {route for route, status in statuses.items() if status != 401} == {"GET /health"}


@pytest.mark.parametrize("route", [route for route in ROUTES if SCOPES[route] is not None])
async def test_a_key_opens_exactly_the_routes_of_its_scopes(
    client: httpx.AsyncClient, keys: Keys, route: str
) -> None:
    method, path = route.split(" ")
    needed = SCOPES[route]
    assert needed is not None
    for scope in Scope:
        headers = bearer(await key(keys, scope))
        reply = await client.request(method, filled(path), headers=headers)
        assert (reply.status_code == 403) is (scope not in needed), scope
        if reply.status_code == 403:
            assert reply.json()["error"]["code"] == "permission_denied"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PATCH", "CHAT"])
async def test_no_method_leads_around_a_scope(
    client: httpx.AsyncClient, keys: Keys, method: str
) -> None:
    headers = bearer(await key(keys, Scope.EMBED))
    assert (await client.request(method, "/docs")).status_code == 401
    assert (await client.request(method, "/docs", headers=headers)).status_code in {403, 405}


@pytest.mark.parametrize("path", ["/nowhere", "/health/", "//health", "/health%2f", "/HEALTH", "/"])
async def test_an_unknown_route_says_nothing_without_a_key(
    client: httpx.AsyncClient, keys: Keys, path: str
) -> None:
    assert (await client.get(path)).status_code == 401
    assert (await client.get(path, headers=bearer(await key(keys)))).status_code == 404


async def test_without_keys_everything_is_open_to_the_one_tenant(edge: Edge) -> None:
    transport = httpx.ASGITransport(edge.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        assert (await client.get("/docs")).status_code == 200
        assert (await client.get("/openapi.json")).status_code == 200
        assert (await ask(client, bearer("sk-anything"))).status_code == 200
    assert [request.tenant for request in edge.answers.requests] == ["default"]


# Keys


async def test_the_tenant_is_the_keys_own(
    client: httpx.AsyncClient, keys: Keys, edge: Edge
) -> None:
    for tenant in ("ann", "bob"):
        assert (await ask(client, bearer(await key(keys, tenant=tenant)))).status_code == 200
    assert [request.tenant for request in edge.answers.requests] == ["ann", "bob"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer KEY"},
        {"authorization": "bearer   KEY "},
        {"x-api-key": "KEY"},
        {"X-Api-Key": "KEY", "Authorization": "Basic dXNlcjpwYXNz"},
        {"x-api-key": "KEY", "Authorization": "Bearer KEY"},
    ],
)
async def test_both_vendors_headers_carry_a_key(
    client: httpx.AsyncClient, keys: Keys, headers: dict[str, str]
) -> None:
    text = await key(keys)
    sent = {name: value.replace("KEY", text) for name, value in headers.items()}
    assert (await ask(client, sent)).status_code == 200


@pytest.mark.parametrize(
    "value",
    [
        b"Bearer \xc3\xa9",
        b"Bearer \xff\xfe",
        b"Bearer",
        b"Bearer ",
        b"",
        b"Basic dXNlcjpwYXNz",
        b"Bearer sk-something",
        b"Bearer pgpt_000000000000_" + b"0" * 64,
        b"Bearer pgpt_000000000000_" + b"0" * 64 + b"\x0b",
        b"Bearer pgpt_\xd9\xa0" + b"0" * 74,
        b"Bearer " + b"x" * 50_000,
    ],
)
async def test_what_is_no_key_is_told_so(client: httpx.AsyncClient, value: bytes) -> None:
    for name in (b"authorization", b"x-api-key"):
        reply = await ask(client, [(name, value)])
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        error = reply.json()["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
        assert error["message"]


async def test_a_wrong_an_expired_and_a_revoked_key_are_refused_alike(
    client: httpx.AsyncClient, keys: Keys, clock: Clock
) -> None:
    good = await key(keys)
    wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
    expiring = (await keys.create("ann", lifetime=timedelta(days=1))).text
    revoked = await keys.create("ann")
    await keys.revoke(revoked.key.key_id)
    assert (await ask(client, bearer(expiring))).status_code == 200
    clock.now += timedelta(days=1)
    unknown = await ask(client, bearer("pgpt_000000000000_" + "0" * 64))
    for text in (wrong, expiring, revoked.text):
        reply = await ask(client, bearer(text))
        assert (reply.status_code, reply.content) == (401, unknown.content)
    assert (await ask(client, bearer(good))).status_code == 200


async def test_the_old_key_works_beside_the_new_one_until_it_is_revoked(
    client: httpx.AsyncClient, keys: Keys
) -> None:
    old, new = await keys.create("ann"), await keys.create("ann")
    assert (await ask(client, bearer(old.text))).status_code == 200
    assert (await ask(client, bearer(new.text))).status_code == 200
    await keys.revoke(old.key.key_id)
    assert (await ask(client, bearer(old.text))).status_code == 401
    assert (await ask(client, bearer(new.text))).status_code == 200


async def test_two_different_keys_are_one_too_many(client: httpx.AsyncClient, keys: Keys) -> None:
    headers = {**bearer(await key(keys)), "x-api-key": await key(keys)}
    assert (await ask(client, headers)).status_code == 401


@pytest.mark.parametrize("name", ["api_key", "API_KEY", "api-key", "access_token", "api%5Fkey"])
async def test_a_key_in_the_address_is_refused_wherever_it_is_sent(
    client: httpx.AsyncClient, keys: Keys, name: str
) -> None:
    text = await key(keys)
    for path in ("/health", "/v1/models", "/nowhere"):
        reply = await client.get(f"{path}?a=1&{name}={text}", headers=bearer(text))
        assert reply.status_code == 400
        assert text not in reply.text


async def test_a_stranger_is_refused_before_the_body_is_read(edge: Edge, keys: Keys) -> None:
    edge.keys = keys
    size = {"content-length": "90000000"}
    async with exchange(edge.app(), "/v1/ingest", headers=size) as under_way:
        # No body is ever sent.
        message = await under_way.next_message()
    assert message["status"] == 401
    assert (b"connection", b"close") in message["headers"]


async def test_every_refusal_has_a_request_id(client: httpx.AsyncClient) -> None:
    reply = await client.get("/v1/models", headers={"X-Request-ID": "mine"})
    assert (reply.status_code, reply.headers["x-request-id"]) == (401, "mine")


async def test_keys_that_cannot_be_looked_up_are_a_fault_of_ours(
    client: httpx.AsyncClient, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(_: bytes) -> None:
        raise Unavailable("The state store does not serve: it failed")

    text = await key(keys)
    monkeypatch.setattr(keys, "identify", down)
    reply = await ask(client, bearer(text))
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")


async def test_too_many_requests_are_refused_before_they_cost_anything(edge: Edge) -> None:
    def refuse(tenant: str) -> None:
        raise TooManyRequests(f"{tenant} is too fast", retry_after_s=7)

    edge.admit = refuse
    transport = httpx.ASGITransport(edge.app(ApiOptions()))
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        reply = await ask(client)
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "7")
        assert reply.json()["error"]["code"] == "rate_limit_exceeded"
        assert (await client.get("/health")).status_code == 200
    assert edge.answers.requests == []
