"""What we publish covers PrivateGPT's published contract, and what we send keeps it.

`privategpt_openapi.json` is the OpenAPI of PrivateGPT without its prose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from privategpt.api.deps import ApiOptions
from tests.fakes.asgi import chunks_of
from tests.fakes.edge import Edge
from tests.fakes.events import grounded_answer

SEED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "privategpt_openapi.json").read_text(encoding="utf-8")
)
OURS: dict[str, Any] = Edge().app(ApiOptions()).openapi()
OPERATIONS = [(path, method) for path, item in SEED["paths"].items() for method in item]


def resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = document["components"]["schemas"][name]
    return schema


def types(schema: dict[str, Any], document: dict[str, Any]) -> set[str]:
    """The JSON types that a schema allows; `array[string]` names what is in it."""
    schema = resolved(schema, document)
    if "anyOf" in schema:
        return {found for each in schema["anyOf"] for found in types(each, document)}
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return {"string" if isinstance(value, str) else "other" for value in values}
    if schema.get("type") == "array":
        return {f"array[{inner}]" for inner in types(schema["items"], document)}
    return {schema["type"]} if "type" in schema else {"any"}


def missing(
    seed: dict[str, Any], ours: dict[str, Any], *, where: str, reply: bool
) -> Iterator[str]:
    """Every place where our schema does not cover the seed's."""
    seed, ours = resolved(seed, SEED), resolved(ours, OURS)
    wanted, offered = types(seed, SEED), types(ours, OURS)
    if "any" not in offered | wanted and not wanted <= offered:
        yield f"{where}: {wanted - offered} is not among {offered}"
    if not reply:
        for name in set(ours.get("required", [])) - set(seed.get("required", [])):
            yield f"{where}: {name} is required by us alone"
    for name, field in seed.get("properties", {}).items():
        if name not in ours.get("properties", {}):
            yield f"{where}.{name}: is not there"
            continue
        own = ours["properties"][name]
        for branch in _objects(field, SEED):
            matches = _objects(own, OURS)
            problems = [
                list(missing(branch, match, where=f"{where}.{name}", reply=reply))
                for match in matches
            ]
            yield from min(problems, key=len, default=[f"{where}.{name}: has no object"])
        if not types(field, SEED) <= types(own, OURS):
            yield f"{where}.{name}: {types(field, SEED)} against {types(own, OURS)}"


def _objects(schema: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    schema = resolved(schema, document)
    if "anyOf" in schema:
        return [found for each in schema["anyOf"] for found in _objects(each, document)]
    if schema.get("type") == "array":
        return _objects(schema["items"], document)
    return [schema] if "properties" in schema else []


def body_schema(operation: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    if "requestBody" not in operation:
        return None
    ((media_type, content),) = operation["requestBody"]["content"].items()
    return media_type, content["schema"]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_operation_of_the_seed_is_covered_field_by_field(path: str, method: str) -> None:
    seed, ours = SEED["paths"][path][method], OURS["paths"][path][method]
    assert ours["operationId"] == seed["operationId"]
    wanted, offered = body_schema(seed), body_schema(ours)
    if wanted is not None:
        assert offered is not None
        assert offered[0] == wanted[0]
        assert list(missing(wanted[1], offered[1], where="body", reply=False)) == []
    for status, response in seed["responses"].items():
        reply = response["content"]["application/json"]["schema"]
        own = ours["responses"][status]["content"]["application/json"]["schema"]
        assert list(missing(reply, own, where=f"reply {status}", reply=True)) == []
    seed_parameters = {each["name"] for each in seed.get("parameters", [])}
    own_required = {each["name"] for each in ours.get("parameters", []) if each["required"]}
    assert own_required == seed_parameters


def test_the_comparison_can_fail() -> None:
    body = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    others: list[dict[str, Any]] = [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"text": {"type": "integer"}}},
        {**body, "required": ["text", "more"]},
    ]
    for ours in others:
        assert list(missing(body, ours, where="body", reply=False))


def test_our_document_is_valid_and_every_reference_leads_somewhere() -> None:
    names = set(OURS["components"]["schemas"])
    text = json.dumps(OURS)
    used = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= names
    for schema in OURS["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    ids = [
        operation["operationId"] for item in OURS["paths"].values() for operation in item.values()
    ]
    assert len(ids) == len(set(ids))


class TestReplies:
    """Without a model in the request, what we send is valid by the seed's own schemas."""

    @pytest.fixture(autouse=True)
    def _grounded(self, edge: Edge) -> None:
        edge.answers.script = list(grounded_answer().events)

    async def test_replies_in_one_piece(self, client: httpx.AsyncClient) -> None:
        for path, body in (
            ("/v1/chat/completions", {"messages": [{"content": "Hi"}], "use_context": True}),
            ("/v1/completions", {"prompt": "Hi", "use_context": True}),
        ):
            assert_valid((await client.post(path, json=body)).json(), "OpenAICompletion")

    async def test_streamed_replies(self, client: httpx.AsyncClient) -> None:
        for path, body in (
            ("/v1/chat/completions", {"messages": [{"content": "Hi"}], "stream": True}),
            ("/v1/completions", {"prompt": "Hi", "stream": True}),
        ):
            chunks = chunks_of((await client.post(path, json=body)).text)
            for chunk in chunks:
                assert_valid(chunk, "OpenAICompletion")
            finish = chunks[-1]["choices"][0]
            assert finish["finish_reason"] == "stop"
            assert len(finish["sources"]) == 1

    async def test_everything_else(self, client: httpx.AsyncClient) -> None:
        files = {"file": ("a.txt", b"x")}
        for response, schema in (
            (await client.post("/v1/chunks", json={"text": "x"}), "ChunksResponse"),
            (await client.post("/v1/ingest", files=files), "IngestResponse"),
            (await client.get("/v1/ingest/list"), "IngestResponse"),
            (await client.post("/v1/embeddings", json={"input": "x"}), "EmbeddingsResponse"),
            (await client.get("/health"), "HealthResponse"),
            (await client.post("/v1/chunks", json={}), "HTTPValidationError"),
            (await client.post("/v1/ingest", files={"f": b"x"}), "HTTPValidationError"),
        ):
            assert_valid(response.json(), schema)


def assert_valid(body: Any, schema: str) -> None:
    root = {"$ref": f"#/components/schemas/{schema}", "components": SEED["components"]}
    validator = jsonschema.Draft202012Validator(root)
    problems: Iterator[Any] = validator.iter_errors(body)  # pyright: ignore[reportUnknownMemberType]
    assert list(problems) == []
