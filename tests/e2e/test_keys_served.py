"""A server process that asks for keys, with the keys that the command line makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from openai import AuthenticationError, OpenAI

from tests.e2e.server import running_server


def command(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "privategpt", *arguments, "--data-dir", str(data_dir)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def created(data_dir: Path, *arguments: str) -> str:
    made = command(data_dir, "keys", "create", *arguments)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def status(base_url: str, path: str, key: str) -> int:
    headers = {"x-api-key": key}
    return httpx.get(f"{base_url}{path}", headers=headers, trust_env=False).status_code


def test_a_server_without_keys_is_not_opened_to_other_machines(tmp_path: Path) -> None:
    refused = command(tmp_path / "data", "serve", "--port", "0", "--host", "0.0.0.0")
    assert refused.returncode == 1
    assert "privategpt keys create" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_keys_come_and_go_while_the_server_runs_and_never_reach_its_log(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    first = created(data_dir, "--label", "first")
    with running_server(data_dir, PRIVATEGPT_SERVER__LOG_FORMAT="json") as server:
        assert "API keys       needed" in server.banner
        with OpenAI(base_url=f"{server.base_url}/v1", api_key=first) as client:
            assert client.models.list().data
        with OpenAI(base_url=f"{server.base_url}/v1", api_key="none") as client:
            with pytest.raises(AuthenticationError) as refused:
                client.models.list()
            assert refused.value.code == "invalid_api_key"

        admin = created(data_dir, "--scope", "admin", "--tenant", "operator")
        assert status(server.base_url, "/metrics", admin) == 200
        assert status(server.base_url, "/metrics", first) == 403
        assert status(server.base_url, "/v1/ingest/list", admin) == 403

        revoked = command(data_dir, "keys", "revoke", first.split("_")[1])
        assert revoked.returncode == 0, revoked.stderr
        assert status(server.base_url, "/v1/models", first) == 401

    log = (tmp_path / "data.log").read_text()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    statuses = [line["status"] for line in lines if line["logger"] == "privategpt.access"]
    # A scrape that went well is told at debug alone.
    assert statuses == [200, 401, 403, 403, 401]
    for key in (first, admin):
        assert key.rpartition("_")[2] not in log
    assert "last used" in command(data_dir, "keys", "list").stdout
