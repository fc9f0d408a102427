"""Speed and memory of the server, each beside its engine's bare limit, in one table.

    python -m benchmarks [--quick] [--only NAME…]

A server of ours runs in a process of its own, the bare engines in this one; they take turns, so
that only one of them works at a time and the noise of the machine falls on both.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from rich.console import Console

from benchmarks.engines import Engines, Peer, at, open_engines
from benchmarks.library import fill
from benchmarks.measures import chat, embeddings, ingestion, retrieval, starting
from benchmarks.prose import Prose
from benchmarks.rows import ONCE, Effort, Row
from benchmarks.serving import RunningServer, running_server
from benchmarks.table import table
from privategpt.settings import Settings, load_settings
from privategpt.wiring import open_library
from privategpt.wiring.engines import context_tokens

PDF_PAGES = 28
PDF_PAGE_CHARACTERS = 4_200
LARGE_LOAD = 1_000
"""Texts at once from which on one counted turn must do: it takes a quarter of a minute."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    points: int = 20_000
    words_per_chunk: int = 150
    text_bytes: int = 300_000
    pdf_pages: int = PDF_PAGES
    reports: int = 20
    report_pages: int = 10
    starts: int = 3
    embeddings: Sequence[tuple[int, int]] = tuple(
        (texts, clients) for texts in (1, 32, 256) for clients in (1, 8, 32)
    )
    once: bool = False

    def effort(self, seconds: float, *, at_least: int = 3) -> Effort:
        """That much, or once."""
        return ONCE if self.once else Effort(seconds=seconds, at_least=at_least)


QUICK = Plan(
    points=500,
    words_per_chunk=10,
    text_bytes=8_000,
    pdf_pages=2,
    reports=2,
    report_pages=1,
    starts=1,
    embeddings=((4, 2),),
    once=True,
)


@dataclass(frozen=True, slots=True)
class Bench:
    """What the measures share."""

    plan: Plan
    folder: Path
    settings: Settings
    server: RunningServer
    engines: Engines
    prose: Prose

    async def chat(self) -> AsyncGenerator[Row]:
        """First bytes; while the libraries of both sides are still the same."""
        context = chat.Context(
            self.settings.retrieval.context_chunks, context_tokens(self.settings)
        )
        efforts = {None: self.plan.effort(20), context: self.plan.effort(45)}
        for context_or_none, effort in efforts.items():
            for row in await chat.first_byte_rows(
                url=self.server.url,
                engines=self.engines,
                prose=self.prose,
                context=context_or_none,
                effort=effort,
            ):
                yield row

    async def chunks(self) -> AsyncGenerator[Row]:
        """Retrieval, alone and in a crowd."""
        yield await retrieval.single_row(
            url=self.server.url,
            engines=self.engines,
            prose=self.prose,
            points=self.plan.points,
            effort=self.plan.effort(15, at_least=100),
        )
        yield await retrieval.joint_row(
            url=self.server.url,
            engines=self.engines,
            prose=self.prose,
            points=self.plan.points,
            effort=self.plan.effort(20),
        )

    async def ingestion(self) -> AsyncGenerator[Row]:
        """A text, a PDF, and many."""
        for row in await ingestion.text_rows(
            self.prose.document(self.plan.text_bytes).encode(),
            url=self.server.url,
            engines=self.engines,
            peer=Peer(),
            effort=self.plan.effort(60),
        ):
            yield row
        yield await ingestion.pdf_row(
            self.prose.pdf(self.plan.pdf_pages, PDF_PAGE_CHARACTERS),
            pages=self.plan.pdf_pages,
            url=self.server.url,
            engines=self.engines,
            effort=self.plan.effort(15),
        )
        pages = self.plan.report_pages
        for row in await ingestion.reports_rows(
            [self.prose.pdf(pages, PDF_PAGE_CHARACTERS) for _ in range(self.plan.reports)],
            pages=pages,
            url=self.server.url,
            engines=self.engines,
            effort=self.plan.effort(60, at_least=2),
        ):
            yield row

    async def embeddings(self) -> AsyncGenerator[Row]:
        """Every size with every crowd, then the two that stand for themselves."""
        wanted = [(texts, clients, "base64") for texts, clients in self.plan.embeddings]
        wanted.append((max(texts for texts, _ in self.plan.embeddings), 1, "float"))
        for texts, clients, encoding in wanted:
            yield await embeddings.beside_model_row(
                url=self.server.url,
                engines=self.engines,
                prose=self.prose,
                texts=texts,
                clients=clients,
                effort=self.plan.effort(10, at_least=1 if texts * clients > LARGE_LOAD else 3),
                encoding=encoding,
            )
        yield await embeddings.crowd_row(
            url=self.server.url, prose=self.prose, effort=self.plan.effort(10)
        )

    async def start(self) -> AsyncGenerator[Row]:
        """Readiness, and memory after all the work before it; so it comes last."""
        await asyncio.sleep(starting.REST_S)
        for row in starting.resident(self.server):
            yield row
        yield await starting.empty_start(self.folder, times=self.plan.starts)
        name = f"ready, {self.plan.points:,} chunks"
        yield Row(name, "s", [self.server.ready_s])


MEASURES = ("chat", "chunks", "ingestion", "embeddings", "start")


@asynccontextmanager
async def opened(plan: Plan, folder: Path) -> AsyncGenerator[Bench]:
    """Fill a library, serve it, and open the bare engines on copies of it."""
    settings = load_settings({})
    prose = Prose()
    filled = folder / "filled"
    async with open_library(at(settings, filled)) as library:
        await fill(
            library.index,
            library.state,
            prose,
            points=plan.points,
            words_per_chunk=plan.words_per_chunk,
            dimensions=library.embedding.dimensions,
        )
    async with (
        open_engines(settings, filled) as engines,
        running_server(filled) as server,
    ):
        yield Bench(plan, folder, settings, server, engines, prose)


async def measured(plan: Plan, *, only: Sequence[str], console: Console) -> list[Row]:
    """All rows, in a folder that is removed afterwards."""
    rows: list[Row] = []
    with TemporaryDirectory(prefix="benchmark-") as folder:
        async with opened(plan, Path(folder)) as bench:
            measures: Mapping[str, AsyncGenerator[Row]] = {
                name: getattr(bench, name)() for name in MEASURES if name in only
            }
            for name, found in measures.items():
                started = time.perf_counter()
                with console.status(f"Measuring {name}"):
                    rows += [row async for row in found]
                console.print(f"{name}: {time.perf_counter() - started:.0f} s", style="dim")
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="everything once, and small")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 160)
    started = time.perf_counter()
    rows = uvloop.run(
        measured(QUICK if options.quick else Plan(), only=options.only, console=console)
    )
    title = f"Ours beside the bare engine ({time.perf_counter() - started:.0f} s in all)"
    console.print(table(rows, title=title))


if __name__ == "__main__":
    main()
