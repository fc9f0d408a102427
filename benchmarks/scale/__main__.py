"""What a library costs as it grows: files, chunks, memory, disk, time.

    python -m benchmarks.scale --corpus PASSAGES.jsonl [--work FOLDER] [--only NAME…]

The corpus is what build_scale_corpus.py makes. What was measured is kept in the folder, so a run
that was interrupted goes on where it was; it takes some hours and 20 GB of disk in all. `--only`
without a name measures nothing and shows the tables.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from rich.console import Console

from benchmarks.scale.files import measure_files
from benchmarks.scale.growth import POINTS, fill_points, measure_points
from benchmarks.scale.notebook import Notebook
from benchmarks.scale.quantisation import measure_quantisation
from benchmarks.scale.real import ingest_real
from benchmarks.scale.report import put_into, report

WORK = Path(__file__).parent.parent / ".cache" / "scale"


@dataclass(frozen=True, slots=True)
class Run:
    """Where everything is, and how much is measured."""

    corpus: Path
    work: Path
    points: Sequence[int]
    console: Console

    @property
    def notebook(self) -> Notebook:
        """Where the figures are kept."""
        return Notebook(self.work / "figures.jsonl")

    def tell(self, line: str) -> None:
        """Show how far it is."""
        self.console.log(line, highlight=False)


async def _fill(run: Run) -> None:
    await fill_points(run.work, run.corpus, points=run.points, notebook=run.notebook, tell=run.tell)


async def _growth(run: Run) -> None:
    await measure_points(
        run.work, run.corpus, points=run.points, notebook=run.notebook, tell=run.tell
    )


async def _real(run: Run) -> None:
    await ingest_real(run.work, run.corpus, notebook=run.notebook, tell=run.tell)


async def _files(run: Run) -> None:
    await measure_files(run.work, run.corpus, notebook=run.notebook, tell=run.tell)


async def _quantisation(run: Run) -> None:
    await measure_quantisation(run.work, run.corpus, notebook=run.notebook, tell=run.tell)


STEPS: dict[str, Callable[[Run], Awaitable[None]]] = {
    "files": _files,
    "real": _real,
    "fill": _fill,
    "growth": _growth,
    "quantisation": _quantisation,
}


async def measured(run: Run, *, only: Sequence[str]) -> None:
    """One step after the other."""
    for name, step in STEPS.items():
        if name in only:
            await step(run)


def main() -> None:
    """Measure what has not been measured yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default=os.environ.get("PRIVATEGPT_SCALE_CORPUS"))
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--points", type=int, nargs="+", default=POINTS)
    parser.add_argument("--only", nargs="*", choices=STEPS, default=tuple(STEPS))
    parser.add_argument("--into", type=Path, help="a page to put the tables into")
    options = parser.parse_args()
    if options.corpus is None and options.only:
        parser.error("--corpus or PRIVATEGPT_SCALE_CORPUS names the passages")
    options.work.mkdir(parents=True, exist_ok=True)
    corpus = Path(options.corpus or "")
    run = Run(corpus, options.work, options.points, Console(width=110))
    uvloop.run(measured(run, only=options.only))
    tables = report(run.notebook.all())
    if options.into is None:
        print(tables)
    else:
        page = options.into.read_text(encoding="utf-8")
        options.into.write_text(put_into(page, tables), encoding="utf-8")


if __name__ == "__main__":
    main()
