"""Real passages through the real command line, with the real model; once killed, and run again."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from benchmarks.scale.corpus import PASSAGES_PER_FILE, as_sections, passages
from benchmarks.scale.notebook import Notebook

PASSAGES = 136_000
"""Short ones share a chunk, so that these become some 100,000."""

KILLED_AT_FILES = 100
LOOK_S = 5.0
TIMEOUT_S = 4 * 3600.0

READY_FILES = "SELECT count(*) FROM files WHERE state = 'ready'"
READY_CHUNKS = """
    SELECT count(*) FROM chunks JOIN documents USING (doc_id) JOIN files USING (file_id)
    WHERE files.state = 'ready'
"""

Tell = Callable[[str], None]


async def ingest_real(work: Path, corpus: Path, *, notebook: Notebook, tell: Tell) -> None:
    """Ingest a folder of files, kill it on the way, and go on."""
    if notebook.find("real") is not None:
        return
    folder = await asyncio.to_thread(write_folder, work / "real-files", corpus)
    data_dir = work / "real"
    if notebook.find("real killed") is None:
        await asyncio.to_thread(_kill_on_the_way, folder, data_dir, notebook, tell)
    await asyncio.to_thread(_ingest, folder, data_dir, notebook, tell)


def write_folder(folder: Path, corpus: Path) -> Path:
    """Markdown files of passages from all over the corpus; those that are there stay."""
    total = sum(1 for _ in passages(corpus))
    folder.mkdir(parents=True, exist_ok=True)
    source = islice(passages(corpus, every=max(1, total // PASSAGES)), PASSAGES)
    number = 0
    while found := list(islice(source, PASSAGES_PER_FILE)):
        path = folder / f"{number:05}.md"
        if not path.exists():
            path.write_text(as_sections(found), encoding="utf-8")
        number += 1
    return folder


def _kill_on_the_way(folder: Path, data_dir: Path, notebook: Notebook, tell: Tell) -> None:
    with _command(folder, data_dir) as process:
        while process.poll() is None and _stored(data_dir)[0] < KILLED_AT_FILES:
            time.sleep(LOOK_S / 10)
        process.send_signal(signal.SIGKILL)
        process.wait()
    files, chunks = _stored(data_dir)
    tell(f"killed with {files} files and {chunks:,} chunks stored")
    notebook.note("real killed", {"files": files, "chunks": chunks})


def _ingest(folder: Path, data_dir: Path, notebook: Notebook, tell: Tell) -> None:
    _, before = _stored(data_dir)
    started, processor = time.perf_counter(), _children_s()
    with _command(folder, data_dir) as process:
        while process.poll() is None:
            if time.perf_counter() - started > TIMEOUT_S:
                process.kill()
                raise TimeoutError("The ingestion takes too long")
            time.sleep(LOOK_S)
            files, chunks = _stored(data_dir)
            pace = (chunks - before) / (time.perf_counter() - started)
            tell(f"{files:,} files, {chunks:,} chunks stored, {pace:.0f}/s")
        said = process.stdout.read() if process.stdout else ""
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"The ingestion failed:\n{said[-2000:]}")
    files, chunks = _stored(data_dir)
    known = re.search(r"(\d+) already there", said)
    notebook.note(
        "real",
        {
            "files": files,
            "chunks": chunks,
            "new_chunks": chunks - before,
            "already_there": int(known[1]) if known else 0,
            "seconds": seconds,
            "processor_s": _children_s() - processor,
            "check": _check(data_dir),
        },
    )


def _check(data_dir: Path) -> str:
    """What `privategpt check` says."""
    command = [sys.executable, "-m", "privategpt", "check", "--data-dir", str(data_dir)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    ).stdout.strip()


def _command(folder: Path, data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            *("-m", "privategpt", "ingest", str(folder), "--data-dir", str(data_dir)),
        ],
        env={name: value for name, value in os.environ.items() if "PRIVATEGPT_" not in name},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _stored(data_dir: Path) -> tuple[int, int]:
    """Files that are ready and their chunks, as another process sees them."""
    path = data_dir / "state.db"
    if not path.exists():
        return 0, 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        try:
            (files,) = database.execute(READY_FILES).fetchone()
            (chunks,) = database.execute(READY_CHUNKS).fetchone()
        except sqlite3.OperationalError:  # the tables are not there yet
            return 0, 0
    return files, chunks


def _children_s() -> float:
    """The processors' time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
