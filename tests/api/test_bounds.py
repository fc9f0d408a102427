"""Bodies that are too large or too slow are refused while they arrive."""

from __future__ import annotations

import asyncio
import gzip

import httpx
import pytest

from privategpt.api.bounds import FORM_OVERHEAD_BYTES
from privategpt.api.deps import ApiOptions
from tests.api.conftest import NewClient
from tests.fakes.asgi import exchange
from tests.fakes.edge import Edge

CHAT = "/v1/chat/completions"
SMALL = ApiOptions(max_body_bytes=1000, max_upload_bytes=5000)
FORM = {"content-type": "multipart/form-data; boundary=B"}


async def test_a_declared_length_is_refused_before_a_byte_is_read(edge: Edge) -> None:
    declared = {"content-length": "60000000"}
    async with exchange(edge.app(SMALL), CHAT, headers=declared) as under_way:
        assert await under_way.status() == 413
        text = await under_way.rest()
    assert '"code":"request_too_large"' in text
    assert under_way.incoming.empty()


async def test_an_undeclared_length_is_refused_as_soon_as_it_is_too_much(edge: Edge) -> None:
    async with exchange(edge.app(SMALL), CHAT) as under_way:
        under_way.body(b" " * 600, more=True)
        under_way.body(b" " * 600, more=True)
        message = await under_way.next_message()
        assert message["status"] == 413
        assert (b"connection", b"close") in message["headers"]


async def test_a_length_that_lies_is_measured(edge: Edge) -> None:
    async with exchange(edge.app(SMALL), CHAT, headers={"content-length": "5"}) as under_way:
        under_way.body(b" " * 1200)
        assert await under_way.status() == 413


@pytest.mark.parametrize("declared", ["-1", "x", "", "1e9", "٣", "5, 5"])
async def test_a_length_that_is_no_number_is_not_believed(declared: str, edge: Edge) -> None:
    headers = {"content-length": declared.encode().decode("latin-1")}
    async with exchange(edge.app(SMALL), CHAT, headers=headers) as under_way:
        under_way.body(b'{"messages":[{"content":"x"}]}')
        assert await under_way.status() == 200


@pytest.mark.parametrize(("path", "headers"), [(CHAT, {}), ("/v1/ingest", FORM)])
async def test_a_packed_body_is_refused_by_its_label(
    path: str, headers: dict[str, str], new_client: NewClient
) -> None:
    body = b'{"messages":[{"content":"x"}]}'
    async with new_client(SMALL) as client:
        packed = await client.post(
            path, content=gzip.compress(body), headers=headers | {"content-encoding": "gzip"}
        )
        assert packed.status_code == 415
        assert "Content-Encoding" in packed.json()["error"]["message"]
        plain = {"content-encoding": "identity", "content-type": "application/json"}
        assert (await client.post(CHAT, content=body, headers=plain)).status_code == 200


@pytest.mark.parametrize("path", ["/v1/ingest", "/v1/ingest/file"])
async def test_uploads_have_their_own_bound(path: str, edge: Edge, new_client: NewClient) -> None:
    async with new_client(SMALL) as client:
        fits = await client.post(path, files={"file": ("a.txt", b"x" * 4000)})
        assert fits.status_code == 200, fits.text
    length = str(SMALL.max_upload_bytes + FORM_OVERHEAD_BYTES + 1)
    async with exchange(
        edge.app(SMALL), path, headers={**FORM, "content-length": length}
    ) as under_way:
        assert await under_way.status() == 413


async def test_a_file_beyond_its_bound_is_refused_though_the_form_would_fit(
    edge: Edge, new_client: NewClient
) -> None:
    async with new_client(SMALL) as client:
        response = await client.post("/v1/ingest", files={"file": ("a.txt", b"x" * 5001)})
    assert response.status_code == 413
    assert edge.library.ingested == []


@pytest.mark.parametrize(("path", "headers"), [(CHAT, {}), ("/v1/ingest", FORM)])
async def test_a_sender_that_falls_silent_is_refused(
    path: str, headers: dict[str, str], edge: Edge
) -> None:
    hasty = ApiOptions(read_grace_s=0.02)
    async with exchange(edge.app(hasty), path, headers=headers) as under_way:
        under_way.body(b"{" if path == CHAT else b"--B\r\n", more=True)
        assert await under_way.status() == 408
        assert '"code":"request_timeout"' in await under_way.rest()


async def test_a_byte_now_and_then_does_not_hold_a_connection(edge: Edge) -> None:
    hasty = ApiOptions(read_grace_s=0.05, min_read_rate=1000)
    async with exchange(edge.app(hasty), CHAT) as under_way:

        async def drip() -> None:
            while True:
                under_way.body(b" ", more=True)
                await asyncio.sleep(0.005)

        dripping = asyncio.create_task(drip())
        assert await under_way.status() == 408
        dripping.cancel()


async def test_a_sender_that_keeps_up_the_rate_has_its_time(edge: Edge) -> None:
    patient = ApiOptions(read_grace_s=0.05, min_read_rate=1)
    async with exchange(edge.app(patient), CHAT) as under_way:
        under_way.body(b'{"messages":' + b" " * 1000, more=True)
        # Twice the grace: a deadline that did not move with the bytes would have run out.
        await asyncio.sleep(0.1)
        under_way.body(b'[{"content":"x"}]}')
        assert await under_way.status() == 200


async def test_after_the_body_no_deadline_runs(edge: Edge) -> None:
    gate = asyncio.Event()
    edge.answers.script = [gate, *edge.answers.script]
    async with exchange(edge.app(ApiOptions(read_grace_s=0.01)), CHAT) as under_way:
        under_way.body(b'{"messages":[{"content":"x"}]}')
        await edge.answers.started.wait()
        await asyncio.sleep(0.05)
        gate.set()
        assert await under_way.status() == 200


async def test_other_protocols_pass_untouched(edge: Edge) -> None:
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup" if not sent else "lifespan.shutdown"}

    async def send(message: object) -> None:
        sent.append(str(message["type"]))  # type: ignore[index]

    await edge.app()({"type": "lifespan", "state": {}}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_nesting_is_bounded_where_no_field_is_read(client: httpx.AsyncClient) -> None:
    deep = b'{"messages":[{"content":"x"}],"unknown":' + b"[" * 150 + b"]" * 150 + b"}"
    assert (await client.post(CHAT, content=deep)).status_code == 200
    deeper = b'{"messages":[{"content":"x"}],"unknown":' + b"[" * 250 + b"]" * 250 + b"}"
    assert (await client.post(CHAT, content=deeper)).status_code == 400
