"""/v1/messages as Anthropic's JavaScript SDK sees it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.anthropic_server import FORECAST, RESULTS, anthropic_server
from tests.e2e.server import RunningServer

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = Path(__file__).parent / "anthropic_node"
FILES = ("package.json", "package-lock.json", "sdk.mjs")


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder with the SDK, kept in pytest's cache between runs."""
    if not (shutil.which("npm") and shutil.which("node")) and not os.environ.get("CI"):
        pytest.skip("node and npm are not on this machine")
    cache: Any = request.config.cache
    folder: Path = cache.mkdir("anthropic-node")
    lock = (NODE / "package-lock.json").read_bytes()
    kept = folder / "package-lock.json"
    fresh = kept.exists() and kept.read_bytes() == lock and (folder / "node_modules").exists()
    for name in FILES:
        shutil.copy(NODE / name, folder / name)
    if not fresh:
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=150)
    return folder


def test_create_and_stream_keep_citations_and_sources(folder: Path, tmp_path: Path) -> None:
    with anthropic_server(tmp_path) as base_url:
        run = subprocess.run(
            ["node", "sdk.mjs", base_url],
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert run.returncode == 0, run.stderr
    seen: dict[str, Any] = json.loads(run.stdout)
    sources = [
        {"index": number, "title": result.title, "url": result.url}
        for number, result in enumerate(RESULTS, start=1)
    ]
    assert seen["plain"] == seen["streamed"] == seen["final"] == FORECAST
    assert seen["sources"] == seen["deltaSources"] == seen["finalSources"] == sources
    assert [one["url"] for one in seen["citations"]] == [one.url for one in RESULTS[:2]]
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
