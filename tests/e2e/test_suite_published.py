"""The public suites for OpenAI-compatible servers, against a real process of ours.

Each is installed from its registry into an environment of its own, once per cache. The engine is
scripted: these suites look at the wire, and ask for tool calls that no small model makes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.packages import environment, kept, npm_package, source
from tests.e2e.stacks import Stack, ours, stack
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.obliging_engine import TEXT, obliging_engine

SUITE_S = 340
pytestmark = pytest.mark.timeout(SUITE_S + 20)
OPENAI_SERVED = "create or (TestModels or TestAsyncModels) and (retrieve or list)"
OPENAI_EXCEPTED = "Embeddings and (strict or aiohttp) and not all_params"
"""The SDK asks for base64 by itself, and its strict mode then refuses all but floats. A server that
sends floats all the same gives openai-node 6 empty vectors, so this one sends what is asked for."""
SCHEMATHESIS = Path(__file__).parent / "schemathesis.toml"
MODELS = ("private-gpt", "gpt-6-astra")
"""Ours, and the one that OpenAI's own tests ask for by name."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    """Embeddings have one dimension, for the test that asks for one of a model that has many."""
    folder = tmp_path_factory.mktemp("suites")
    profile = {
        "models": [{"id": name} for name in MODELS],
        "answers": {"unknown_model": "default"},
    }
    (folder / "settings-suites.yaml").write_text(json.dumps(profile))
    async with obliging_engine() as engine, EmbeddingServer() as vectors:
        environ = {
            "PRIVATEGPT_PROFILES": "suites",
            "PRIVATEGPT_SETTINGS_FOLDER": str(folder),
            "PRIVATEGPT_EMBEDDING__MODE": "openai",
            "PRIVATEGPT_EMBEDDING__BASE_URL": vectors.url,
            "PRIVATEGPT_EMBEDDING__MODEL": "words",
            "PRIVATEGPT_EMBEDDING__DIMENSIONS": "1",
        }
        async with stack(ours, folder / "data", engine, **environ) as running:
            yield running


