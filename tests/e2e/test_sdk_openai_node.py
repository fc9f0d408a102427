"""The edge as the published OpenAI SDKs for JavaScript see it: this generation and the last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from privategpt.api.deps import ApiOptions
from tests.e2e.packages import node_folder, run_node
from tests.fakes.edge import Edge
from tests.fakes.events import grounded_answer
from tests.fakes.serving import served

NODE = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder with both SDKs, kept in pytest's cache between runs."""
    return node_folder(request, "openai-node", NODE)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    edge = Edge()
    edge.answers.script = list(grounded_answer().events)
    with served(edge, ApiOptions(heartbeat_s=0.05)) as url:
        yield f"{url}/v1"


@pytest.mark.parametrize("package", ["openai", "openai-6"])
def test_everything_the_sdk_can_ask_is_answered_as_it_expects(
    package: str, folder: Path, base_url: str
) -> None:
    seen = run_node(folder, base_url, package)
    answer = grounded_answer()

    assert seen["plain"]["object"] == "chat.completion"
    message = seen["plain"]["choices"][0]["message"]
    assert message["content"] == answer.text
    assert [entry["url_citation"]["title"] for entry in message["annotations"]] == [
        "Title 2",
        "Title 1",
    ]
    assert len(seen["plain"]["sources"]) == 3
    assert len(seen["plain"]["citations"]) == 3
    assert len(seen["plain"]["choices"][0]["sources"]) == 1

    assert seen["streamed"] == answer.text
    assert seen["usage"]["total_tokens"] == 11

    assert seen["final"]["choices"][0]["message"]["content"] == answer.text
    assert seen["final"]["choices"][0]["finish_reason"] == "stop"
    assert seen["final"]["sources"] == seen["plain"]["sources"]
    assert seen["final"]["citations"] == seen["plain"]["citations"]

    assert seen["legacy"] == answer.text
    assert seen["embeddings"] == [[0, 3, 0.5, -1], [1, 1, 0.5, -1]]
    assert seen["models"][0] == "private-gpt"
    assert seen["retrieved"] == "org/model:tag"
    assert seen["failure"] | {"requestID": None, "message": None} == {
        "name": "NotFoundError",
        "status": 404,
        "code": "model_not_found",
        "param": "model",
        "requestID": None,
        "message": None,
    }
    assert seen["failure"]["requestID"].startswith("req_")
    assert "There is no such model" in seen["failure"]["message"]
