"""Servers and clients that the tests of this folder share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import RunningServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests that leave it as they found it."""
    # Two cores run two tests at a time: what takes 20 s alone may take minutes here.
    slow_machine = {"PRIVATEGPT_INGESTION__PARSE_TIMEOUT_S": "600"}
    with running_server(tmp_path_factory.mktemp("server") / "data", **slow_machine) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[httpx.Client]:
    """A plain HTTP client of that server."""
    with httpx.Client(base_url=server.base_url, timeout=800, trust_env=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `node_modules` with the OpenAI SDK; skips where there is no npm outside CI."""
    if shutil.which("npm") is None and not os.environ.get("CI"):
        pytest.skip("npm is not on this machine")
    folder = tmp_path_factory.mktemp("node")
    subprocess.run(
        ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "openai@7.59.0"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=170,
    )
    return folder / "node_modules"
