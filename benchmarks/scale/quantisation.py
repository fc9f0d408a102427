"""What searching by codes costs in recall and gains in time and memory, on real vectors."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import qdrant_edge as qe

from benchmarks.scale.corpus import questions
from benchmarks.scale.disk import disk_mb
from benchmarks.scale.notebook import Figure, Notebook
from benchmarks.scale.records import PAGE, every_record
from privategpt.backends.vectors.pages import release_pages
from privategpt.backends.vectors.points import DENSE
from privategpt.backends.vectors.quantization import Quantization, edge_search
from privategpt.backends.vectors.shard import open_shard, optimize_folder
from privategpt.settings import load_settings
from privategpt.wiring.engines import load_embedding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]
    """A unit vector a row."""

KINDS: tuple[Quantization, ...] = ("none", "int8", "turbo", "binary")
DEPTH = 100
"""Candidates by meaning, as the product asks for them."""

BEST = 10
ASKED = 500

Tell = Callable[[str], None]


async def measure_quantisation(work: Path, corpus: Path, *, notebook: Notebook, tell: Tell) -> None:
    """Take the vectors of the real passages and search them under every quantization."""
    missing: list[Quantization] = [
        kind for kind in KINDS if notebook.find(f"quantization {kind}") is None
    ]
    if not missing:
        return
    vectors = await asyncio.to_thread(read_vectors, work / "real" / "vectors")
    asked = await embedded(questions(corpus)[:ASKED])
    truth = await asyncio.to_thread(nearest, vectors, asked)
    for kind in missing:
        trial = Trial(work / f"codes-{kind}", kind, vectors=vectors, asked=asked, truth=truth)
        tell(f"{len(vectors):,} vectors, quantization {kind}")
        notebook.note(f"quantization {kind}", await asyncio.to_thread(trial.run))


async def embedded(texts: list[str]) -> Matrix:
    """Queries' vectors by the configured model."""
    model = await load_embedding(load_settings({}).embedding)
    try:
        found = [(await model.embed_query(text)).vectors[0] for text in texts]
    finally:
        await model.close()
    return np.array(found, dtype=np.float32)


def read_vectors(path: Path) -> Matrix:
    """Every vector of the shard in that folder, which no process may have open."""
    shard = qe.EdgeShard.load(str(path))
    try:
        records = every_record(shard, vectors=[DENSE])
        rows = [cast("dict[str, list[float]]", record.vector)[DENSE] for record in records]
        return np.array(rows, dtype=np.float32)
    finally:
        shard.close()


def nearest(vectors: Matrix, asked: Matrix) -> list[set[int]]:
    """For every query the rows of the `BEST` by exact cosine."""
    scores = asked @ vectors.T
    best = np.argpartition(-scores, BEST, axis=1)[:, :BEST]
    return [set(row) for row in best.tolist()]


@dataclass(frozen=True, slots=True)
class Trial:
    """One quantization of the same vectors, with the same queries."""

    folder: Path
    kind: Quantization
    vectors: Matrix
    asked: Matrix
    truth: list[set[int]]

    def run(self) -> dict[str, Figure]:
        """As it was written, then optimized."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._write()
        figures: dict[str, Figure] = {"vectors": float(len(self.vectors))}
        figures |= self._search("plain")
        started = time.process_time()
        optimize_folder(self.folder)
        figures["optimize_processor_s"] = time.process_time() - started
        figures |= self._search("graph")
        shutil.rmtree(self.folder)
        return figures

    def _write(self) -> None:
        shard = open_shard(self.folder, dimensions=self.vectors.shape[1], quantization=self.kind)
        for start in range(0, len(self.vectors), PAGE):
            rows = self.vectors[start : start + PAGE].tolist()
            points = [
                qe.Point(id=start + number, vector={DENSE: row}) for number, row in enumerate(rows)
            ]
            shard.write([qe.UpdateOperation.upsert_points(points)])
        shard.close()

    def _search(self, when: str) -> dict[str, Figure]:
        before = _resident_mb()
        shard = qe.EdgeShard.load(str(self.folder))
        release_pages(self.folder)
        figures: dict[str, Figure] = {}
        ways = {"": edge_search(self.kind)}
        if self.kind != "none":
            unscored = qe.QuantizationSearchParams(rescore=False)
            ways["codes_"] = qe.SearchParams(quantization=unscored)
        for way, params in ways.items():
            started = time.process_time()
            found = [self._found(shard, row, params) for row in self.asked]
            spent = time.process_time() - started
            kept = sum(len(a & b) for a, b in zip(found, self.truth, strict=True))
            figures[f"{when}_{way}recall"] = kept / (BEST * len(self.truth))
            figures[f"{when}_{way}processor_ms"] = 1000 * spent / len(self.asked)
            if not way:
                figures[f"{when}_mb"] = _resident_mb() - before
        shard.close()
        figures[f"{when}_disk_mb"] = disk_mb(self.folder)
        return figures

    def _found(self, shard: qe.EdgeShard, row: Matrix, params: qe.SearchParams | None) -> set[int]:
        wanted = qe.Query.Nearest(row.tolist(), using=DENSE)
        found = shard.query(qe.QueryRequest(limit=DEPTH, query=wanted, params=params))
        return {cast("int", point.id) for point in found[:BEST]}


def _resident_mb() -> float:
    """Of this process, pages of files included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("The kernel tells no resident memory")
