"""/v1/messages as Anthropic's Python SDKs see it: this generation and the last one before it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import packages
from tests.e2e.anthropic_server import OPINION, READ, anthropic_server, write_pdf
from tests.fakes.websearch import FORECAST, LISBON

SCRIPT = Path(__file__).parent / "sdk_anthropic.py"
SOURCES = [
    {"index": number, "title": result.title, "url": result.url}
    for number, result in enumerate(LISBON, start=1)
]
CITED = [
    {
        "type": "web_search_result_location",
        "url": result.url,
        "title": result.title,
        "cited_text": result.text,
        "encrypted_index": f"{number}:0-{len(result.text)}",
    }
    for number, result in enumerate(LISBON[:2], start=1)
]


@pytest.fixture(scope="module", params=["2.14.0", "0.125.0"])
def version(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest, version: str) -> Path:
    """A folder with that SDK and all it needs, kept in pytest's cache between runs."""
    name = f"anthropic=={version}"
    return packages.kept(request, name, lambda folder: packages.library(folder, name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("messages")
    write_pdf(folder / "tower.pdf")
    return folder


@pytest.fixture(scope="module")
def base_url(folder: Path) -> Iterator[str]:
    with anthropic_server(folder) as url:
        yield url


def test_everything_the_sdk_can_ask_is_answered_as_it_expects(
    library: Path, version: str, folder: Path, base_url: str
) -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), base_url, str(folder / "tower.pdf")],
        check=False,
        env={**os.environ, "PYTHONPATH": str(library), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert run.returncode == 0, run.stderr
    seen: dict[str, Any] = json.loads(run.stdout)
    assert seen["version"] == version

    searched = seen["searched"]
    assert (searched["text"], searched["sources"]) == (FORECAST, SOURCES)
    assert searched["citations"] == CITED
    assert searched["stop"] == ["end_turn", None]
    assert seen["searched_stream"] == searched
    assert seen["delta_sources"] == SOURCES

    assert seen["read"]["text"] == READ
    assert [
        (one["type"], one["document_index"], one["document_title"], one["cited_text"])
        for one in seen["read"]["citations"]
    ] == [
        ("char_location", 0, "Birds", "Herons hunt at dawn."),
        ("page_location", 1, "Towers", "The tower is 42 metres tall."),
    ]
    tower = seen["read"]["citations"][1]
    assert (tower["start_page_number"], tower["end_page_number"]) == (3, 4)
    assert seen["read"]["sources"] is None
    assert seen["read_stream"] == seen["read"]

    assert seen["call"] == ["look_up", {"word": "heron"}, "tool_use"]
    assert seen["call_stream"] == [["look_up", {"word": "heron"}]]
    assert seen["after_call"] == OPINION
    assert seen["stopped"]["text"] == "I "
    assert seen["stopped"]["stop"] == ["stop_sequence", "think"]
    assert seen["tokens"] > 0
    assert seen["models"][0] == "private-gpt"
    assert seen["unknown"][:3] == ["NotFoundError", 404, "not_found_error"]
    assert seen["unfit"][:3] == ["BadRequestError", 400, "invalid_request_error"]
    assert all(failure[3].startswith("req_") for failure in (seen["unknown"], seen["unfit"]))
