"""What the log says of a request, and what it never says."""

from __future__ import annotations

import io
import json
import logging
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.api.logs import (
    CHATTY,
    ConsoleFormatter,
    JsonFormatter,
    LineFormatter,
    configure_logging,
    escaped,
)
from privategpt.api.request_ids import current_request_id
from privategpt.domain.errors import EngineFailed, Unavailable
from privategpt.services.access import Keys
from tests.fakes.edge import Edge
from tests.fakes.keys import FakeKeyStore
from tests.fakes.tenants import shared_server

KEY = "pgpt_0123456789ab_" + "c" * 64
QUESTION = "Who betrayed the confidential zebra?"


def record(message: str, *args: object, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("some.module", logging.INFO, "", 0, message, args, None)
    made.created = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()
    if fields:
        made.fields = fields
    return made


def failed(error: Exception, **fields: Any) -> logging.LogRecord:
    made = record("It failed", **fields)
    made.exc_info = (type(error), error, None)
    return made


@pytest.fixture(autouse=True)
def no_request() -> Generator[None]:
    token = current_request_id.set("")
    yield
    current_request_id.set(token.old_value if isinstance(token.old_value, str) else "")


@contextmanager
def whole_log(form: Literal["console", "json"], level: str = "debug") -> Generator[io.StringIO]:
    """Everything that any logger of this process writes, as an operator would have it."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in CHATTY}
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    stream = io.StringIO()
    configure_logging(level=level, form=form, secrets=["sk-upstream-secret"], stream=stream)
    try:
        yield stream
    finally:
        root.handlers[:], root.level = before
        for name, old in levels.items():
            logging.getLogger(name).setLevel(old)


# Formats


def test_a_console_line_reads_from_left_to_right() -> None:
    current_request_id.set("req_1")
    line = ConsoleFormatter().format(record("GET %s", "/health", status=200, ms=1.5))
    assert line == "2026-03-01 12:00:00 INFO    some.module: GET /health status=200 ms=1.5 [req_1]"


def test_a_json_line_is_one_object() -> None:
    current_request_id.set("req_1")
    line = JsonFormatter().format(record("Grüße\n%s", "x", status=200))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-03-01T12:00:00+00:00",
        "level": "info",
        "logger": "some.module",
        "message": "Grüße\nx",
        "request_id": "req_1",
        "status": 200,
    }


@pytest.mark.parametrize("formatter", [ConsoleFormatter(), JsonFormatter()])
def test_outside_of_requests_there_is_no_request_id(formatter: LineFormatter) -> None:
    assert "request_id" not in formatter.format(record("started"))
    assert "[" not in formatter.format(record("started"))


@given(text=st.text(st.characters(), max_size=60))
def test_whatever_is_logged_a_line_stays_a_line(text: str) -> None:
    line = ConsoleFormatter().format(record("%s", text, name=text))
    assert len(line.splitlines()) == 1
    assert all(c.isprintable() or ord(c) > 0x9F for c in line)
    line.encode()
    assert json.loads(JsonFormatter().format(record("%s", text)))["message"] is not None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\n2026-03-01 INFO forged", "a\\r\\n2026-03-01 INFO forged"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("left\u202etfel\u2028", "left\\u202etfel\\u2028"),
        ("Grüße 東京 🙂", "Grüße 東京 🙂"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_a_traceback_cannot_be_taken_for_lines_of_the_log() -> None:
    made = failed(ValueError("a\n2026-03-01 12:00:00 INFO forged: line"))
    first, *trace = ConsoleFormatter().format(made).split("\n")
    assert first.endswith("It failed")
    assert trace
    assert all(line.startswith("  | ") for line in trace)
    assert "ValueError" in json.loads(JsonFormatter().format(made))["exception"]


# Secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"got {KEY}.", "got pgpt_0123456789ab_***."),
        (f"Authorization: Bearer {KEY}", "Authorization: Bearer ***"),
        ("{'authorization': 'Bearer sk-x.y_z'}", "{'authorization': 'Bearer ***'}"),
        ("{'x-api-key': 'sk-x'}", "{'x-api-key': '***'}"),
        ("GET /v1?api_key=sk-x&limit=1", "GET /v1?api_key=***&limit=1"),
        ("api-key=sk-x access_token=y", "api-key=*** access_token=***"),
        ("to sk-upstream-secret/x", "to ***/x"),
        ("nothing secret here", "nothing secret here"),
    ],
)
def test_keys_are_hidden_whoever_logs_them(text: str, shown: str) -> None:
    formatter = LineFormatter(secrets=["sk-upstream-secret", "short"])
    assert formatter.hidden(text) == shown


def test_a_key_in_a_field_or_a_traceback_is_hidden_too() -> None:
    made = failed(ValueError(KEY), note=KEY)
    for formatter in (ConsoleFormatter(), JsonFormatter()):
        text = formatter.format(made)
        assert "c" * 64 not in text
        assert text.count("pgpt_0123456789ab_***") == 2


@pytest.mark.parametrize("form", ["console", "json"])
async def test_no_key_is_ever_in_the_log(form: Literal["console", "json"], tmp_path: Path) -> None:
    with whole_log(form) as log:
        edge = Edge()
        keys = Keys(
            store=FakeKeyStore(), now=lambda: datetime.now(UTC), random_bytes=secrets.token_bytes
        )
        edge.keys = keys
        good, bad = (await keys.create("ann")).text, (await keys.create("ann")).text[:-1] + "z"
        transport = httpx.ASGITransport(edge.app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
            for text in (good, bad, "sk-somebody-elses"):
                for headers in ({"Authorization": f"Bearer {text}"}, {"x-api-key": text}):
                    for path in ("/v1/models", f"/v1/documents/{text}", f"/v1/{text}"):
                        await client.get(path, headers=headers)
                    await client.get(f"/v1/models?api_key={text}", headers=headers)
            edge.answers.script = [EngineFailed("The engine refused the key sk-upstream-secret")]
            body = {"messages": [{"role": "user", "content": QUESTION}]}
            headers = {"Authorization": f"Bearer {good}"}
            await client.post("/v1/chat/completions", json=body, headers=headers)
            edge.answers.script = [ValueError(f"unforeseen, with {good}")]
            await client.post("/v1/chat/completions", json=body, headers=headers)
        written = log.getvalue()
    assert "privategpt.access" in written
    assert "engine refused the key ***" in written
    for secret in (good, bad, good[-64:], bad[-64:], "sk-upstream-secret", "sk-somebody-elses"):
        assert secret not in written


async def test_at_info_no_question_answer_or_document_is_in_the_log(tmp_path: Path) -> None:
    with whole_log("json", level="info") as log:
        async with (
            shared_server(tmp_path) as server,
            await server.client("ann") as client,
        ):
            text = {"file_name": "zebra.txt", "text": f"{QUESTION} The zebra's keeper."}
            assert (await client.post("/v1/ingest/text", json=text)).status_code == 200
            server.llm.script = ["The zebra's keeper [1]."]
            for stream in (False, True):
                body = {
                    "messages": [{"role": "user", "content": QUESTION}],
                    "use_context": True,
                    "web_search": True,
                    "stream": stream,
                }
                assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
            await client.post("/v1/chunks", json={"text": QUESTION})
            await client.post("/v1/chunks", json={"text": {"zebra": 1}})
            await client.get("/zebra")
        written = log.getvalue()
    assert "ingested file" in written
    assert "zebra" not in written.lower()


# The access line


async def lines_of(
    edge: Edge, *requests: tuple[str, str, dict[str, str]], level: str = "info"
) -> list[dict[str, Any]]:
    with whole_log("json", level=level) as log:
        transport = httpx.ASGITransport(edge.app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
            for method, url, headers in requests:
                await client.request(method, url, headers=headers)
    return [json.loads(line) for line in log.getvalue().splitlines()]


def without_times(line: dict[str, Any]) -> dict[str, Any]:
    assert line["ms"] >= 0
    return {key: value for key, value in line.items() if key not in {"time", "ms", "level"}}


async def test_a_request_is_one_line_with_its_route_and_never_its_path() -> None:
    (line,) = await lines_of(
        Edge(), ("GET", "/v1/documents/secret-id?start=7", {"X-Request-ID": "mine"})
    )
    assert without_times(line) == {
        "logger": "privategpt.access",
        "message": "GET /v1/documents/{doc_id}",
        "request_id": "mine",
        "status": 404,
        "tenant": "default",
        "key": "-",
    }


async def test_a_part_that_fails_is_told_with_the_route_and_never_the_path() -> None:
    edge = Edge()
    edge.library.error = Unavailable("The database does not answer")
    lines = await lines_of(
        edge, ("GET", "/v1/documents/secret%0Aid", {}), ("DELETE", "/v1/ingest/secret-id", {})
    )
    assert [line["message"] for line in lines if line["logger"] == "privategpt.api.errors"] == [
        "GET /v1/documents/{doc_id}: The database does not answer",
        "DELETE /v1/ingest/{doc_id}: The database does not answer",
    ]
    assert "secret" not in str(lines)


async def test_a_refused_request_is_a_line_with_what_is_known_of_it() -> None:
    edge = Edge()
    keys = Keys(
        store=FakeKeyStore(), now=lambda: datetime.now(UTC), random_bytes=secrets.token_bytes
    )
    edge.keys = keys
    new = await keys.create("ann")
    lines = await lines_of(
        edge,
        ("GET", "/v1/models", {}),
        ("GET", "/docs", {"x-api-key": new.text}),
        ("GET", "/nowhere%0A", {"x-api-key": new.text}),
    )
    told = [
        (line["message"], line["status"], line.get("tenant"), line.get("key")) for line in lines
    ]
    assert told == [
        ("GET /v1/models", 401, None, None),
        ("GET /docs", 403, "ann", new.key.key_id),
        ("GET (none)", 404, "ann", new.key.key_id),
    ]


async def test_probes_are_told_only_at_debug_and_only_while_they_pass() -> None:
    no_headers: dict[str, str] = {}
    probes = [("GET", path, no_headers) for path in ("/health", "/health/ready", "/metrics")]
    edge = Edge()
    assert await lines_of(edge, *probes) == []
    assert len(await lines_of(edge, *probes, level="debug")) == 3

    async def down() -> None:
        raise EngineFailed("down")

    edge.checks["llm"] = down
    (line,) = await lines_of(edge, *probes)
    assert (line["message"], line["status"]) == ("GET /health/ready", 503)


async def test_every_line_of_a_request_has_its_id(tmp_path: Path) -> None:
    with whole_log("json") as log:
        async with shared_server(tmp_path) as server, await server.client("ann") as client:
            text = {"file_name": "a.txt", "text": "Red."}
            await client.post("/v1/ingest/text", json=text, headers={"X-Request-ID": "mine"})
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
    ids = {line["logger"]: line.get("request_id") for line in lines}
    assert ids["privategpt.services.ingestion"] == "mine"
    assert ids["privategpt.access"] == "mine"


async def test_an_unforeseen_failure_is_found_by_the_id_that_the_client_was_told() -> None:
    edge = Edge()
    edge.answers.script = [ValueError("unforeseen")]
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    with whole_log("json", level="info") as log:
        transport = httpx.ASGITransport(edge.app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
            reply = await client.post("/v1/chat/completions", json=body)
            # As uvicorn does, in the request's task, once the app has raised.
            logging.getLogger("uvicorn.error").error("Exception in ASGI application")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert reply.status_code == 500
    assert [(line["logger"], line["request_id"]) for line in lines] == [
        ("privategpt.access", reply.headers["x-request-id"]),
        ("uvicorn.error", reply.headers["x-request-id"]),
    ]
    assert lines[0]["status"] == 500
