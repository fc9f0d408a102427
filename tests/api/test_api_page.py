"""What docs/api.md shows can be sent as it is."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
POSTS = re.findall(r"\$ curl http://127\.0\.0\.1:8001(\S+) .*?-d '(.*?)'", PAGE, re.DOTALL)


@pytest.mark.parametrize(("path", "body"), POSTS, ids=[path for path, _ in POSTS])
async def test_a_body_on_the_page_is_taken(client: httpx.AsyncClient, path: str, body: str) -> None:
    response = await client.post(path, json=json.loads(body))
    assert response.status_code == 200, response.text


def test_there_is_a_body_for_every_family_of_endpoints() -> None:
    assert {path for path, _ in POSTS} == {
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/ingest/text",
        "/v1/chunks",
        "/v1/rerank",
    }


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_python_on_the_page_is_python(code: str) -> None:
    ast.parse(code)


async def test_fields_on_the_page_are_fields_of_the_api(client: httpx.AsyncClient) -> None:
    schemas: dict[str, Any] = (await client.get("/openapi.json")).json()["components"]["schemas"]
    section = PAGE.partition("## Answers from your documents")[2].partition("```")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert named
    for body in ("ChatBody", "CompletionsBody", "MessagesBody"):
        assert named <= set(schemas[body]["properties"]), body
    ours = set(schemas["CountTokensBody"]["properties"]) - {
        "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
    }  # fmt: skip
    assert ours == named
