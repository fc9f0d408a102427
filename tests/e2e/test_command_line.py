"""The `privategpt` command, run as an operator runs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from shutil import rmtree
from zipfile import ZipFile

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "privategpt", *arguments],
        env={**os.environ, "COLUMNS": "200", **environ},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_a_folder_is_ingested_checked_reindexed_and_optimized(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "handbook.md").write_text((EXAMPLES / "handbook.md").read_text())
    (docs / "empty.txt").write_text("")
    with ZipFile(docs / "mail.zip", "w") as mail:
        mail.writestr("note.txt", "The library opens at nine.")
        mail.writestr("empty.txt", "")
    data = ("--data-dir", str(tmp_path / "data"))

    first = run("ingest", str(docs), *data)
    assert first.returncode == 1
    assert "left out: mail.zip/empty.txt: " in first.stdout
    assert "not ingested: empty.txt" in first.stdout
    assert "2 ingested, 0 already there, 1 failed" in first.stdout
    assert "Traceback" not in first.stderr

    (docs / "empty.txt").unlink()
    again = run("ingest", str(docs), *data)
    assert (again.returncode, again.stdout) == (0, "0 ingested, 2 already there, 0 failed\n")

    check = run("check", *data)
    assert (check.returncode, check.stdout) == (0, "sound\n")

    rmtree(tmp_path / "data" / "vectors")
    refused = run("ingest", str(docs), *data)
    assert refused.returncode == 1
    assert "The vector index lacks documents that are stored" in refused.stderr
    assert "`privategpt reindex` mends them" in run("check", *data).stdout
    reindexed = run("reindex", *data)
    assert reindexed.returncode == 0, reindexed.stderr
    assert "chunks indexed" in reindexed.stdout

    optimized = run("optimize", *data)
    assert optimized.returncode == 0, optimized.stderr
    assert run("check", *data).stdout == "sound\n"


def test_a_watched_folder_is_followed_until_it_is_interrupted(tmp_path: Path) -> None:
    note = tmp_path / "docs" / "note.txt"
    note.parent.mkdir()
    note.write_text("The library opens at nine.")
    # Where the tests run in the background of a shell, Ctrl-C is ignored by all that they start.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "privategpt"]
    command += ["ingest", str(note.parent), "--watch"]
    with subprocess.Popen(
        [*command, "--delete-removed", "--interval", "0.1", "--data-dir", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1 ingested, 0 already there, 0 failed\n"
        note.write_text("The library opens at ten, from March on.")
        assert process.stdout.readline() == "1 ingested, 0 already there, 0 failed\n"
        note.unlink()
        assert process.stdout.readline() == "0 ingested, 0 already there, 0 failed, 1 deleted\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def test_what_only_a_watch_does_is_refused_without_one(tmp_path: Path) -> None:
    done = run("ingest", str(tmp_path), "--delete-removed", "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 2
    assert "It needs --watch" in done.stderr


def test_ctrl_c_says_that_nothing_is_lost(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(200):
        (docs / f"{number}.txt").write_text(f"Note {number}. " + "The library opens at nine. " * 50)
    command = ["env", "--default-signal=INT", sys.executable, "-m", "privategpt", "ingest"]
    data = tmp_path / "data"
    with subprocess.Popen(
        [*command, str(docs), "--data-dir", str(data)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while not (data / "vectors").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert "what was ingested stays" in told
    assert "Traceback" not in told


def test_models_says_what_is_configured_and_what_is_on_disk() -> None:
    done = run("models", "--verify", PRIVATEGPT_LLM__MODE="openai", PRIVATEGPT_LLM__MODEL="big")
    assert done.returncode == 0, done.stderr
    for word in ("openai, big", "SmolLM2-135M-Instruct.Q4_1.gguf (verified)", "MiniLM"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PRIVATEGPT_SERVER__PROT": "1"}, "did you mean 'server.port'"),
        ({"PRIVATEGPT_VECTORS__MODE": "server"}, "'vectors.url' is needed"),
        (
            {"PRIVATEGPT_VECTORS__MODE": "server", "PRIVATEGPT_VECTORS__URL": "http://127.0.0.1:9"},
            "'vectors.url': The vector database is not available",
        ),
        ({"PRIVATEGPT_EMBEDDING__MODEL": "/nowhere/model"}, "'embedding.model': there is no fold"),
        ({"PRIVATEGPT_LLM__MODEL_PATH": "nowhere.gguf"}, "nowhere.gguf"),
        ({"PRIVATEGPT_PROFILES": "nowhere"}, "settings-nowhere.yaml"),
    ],
)
def test_what_cannot_start_says_why_in_a_line(
    tmp_path: Path, environ: dict[str, str], message: str
) -> None:
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), **environ)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told_at_once(tmp_path: Path) -> None:

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("serve", "--port", port, "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr
