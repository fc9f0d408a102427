"""Every failure is one body, on every route, and echoes nothing that was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from privategpt.api.errors import KINDS, MAX_DETAILS, kind_of, stream_error
from privategpt.api.scopes import SCOPES
from privategpt.api.wire.chat import ChatBody
from privategpt.api.wire.replies import ErrorReply, HTTPValidationError
from privategpt.domain import errors
from privategpt.domain.errors import PrivateGptError
from tests.api.conftest import NewClient
from tests.fakes.edge import Edge

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
SECRET = "the-words-of-a-document"


def tree(cls: type[PrivateGptError] = PrivateGptError) -> Iterator[type[PrivateGptError]]:
    """What is told apart outside the module that raises it."""
    yield cls
    for below in cls.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from tree(below)


def test_every_error_of_the_tree_has_its_row_and_no_row_is_left_over() -> None:
    assert set(KINDS) == set(tree())


def test_an_error_without_a_row_of_its_own_takes_the_nearest_above() -> None:
    class Newcomer(errors.EngineFailed):
        pass

    assert kind_of(Newcomer("x")).status == 502


@pytest.mark.parametrize("cls", list(tree()), ids=lambda cls: cls.__name__)
async def test_every_error_before_the_first_event_keeps_its_status_plain_and_streamed(
    cls: type[PrivateGptError], edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = [cls("What to do.", param="messages")]
    for stream in (False, True):
        response = await client.post(CHAT, json={**HELLO, "stream": stream})
        assert response.status_code == KINDS[cls].status
        assert response.json() == {
            "error": {
                "message": "What to do.",
                "type": KINDS[cls].type,
                "param": "messages",
                "code": KINDS[cls].code,
            },
            "detail": "What to do.",
        }
        ErrorReply.model_validate(response.json())


@pytest.mark.parametrize(
    ("error", "header", "value"),
    [
        (errors.TooManyRequests("x", retry_after_s=7), "retry-after", "7"),
        (errors.EngineUnavailable("x"), "retry-after", "2"),
        (errors.EngineTimedOut("x", retry_after_s=0), "retry-after", "0"),
        (errors.NotAuthenticated("x"), "www-authenticate", "Bearer"),
        (errors.Conflict("x"), "x-should-retry", "false"),
    ],
)
async def test_errors_say_in_headers_what_a_client_does_next(
    error: PrivateGptError, header: str, value: str, edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.search.error = error
    response = await client.post("/v1/chunks", json={"text": "x"})
    assert response.headers[header] == value


async def test_an_unforeseen_error_is_a_500_that_tells_nothing_of_its_text(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.search.error = RuntimeError(SECRET)
    response = await client.post("/v1/chunks", json={"text": "x"})
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert SECRET not in response.text
    assert response.headers["x-request-id"]


def test_an_unforeseen_error_in_a_stream_tells_nothing_of_its_text() -> None:
    assert stream_error(RuntimeError(SECRET))["error"]["code"] == "internal_error"
    assert SECRET not in str(stream_error(RuntimeError(SECRET)))


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/v1/moderations", 404, "not_found"),
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/models/", 404, "not_found"),
        ("GET", "/health/", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("PUT", "/health", 405, "method_not_allowed"),
        ("DELETE", "/v1/models/private-gpt", 405, "method_not_allowed"),
    ],
)
async def test_unknown_routes_and_methods_answer_in_the_envelope(
    method: str, path: str, status: int, code: str, client: httpx.AsyncClient
) -> None:
    response = await client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.json()["detail"] == response.json()["error"]["message"]


@pytest.mark.parametrize("template", sorted({route.split(" ")[1] for route in SCOPES}))
async def test_the_allow_header_names_the_methods_of_that_route_and_no_other(
    template: str, client: httpx.AsyncClient
) -> None:
    response = await client.request("TRACE", re.sub(r"\{[^}]*\}", "x", template))
    methods = {route.split(" ")[0] for route in SCOPES if route.split(" ")[1] == template}
    methods |= {"HEAD"} if "GET" in methods else set()
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == methods


BROKEN_JSON = {
    "lone surrogate": b'{"messages":[{"content":"\\ud800"}]}',
    "NaN": b'{"messages":[{"content":"x"}],"temperature":NaN}',
    "Infinity": b'{"messages":[{"content":"x"}],"temperature":-Infinity}',
    "infinite by size": b'{"messages":[{"content":"x"}],"temperature":1e999}',
    "infinite by digits": b'{"messages":[{"content":"x"}],"seed":' + b"9" * 400 + b".5}",
    "infinite in an unread tree": (
        b'{"messages":[{"content":"x"}],"tools":[{"type":"function","function":{"name":"f",'
        b'"parameters":{"enum":[{"maximum":1e999}]}}}]}'
    ),
    "a number of 5000 digits": b'{"seed":' + b"9" * 5000 + b"}",
    "deep nesting": b"[" * 100_000,
    "deep and closed": b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "garbage behind": b'{"messages":[{"content":"x"}]} trailing',
    "two documents": b'{"messages":[]}{"messages":[]}',
    "not UTF-8": b'{"messages":[{"content":"\xff\xfe"}]}',
    "encoded surrogate": b'{"messages":[{"content":"\xed\xa0\x80"}]}',
    "empty": b"",
    "cut": b'{"messages":[{"content":"x"',
    "a raw control character": b'{"messages":[{"content":"\x00"}]}',
}


@pytest.mark.parametrize("body", BROKEN_JSON.values(), ids=BROKEN_JSON.keys())
async def test_what_is_no_json_is_a_400(body: bytes, client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_json"
    HTTPValidationError.model_validate(response.json())


@pytest.mark.parametrize(
    "body",
    [
        b'\xef\xbb\xbf{"messages":[{"content":"x"}]}',
        b'{"messages":[{"content":"1e999 and 1e5"}],"seed":123456789}',
        b'{"messages":[{"content":"x\\u0000y\\ud83d\\ude00"}]}',
        b'{"messages":[{"content":"x"}],"stream":true,"stream":false}',
    ],
)
async def test_odd_but_valid_json_is_taken(body: bytes, client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, content=body)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("body", [[], "text", 5, None, True])
async def test_json_that_is_no_object_is_a_422(body: Any, client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, content=json.dumps(body))
    assert response.status_code == 422, response.text
    HTTPValidationError.model_validate(response.json())
    assert response.json()["error"]["message"] == "Input should be an object"


async def test_a_body_labelled_as_something_else_is_a_415(client: httpx.AsyncClient) -> None:
    for label in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        response = await client.post(CHAT, content=b"{}", headers={"content-type": label})
        assert response.status_code == 415
        assert response.json()["error"]["code"] == "unsupported_media_type"


async def test_a_json_media_type_with_a_suffix_is_json(client: httpx.AsyncClient) -> None:
    label = "application/vnd.api+json; charset=utf-8"
    response = await client.post(CHAT, json=HELLO, headers={"content-type": label})
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "code"),
    [
        (CHAT, {}, 422, "messages", "missing_required_parameter"),
        (CHAT, {"messages": None}, 422, "messages", "invalid_type"),
        (CHAT, {"messages": []}, 422, "messages", "invalid_value"),
        (CHAT, {**HELLO, "stream": 0}, 422, "stream", "invalid_type"),
        (CHAT, {**HELLO, "use_context": "yes"}, 422, "use_context", "invalid_type"),
        (CHAT, {"messages": [{"role": "king"}]}, 422, "messages[0].role", "invalid_value"),
        (CHAT, {"messages": [{"content": 5}]}, 422, "messages[0].content", "invalid_type"),
        (CHAT, {**HELLO, "temperature": 2.5}, 400, "temperature", "invalid_value"),
        (CHAT, {**HELLO, "temperature": True}, 400, "temperature", "invalid_type"),
        (CHAT, {**HELLO, "top_p": -0.1}, 400, "top_p", "invalid_value"),
        (CHAT, {**HELLO, "n": 0}, 400, "n", "invalid_value"),
        (CHAT, {**HELLO, "n": 129}, 400, "n", "invalid_value"),
        (CHAT, {**HELLO, "max_tokens": -1}, 400, "max_tokens", "invalid_value"),
        (CHAT, {**HELLO, "max_tokens": 10**30}, 400, "max_tokens", "invalid_value"),
        (CHAT, {**HELLO, "seed": 2**63}, 400, "seed", "invalid_value"),
        (CHAT, {**HELLO, "stop": ["a"] * 5}, 400, "stop", "invalid_value"),
        (CHAT, {**HELLO, "logit_bias": {"5": 101}}, 400, "logit_bias", "invalid_value"),
        (CHAT, {**HELLO, "metadata": {"k" * 65: "v"}}, 400, None, "invalid_value"),
        (CHAT, {**HELLO, "citation_style": "footnotes"}, 400, "citation_style", "invalid_value"),
        ("/v1/completions", {}, 422, "prompt", "missing_required_parameter"),
        ("/v1/completions", {"prompt": "x", "logprobs": 6}, 400, "logprobs", "invalid_value"),
        ("/v1/chunks", {"text": "x", "limit": -1}, 422, "limit", "invalid_value"),
        ("/v1/chunks", {"text": "x", "limit": 1e20}, 422, "limit", "invalid_type"),
        ("/v1/chunks", {"text": "x", "limit": 10**20}, 422, "limit", "invalid_value"),
        ("/v1/chunks", {"text": "x", "limit": True}, 422, "limit", "invalid_type"),
        ("/v1/chunks", {"text": "x", "limit": "10"}, 422, "limit", "invalid_type"),
        ("/v1/chunks", {"text": "x", "limit": 0}, 422, "limit", "invalid_value"),
        ("/v1/chunks", {"text": "x", "limit": 101}, 422, "limit", "invalid_value"),
        ("/v1/chunks", {"text": "x", "prev_next_chunks": 11}, 422, "prev_next_chunks", None),
        ("/v1/chunks", {"text": "x", "context_filter": []}, 422, "context_filter", None),
        ("/v1/embeddings", {}, 422, "input", "missing_required_parameter"),
        ("/v1/embeddings", {"input": "x", "dimensions": 0}, 400, "dimensions", "invalid_value"),
        ("/v1/embeddings", {"input": ["x"] * 2049}, 422, "input", None),
        ("/v1/ingest/text", {"file_name": "x"}, 422, "text", "missing_required_parameter"),
    ],
)
async def test_a_body_that_does_not_fit_names_its_field(
    path: str,
    body: dict[str, Any],
    status: int,
    param: str | None,
    code: str | None,
    client: httpx.AsyncClient,
) -> None:
    response = await client.post(path, json=body)
    assert response.status_code == status, response.text
    HTTPValidationError.model_validate(response.json())
    error = response.json()["error"]
    if param is not None:
        assert error["param"] == param
    if code is not None:
        assert error["code"] == code


async def test_five_megabytes_of_wrong_type_are_not_echoed(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/v1/chunks", json={"text": "x", "limit": SECRET * 200_000, "context_filter": SECRET}
    )
    assert response.status_code == 422
    assert SECRET not in response.text
    assert len(response.content) < 2_000


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": 5, "content": SECRET}] * 10_000},
        {"messages": [5] * 1_000_000},
        {"messages": [{"content": [SECRET] * 100_000}]},
        {**HELLO, "logit_bias": {str(token): SECRET for token in range(100_000)}},
        {**HELLO, "metadata": {str(key): SECRET for key in range(100_000)}},
        {**HELLO, "context_filter": {"docs_ids": [5] * 100_000}},
        {**HELLO, "context_filter": {"metadata": {str(key): [key] for key in range(100_000)}}},
        {**HELLO, "tools": [SECRET] * 100_000},
    ],
    ids=["messages", "numbers", "parts", "bias", "metadata", "ids", "filter", "tools"],
)
async def test_a_hundred_thousand_wrong_items_are_told_in_one(
    body: dict[str, Any], client: httpx.AsyncClient
) -> None:
    response = await client.post(CHAT, json=body)
    assert response.status_code in {400, 422}
    assert len(response.json()["detail"]) == 1
    assert len(response.content) < 1_000
    assert SECRET not in response.text


async def test_at_most_twenty_places_are_told(client: httpx.AsyncClient) -> None:
    response = await client.post(
        CHAT, json={**HELLO, **dict.fromkeys(ChatBody.model_fields.keys() - {"messages"}, ())}
    )
    assert response.status_code == 422
    assert len(response.json()["detail"]) == MAX_DETAILS


async def test_a_wrong_query_is_told_as_a_wrong_body_is(client: httpx.AsyncClient) -> None:
    for query in ("limit=0", "limit=x", "limit=true", "limit=1e3"):
        response = await client.get(f"/v1/ingest/list?{query}")
        assert response.status_code == 422
        assert response.json()["error"]["param"] == "limit"
        HTTPValidationError.model_validate(response.json())


class TestRequestIds:
    async def test_every_reply_has_an_id_under_both_names(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.answers.script = [errors.EngineFailed("x")]
        for method, path in (("GET", "/health"), ("GET", "/nowhere"), ("POST", CHAT)):
            response = await client.request(method, path, json=HELLO)
            assert response.headers["x-request-id"].startswith("req_")
            assert response.headers["request-id"] == response.headers["x-request-id"]

    async def test_a_sane_id_of_the_client_is_kept(self, client: httpx.AsyncClient) -> None:
        response = await client.get("/health", headers={"X-Request-ID": "trace-7.A_b"})
        assert response.headers["x-request-id"] == "trace-7.A_b"
        assert response.headers["request-id"] == "trace-7.A_b"

    @pytest.mark.parametrize("given", [b"", b"x" * 129, b"a b", "é".encode(), b"a\tb", b"<script>"])
    async def test_any_other_id_is_replaced(self, given: bytes, client: httpx.AsyncClient) -> None:
        response = await client.get("/health", headers=[(b"X-Request-ID", given)])
        assert response.headers["x-request-id"].startswith("req_")


class TestCors:
    async def test_no_origin_may_read_by_default(self, client: httpx.AsyncClient) -> None:
        response = await client.get("/health", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in response.headers
        preflight = await client.options(
            CHAT,
            headers={
                "Origin": "https://evil.example",
                "Access-Control-Request-Method": "POST",
            },
        )
        assert preflight.status_code == 403
        assert "access-control-allow-origin" not in preflight.headers

    async def test_an_origin_that_the_operator_names_may(self, new_client: NewClient) -> None:
        options = ApiOptions(cors_origins=("https://app.example",))
        async with new_client(options) as client:
            for origin, allowed in (
                ("https://app.example", "https://app.example"),
                ("https://evil.example", None),
            ):
                response = await client.get("/health", headers={"Origin": origin})
                assert response.headers.get("access-control-allow-origin") == allowed

    async def test_a_page_of_such_an_origin_may_send_keys_and_json(
        self, new_client: NewClient
    ) -> None:
        asks = {
            "Origin": "https://app.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
            "Access-Control-Request-Private-Network": "true",
        }
        async with new_client(ApiOptions(cors_origins=("https://app.example",))) as client:
            preflight = await client.options(CHAT, headers=asks)
            assert preflight.status_code == 200
            assert preflight.headers["access-control-allow-private-network"] == "true"
            assert "x-stainless-os" in preflight.headers["access-control-allow-headers"]
            asks |= {"Access-Control-Request-Method": "HEAD"}
            assert (await client.options("/v1/models", headers=asks)).status_code == 200
            refused = await client.options(CHAT, headers=asks | {"Origin": "https://evil.example"})
            assert "access-control-allow-origin" not in refused.headers


async def test_an_authorization_of_any_bytes_is_no_failure(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/models", headers=[(b"Authorization", "Bearer é".encode())])
    assert response.status_code == 200
