"""/v1/messages as Anthropic's JavaScript SDK sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.anthropic_server import anthropic_server
from tests.e2e.packages import node_folder, run_node
from tests.e2e.server import RunningServer
from tests.fakes.websearch import FORECAST, LISBON

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = Path(__file__).parent / "anthropic_node"


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder with the SDK, kept in pytest's cache between runs."""
    return node_folder(request, "anthropic-node", NODE)


def test_create_and_stream_keep_citations_and_sources(folder: Path, tmp_path: Path) -> None:
    with anthropic_server(tmp_path) as base_url:
        seen = run_node(folder, base_url)
    sources = [
        {"index": number, "title": result.title, "url": result.url}
        for number, result in enumerate(LISBON, start=1)
    ]
    assert seen["plain"] == seen["streamed"] == seen["final"] == FORECAST
    assert seen["sources"] == seen["deltaSources"] == seen["finalSources"] == sources
    assert [one["url"] for one in seen["citations"]] == [one.url for one in LISBON[:2]]
    assert seen["finalCitations"] == seen["citations"]
    assert seen["stop"] == "end_turn"
    assert seen["tokens"] > 0
    failure = seen["failure"]
    assert failure["requestID"].startswith("req_")
    assert (failure["name"], failure["status"], failure["type"]) == (
        "NotFoundError",
        404,
        "not_found_error",
    )


def test_the_example_runs_as_it_is(folder: Path, server: RunningServer) -> None:
    # node looks for packages beside the script.
    script = Path(shutil.copytree(EXAMPLES, folder / "examples", dirs_exist_ok=True))
    run = subprocess.run(
        ["node", str(script / "anthropic_sdk.mjs")],
        check=False,
        env={**os.environ, "BASE_URL": server.base_url},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert " tokens" in run.stdout
    assert " false " not in run.stdout
