"""The edge as the last OpenAI SDK of the first generation sees it, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privategpt.api.deps import ApiOptions
from tests.e2e import packages
from tests.fakes.edge import Edge
from tests.fakes.events import grounded_answer
from tests.fakes.serving import served

# Without their dependencies: all but distro are in this environment already.
REQUIREMENTS = ("openai==1.109.1", "distro==1.9.0")
SCRIPT = Path(__file__).parent / "sdk_openai_1109.py"


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Path:
    """A folder with that SDK, kept in pytest's cache between runs."""
    return packages.kept(
        request,
        "openai-1.109.1",
        lambda folder: packages.library(folder, "--no-deps", *REQUIREMENTS),
    )


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    edge = Edge()
    edge.answers.script = list(grounded_answer().events)
    with served(edge, ApiOptions(heartbeat_s=0.05)) as url:
        yield f"{url}/v1"


def test_everything_the_sdk_can_ask_is_answered_as_it_expects(library: Path, base_url: str) -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), base_url],
        check=False,
        env={**os.environ, "PYTHONPATH": str(library), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    seen: dict[str, Any] = json.loads(run.stdout)
    text = grounded_answer().text
    annotations = ["Title 2", "Title 1"]
    assert seen == {
        "version": "1.109.1",
        "plain": text,
        "annotations": annotations,
        "sources": 3,
        "citations": 3,
        "streamed": text,
        "usage": 11,
        "helper": text,
        "helper_role": "assistant",
        "helper_annotations": annotations,
        "legacy": text,
        "embeddings": [[0.0, 3.0, 0.5, -1.0], [1.0, 1.0, 0.5, -1.0]],
        "models": ["private-gpt", "private-gpt-docs", "org/model:tag", "all-minilm"],
        "retrieved": "org/model:tag",
        "failure": ["NotFoundError", 404, "model_not_found", "model"],
        "unfit": ["UnprocessableEntityError", 422, "invalid_value", "messages"],
    }
