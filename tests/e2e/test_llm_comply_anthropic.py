"""/v1/messages against Anthropic's own specification, by the suite of llm-comply."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import packages
from tests.e2e.anthropic_server import THINKING_MODEL, anthropic_server

VERSION = "0.5.0"
RUN = "import sys; from llm_comply.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Path:
    """A folder with the suite, kept in pytest's cache between runs."""
    name = f"llm-comply=={VERSION}"
    return packages.kept(request, name, lambda folder: packages.library(folder, name))


@pytest.mark.parametrize(("model", "passed"), [("private-gpt", 8), (THINKING_MODEL, 9)])
def test_every_test_that_applies_passes(
    library: Path, tmp_path: Path, model: str, passed: int
) -> None:
    with anthropic_server(tmp_path) as base_url:
        command = [sys.executable, "-c", RUN, "--format", "anthropic", "--json"]
        run = subprocess.run(
            [*command, "--base-url", f"{base_url}/v1", "--api-key", "unused", "--model", model],
            check=False,
            env={**os.environ, "PYTHONPATH": str(library), "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=150,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    assert report["summary"] == {
        "total": 9,
        "passed": passed,
        "failed": 0,
        "skipped": 9 - passed,
    }, report
