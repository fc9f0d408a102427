"""Web pages of others may not put anything into a library that asks for no key."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from tests.api.conftest import NewClient
from tests.fakes.edge import Edge

FILE = {"file": ("a.txt", b"planted")}


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://evil.example:8001", "null", "http://127.0.0.1.evil.example",
     "http://gpt.test.evil.example", "http://localhost@evil.example", "http://[broken", "http://"],
)  # fmt: skip
async def test_a_page_of_somebody_else_ingests_nothing(
    edge: Edge, client: httpx.AsyncClient, origin: str
) -> None:
    response = await client.post("/v1/ingest", files=FILE, headers={"Origin": origin})
    assert response.status_code == 403
    assert "server.cors_origins" in response.json()["error"]["message"]
    assert edge.library.ingested == []


@pytest.mark.parametrize(
    "origin",
    ["http://gpt.test", "https://gpt.test:444", "http://localhost:3000", "http://127.0.0.1:5173",
     "http://[::1]:8080", "http://app.localhost", "app://obsidian.md", "tauri://localhost",
     "vscode-webview://x"],
)  # fmt: skip
async def test_own_pages_those_of_this_machine_and_applications_are_let_in(
    client: httpx.AsyncClient, origin: str
) -> None:
    response = await client.post("/v1/ingest", files=FILE, headers={"Origin": origin})
    assert response.status_code == 200, response.text


async def test_a_proxy_may_say_under_which_name_the_page_was_opened(
    client: httpx.AsyncClient,
) -> None:
    headers = {"Origin": "https://docs.example.org", "X-Forwarded-Host": "docs.example.org"}
    assert (await client.post("/v1/ingest", files=FILE, headers=headers)).status_code == 200


@pytest.mark.parametrize("allowed", [("https://chat.example.org",), ("*",)])
async def test_a_page_that_the_operator_names_is_let_in(
    new_client: NewClient, allowed: tuple[str, ...]
) -> None:
    async with new_client(ApiOptions(cors_origins=allowed)) as client:
        headers = {"Origin": "https://chat.example.org"}
        response = await client.post("/v1/ingest", files=FILE, headers=headers)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] in {"*", "https://chat.example.org"}


async def test_a_page_of_the_servers_public_address_is_let_in(new_client: NewClient) -> None:
    async with new_client(ApiOptions(public_url="https://Site.example.org/gpt/")) as client:
        headers = {"Origin": "https://site.example.org"}
        assert (await client.post("/v1/ingest", files=FILE, headers=headers)).status_code == 200
        headers = {"Origin": "https://other.example.org"}
        assert (await client.post("/v1/ingest", files=FILE, headers=headers)).status_code == 403


@pytest.mark.parametrize("host", ["evil.example:8001", "127.0.0.1.evil.example", "test.example.",
                                  "LOCAL.evil.example"])  # fmt: skip
@pytest.mark.parametrize("origin", [None, "same"])
async def test_a_name_that_somebody_had_lead_here_reads_nothing(
    client: httpx.AsyncClient, host: str, origin: str | None
) -> None:
    headers = {"Host": host} | ({"Origin": f"http://{host}"} if origin else {})
    response = await client.get("/v1/ingest/list", headers=headers)
    assert response.status_code == 403
    message = response.json()["error"]["message"]
    assert f"{urlsplit(f'//{host}').hostname!r} is neither" in message
    assert "privategpt keys create" in message
    assert "server.public_url" in message


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8001", "[::1]:8001", "192.168.1.7", "[fe80::1]", "localhost:8001", "LOCALHOST",
     "app.localhost", "privategpt:8001", "nas.local", "host.docker.internal", "pc.lan", "a.test.",
     "box.home.arpa", ""],
)  # fmt: skip
async def test_addresses_and_names_of_the_own_network_are_answered_to(
    client: httpx.AsyncClient, host: str
) -> None:
    headers = {"Host": host}
    assert (await client.get("/v1/ingest/list", headers=headers)).status_code == 200


async def test_the_name_of_the_public_address_is_answered_to(new_client: NewClient) -> None:
    async with new_client(ApiOptions(public_url="https://Site.example.org/gpt/")) as client:
        for host, status in (("site.example.org", 200), ("other.example.org", 403)):
            response = await client.get("/v1/ingest/list", headers={"Host": host})
            assert response.status_code == status


async def test_whether_the_server_is_up_is_no_secret(client: httpx.AsyncClient) -> None:
    response = await client.get("/health", headers={"Origin": "https://evil.example"})
    assert response.status_code == 200
