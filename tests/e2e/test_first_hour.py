"""What a newcomer does in the first hour, against a real server with the bundled models."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from reportlab.pdfgen.canvas import Canvas

from tests.e2e.server import RunningServer, running_server

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACES = ("Aalborg", "Bergen", "Cadiz", "Dublin", "Evora", "Faro", "Genoa", "Hull", "Izmir", "Jena")


def _ten_pages() -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    for number, place in enumerate(PLACES, start=1):
        canvas.drawString(72, 720, f"The office in {place} was opened in {1900 + number}.")
        canvas.drawString(72, 700, f"Its archive in {place} holds {number * 111} boxes of letters.")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _ask(client: httpx.Client, *, stream: bool) -> dict[str, Any]:
    body = {
        "model": "private-gpt",
        "messages": [{"role": "user", "content": "When was the office in Dublin opened?"}],
        "use_context": True,
        "max_tokens": 40,
        "stream": stream,
    }
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    if not stream:
        choice: dict[str, Any] = answer.json()["choices"][0]
        return {"text": choice["message"]["content"], "sources": choice["sources"]}
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    choices = [json.loads(line)["choices"][0] for line in lines]
    return {
        "text": "".join(choice["delta"].get("content") or "" for choice in choices),
        "sources": choices[-1]["sources"],
    }


def _pages(sources: list[dict[str, Any]]) -> set[str]:
    return {source["document"]["doc_metadata"]["page_label"] for source in sources}


def test_a_pdf_is_ingested_asked_listed_kept_over_a_restart_and_deleted(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with (
        running_server(data_dir) as server,
        httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as client,
    ):
        files = {"file": ("offices.pdf", _ten_pages(), "application/pdf")}
        ingested = client.post("/v1/ingest", files=files).json()["data"]
        assert [doc["doc_metadata"]["page_label"] for doc in ingested] == [
            str(page) for page in range(1, 11)
        ]
        for stream in (False, True):
            answer = _ask(client, stream=stream)
            assert answer["text"].strip()
            assert "4" in _pages(answer["sources"])
        assert client.get("/v1/ingest/list").json()["data"] == ingested

    assert server.process.wait(timeout=30) == 0
    with (
        running_server(data_dir) as server,
        httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as client,
    ):
        assert client.get("/v1/ingest/list").json()["data"] == ingested
        assert "4" in _pages(_ask(client, stream=False)["sources"])
        file_id = ingested[0]["doc_metadata"]["file_id"]
        assert client.delete(f"/v1/ingest/{file_id}").status_code == 200
        assert client.get("/v1/ingest/list").json()["data"] == []
        assert _ask(client, stream=False)["sources"] == []


def test_the_banner_says_what_is_used_and_where_the_docs_are(server: RunningServer) -> None:
    for word in ("smollm2", "MiniLM", "Qdrant Edge", str(server.data_dir), "/docs"):
        assert word in server.banner


def test_a_second_server_on_the_same_folder_is_refused_by_name(server: RunningServer) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "privategpt", "serve", "--data-dir", str(server.data_dir)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert second.returncode == 1
    assert str(server.data_dir) in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize("script", ["curl.sh", "openai_sdk.py", "openai_sdk.mjs"])
def test_an_example_runs_as_it_is(server: RunningServer, script: str, node_modules: Path) -> None:
    path = EXAMPLES / script
    runner = {".sh": "bash", ".py": sys.executable, ".mjs": "node"}[path.suffix]
    if shutil.which(runner) is None and not os.environ.get("CI"):
        pytest.skip(f"{runner} is not on this machine")
    if path.suffix == ".mjs":  # node looks for packages beside the script
        path = Path(shutil.copytree(EXAMPLES, node_modules.parent / "examples")) / script
    done = subprocess.run(
        [runner, str(path)],
        env={**os.environ, "BASE_URL": server.base_url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "handbook.md" in done.stdout
    assert httpx.get(f"{server.base_url}/v1/ingest/list", trust_env=False).json()["data"] == []