async def run(
    *command: str, cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a suite to its end, beside the engine on this loop."""
    return await asyncio.to_thread(
        subprocess.run,
        command,
        cwd=cwd,
        env={**os.environ, "NO_PROXY": "127.0.0.1", **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=SUITE_S,
    )


@pytest.fixture(scope="module")
def llm_comply(request: pytest.FixtureRequest) -> Path:
    return kept(request, "llm-comply", lambda folder: environment(folder, "llm-comply==0.5.0"))


async def test_llm_comply_finds_nothing_in_chat(server: Stack, llm_comply: Path) -> None:
    done = await run(
        str(llm_comply / "bin" / "llm-comply"),
        *("--format", "openai-chat", "--json", "-u", f"{server.url}/v1", "-k", "none"),
        *("-m", "private-gpt-o3"),  # It tells models that think by their names.
    )
    results: dict[str, Any] = {
        result["id"]: result for result in json.loads(done.stdout)["results"]
    }
    # A request without a model: PrivateGPT's own clients send none, so here it is answered.
    assert results.pop("chat-error-handling")["status"] == "failed"
    assert {
        name: (result["status"], result.get("errors", [])) for name, result in results.items()
    } == {
        f"chat-{name}": ("passed", [])
        for name in (
            "basic-response",
            "system-prompt",
            "multi-turn",
            "tool-calling",
            "streaming-response",
            "streaming-usage",
            "image-input",
            "reasoning-summary",
        )
    }


@pytest.fixture(scope="module")
def compatcanary(request: pytest.FixtureRequest) -> Path:
    if not (shutil.which("npm") and shutil.which("node")) and not os.environ.get("CI"):
        pytest.skip("node and npm are not on this machine")
    return kept(request, "compatcanary", lambda folder: npm_package(folder, "compatcanary@0.2.2"))


async def test_compatcanary_gives_full_marks_for_chat(server: Stack, compatcanary: Path) -> None:
    done = await run(
        *("node", "node_modules/compatcanary/src/cli.js", "scan", "--base-url", f"{server.url}/v1"),
        *("--model", "private-gpt", "--profile", "chat", "--format", "json"),
        cwd=compatcanary,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["score"], report["compatible"]) == (100, True), report


@pytest.fixture(scope="module")
def openai_source(request: pytest.FixtureRequest) -> Path:
    folder = kept(request, "openai-source", lambda folder: source(folder, "openai==3.57.0"))
    return folder / "openai-3.57.0"


@pytest.fixture(scope="module")
def openai_environment(request: pytest.FixtureRequest) -> Path:
    packages = (
        "openai[aiohttp]==3.57.0",
        "pytest==9.2.0",
        "pytest-asyncio>=1.4",
        "inline-snapshot",
    )
    return kept(request, "openai-tests", lambda folder: environment(folder, *packages))


async def test_openais_own_tests_of_what_is_served_pass(
    server: Stack, openai_source: Path, openai_environment: Path
) -> None:
    files = ("chat/test_completions.py", "test_completions.py", "test_embeddings.py")
    tests = [f"tests/api_resources/{name}" for name in (*files, "test_models.py")]
    done = await run(
        *(str(openai_environment / "bin" / "python"), "-m", "pytest", *tests),
        *("-k", f"({OPENAI_SERVED}) and not ({OPENAI_EXCEPTED})"),
        *("-q", "-o", "addopts=", "-p", "no:cacheprovider"),
        cwd=openai_source,
        TEST_API_BASE_URL=f"{server.url}/v1",
        PYTEST_ADDOPTS="",  # Ours are not theirs.
    )
    assert done.returncode == 0, done.stdout[-5000:]
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted is not None
    assert int(counted[1]) == 126, done.stdout[-500:]


@pytest.fixture(scope="module")
def frameworks(request: pytest.FixtureRequest) -> Path:
    packages = (
        "langchain-openai==1.7.4",
        "llama-index-llms-openai-like==0.8.1",
        "llama-index-embeddings-openai-like",
    )
    return kept(request, "frameworks", lambda folder: environment(folder, *packages))


async def test_langchain_and_llamaindex_see_an_openai_server(
    server: Stack, frameworks: Path
) -> None:
    script = Path(__file__).parent / "frameworks.py"
    done = await run(str(frameworks / "bin" / "python"), str(script), f"{server.url}/v1")
    assert done.returncode == 0, done.stderr
    text = "".join(TEXT)
    assert json.loads(done.stdout) == {
        "langchain": {
            "chat": text,
            "stream": text,
            "usage": 14,
            "call": ["get_weather", {"city": "Paris"}],
            "structured": {"city": "Paris"},
            "legacy": text,
            "legacy_stream": text,
            "embedded": [1, 2],
        },
        "llamaindex": {
            "chat": text,
            "usage": 14,
            "stream": text,
            "complete": text,
            "legacy": text,
            "legacy_stream": text,
            "embedded": [1, 2],
        },
    }


@pytest.fixture(scope="module")
def schemathesis(request: pytest.FixtureRequest) -> Path:
    return kept(request, "schemathesis", lambda folder: environment(folder, "schemathesis==4.32.5"))


async def test_what_is_served_is_what_the_description_says(
    server: Stack, schemathesis: Path
) -> None:
    """A short run; docs/conformance.md has the command of a long one.

    One check of all is left out: that whatever the schema allows is accepted. No schema can say
    that a file must hold text, or that an engine must know the model. The run is bounded by
    examples, not by time, so that every machine sees the same ones.
    """
    done = await run(
        *(str(schemathesis / "bin" / "schemathesis"), f"--config-file={SCHEMATHESIS}"),
        *("run", f"{server.url}/openapi.json", "--no-color"),
        *("--phases", "examples,coverage,fuzzing"),
        *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
        *("--max-examples", "5", "--generation-deterministic"),
    )
    assert done.returncode == 0, done.stdout[-8000:]
