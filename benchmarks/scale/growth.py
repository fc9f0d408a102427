"""The curve: ever larger libraries with cheap vectors, served by real servers."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path

import qdrant_edge as qe

from benchmarks.scale.asking import measure_served
from benchmarks.scale.corpus import questions
from benchmarks.scale.disk import disk_mb
from benchmarks.scale.filling import NOTHING, cheap_model, fill, store_large
from benchmarks.scale.notebook import Notebook
from benchmarks.scale.records import PAGE, every_record
from privategpt.backends.vectors.layout import read_layout
from privategpt.backends.vectors.points import DENSE, WORDS
from privategpt.backends.vectors.quantization import Quantization
from privategpt.backends.vectors.shard import open_shard

POINTS = (1_000, 10_000, 20_000, 100_000, 450_000, 1_000_000)
LARGE_PASSAGES = 5_000
PLAIN: Quantization = "none"
PLAIN_FROM = 100_000
"""Chunks from which on it is measured what a search takes without codes."""
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
            filled = NOTHING
            async with aclosing(
                fill(library, corpus, embedding=embedding, first=before, last=point)
            ) as steps:
                async for filled in steps:
                    tell(f"{before + filled.chunks:,} of {point:,} chunks, {filled.pace:,.0f}/s")
            copy = copy_of(work, point)
            await asyncio.to_thread(_copy, library, copy)
            large = min(LARGE_PASSAGES, point // 4)
            file_id = await store_large(copy, corpus, embedding=embedding, passages=large)
            notebook.note(
                f"filled {point}",
                {
                    "new": filled.new,
                    "seconds": filled.seconds,
                    "processor_s": filled.processor_s,
                    "state_mb": disk_mb(library / "state.db"),
                    "index_mb": disk_mb(library / "vectors"),
                    "large": file_id,
                    "large_chunks": large,
                },
            )
        before = point


async def measure_points(
    work: Path, corpus: Path, *, points: Sequence[int], notebook: Notebook, tell: Tell
) -> None:
    """Serve every copy as it was written, then without codes, then optimized; what was measured is
    left out.
    """
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
        if notebook.find(f"plain {point}") is None and point >= PLAIN_FROM:
            tell(f"writing {point:,} chunks without codes")
            plain = copy.with_name(f"{copy.name}-plain")
            await asyncio.to_thread(write_again, copy, plain, quantization=PLAIN)
            index = {"index_mb": disk_mb(plain / "vectors")}
            served = await measure_served(plain, asked, large=None, tell=tell)
            notebook.note(f"plain {point}", {**served, **index})
            await asyncio.to_thread(shutil.rmtree, plain)
        if notebook.find(f"optimized {point}") is None:
            tell(f"optimizing {point:,} chunks")
            seconds = await asyncio.to_thread(optimize, copy)
            served = await measure_served(copy, asked, large=None, tell=tell)
            index = {"optimize_s": seconds, "index_mb": disk_mb(copy / "vectors")}
            notebook.note(f"optimized {point}", {**served, **index})


def write_again(library: Path, copy: Path, *, quantization: Quantization) -> None:
    """A copy of a library as if it had been filled under that quantization."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(library, copy, ignore=shutil.ignore_patterns("vectors"))
    source = qe.EdgeShard.load(str(library / "vectors"))
    records = every_record(source, with_payload=True, vectors=[DENSE, WORDS])
    shard = open_shard(copy / "vectors", dimensions=_dimensions(library), quantization=quantization)
    while page := list(islice(records, PAGE)):
        points = [qe.Point(id=one.id, vector=one.vector or {}, payload=one.payload) for one in page]
        shard.write([qe.UpdateOperation.upsert_points(points)])
    shard.close()
    source.close()


def _dimensions(library: Path) -> int:
    return read_layout(library / "vectors").dimensions


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
