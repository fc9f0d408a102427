"""The curve: ever larger libraries with cheap vectors, served by real servers."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from benchmarks.scale.asking import measure_served
from benchmarks.scale.corpus import questions
from benchmarks.scale.filling import cheap_model, fill, store_large
from benchmarks.scale.notebook import Notebook

POINTS = (1_000, 10_000, 20_000, 100_000, 450_000, 1_000_000)
LARGE_PASSAGES = 5_000
OPTIMIZE_TIMEOUT_S = 7200.0

Tell = Callable[[str], None]


async def fill_points(
    work: Path, corpus: Path, *, points: Sequence[int], notebook: Notebook, tell: Tell
) -> None:
    """Let one library grow, and keep a copy of it at every point, with a large file more."""
    embedding = await cheap_model()
    library = work / "growing"
    before = 0
    for point in sorted(points):
        if notebook.find(f"filled {point}") is None:
            async with aclosing(
                fill(library, corpus, embedding=embedding, first=before, last=point)
            ) as steps:
                async for filled in steps:
                    tell(
                        f"{before + filled.chunks:,} of {point:,} chunks stored, "
                        f"{filled.chunks / filled.seconds:,.0f}/s"
                    )
            copy = copy_of(work, point)
            await asyncio.to_thread(_copy, library, copy)
            large = min(LARGE_PASSAGES, point // 4)
            file_id = await store_large(copy, corpus, embedding=embedding, passages=large)
            notebook.note(
                f"filled {point}",
                {
                    "chunks": point - before,
                    "seconds": filled.seconds,
                    "processor_s": filled.processor_s,
                    "state_mb": _disk_mb(library / "state.db"),
                    "index_mb": _disk_mb(library / "vectors"),
                    "large": file_id,
                    "large_chunks": large,
                },
            )
        before = point


async def measure_points(
    work: Path, corpus: Path, *, points: Sequence[int], notebook: Notebook, tell: Tell
) -> None:
    """Serve every copy as it is and then optimized; a point that was measured is left out."""
    asked = await asyncio.to_thread(questions, corpus)
    for point in sorted(points):
        filled = notebook.find(f"filled {point}")
        if filled is None:
            continue
        copy = copy_of(work, point)
        if notebook.find(f"served {point}") is None:
            tell(f"serving {point:,} chunks")
            served = await measure_served(copy, asked, large=str(filled["large"]), tell=tell)
            notebook.note(f"served {point}", served)
        if notebook.find(f"optimized {point}") is None:
            tell(f"optimizing {point:,} chunks")
            seconds = await asyncio.to_thread(optimize, copy)
            served = await measure_served(copy, asked, large=None, tell=tell)
            index = {"optimize_s": seconds, "index_mb": _disk_mb(copy / "vectors")}
            notebook.note(f"optimized {point}", {**served, **index})


def copy_of(work: Path, point: int) -> Path:
    """The folder of the library of that size."""
    return work / f"at-{point}"


def optimize(data_dir: Path) -> float:
    """Run `privategpt optimize` on it; the seconds."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "privategpt", "optimize", "--data-dir", str(data_dir)],
        check=True,
        capture_output=True,
        timeout=OPTIMIZE_TIMEOUT_S,
    )
    return time.perf_counter() - started


def _copy(library: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(library, copy)


def _disk_mb(path: Path) -> float:
    """What it takes on the disk: the index's files have holes."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6
