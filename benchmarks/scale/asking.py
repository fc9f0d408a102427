"""What a server of a library answers, how fast, and in how much memory."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.client import Connection, connection
from benchmarks.rows import seconds_of
from benchmarks.scale.notebook import Figure
from benchmarks.serving import RunningServer, running_server

QUERIES = 500
WARM_UP = 20
PAGE = 100
PAGES = 100
LIMIT = 10
EMBEDDING_MODEL = "all-MiniLM-L6-v2"

Tell = Callable[[str], None]


async def measure_served(
    data_dir: Path, questions: Sequence[str], *, large: str | None, tell: Tell
) -> dict[str, Figure]:
    """Start a server over the folder, delete the file `large`, ask and list.

    Everything is wall time in milliseconds on a machine that may be busy; `…_processor_ms` is
    what the server's process took of the processors, other work notwithstanding.
    """
    figures: dict[str, Figure] = {}
    async with running_server(data_dir) as server:
        figures["ready_s"] = server.ready_s
        figures |= _memory(server, "start")
        if large is not None:
            async with connection(server.url) as client:
                figures["delete_ms"] = 1000 * await seconds_of(client.delete(f"/v1/ingest/{large}"))
        figures |= await _searches(server, questions)
        figures |= _memory(server, "after")
        async with connection(server.url) as client:
            figures |= Spread(await first_pages(client)).figures("first_page")
    tell(f"ready {figures['ready_s']:.1f} s, search p95 {figures['above_p95_ms']:.1f} ms")
    return figures


async def _searches(server: RunningServer, questions: Sequence[str]) -> dict[str, Figure]:
    """Every question is embedded alone and then searched for; the difference is the search's."""
    embedding: list[float] = []
    searching: list[float] = []
    processor: list[float] = []
    async with connection(server.url) as client:
        for number in range(QUERIES + WARM_UP):
            text = questions[number % len(questions)]
            embedded, spent = await _timed(server, _embed(client, text))
            searched, used = await _timed(server, _search(client, text))
            if number >= WARM_UP:
                embedding.append(embedded)
                searching.append(searched)
                processor.append(used - spent)
    above = [whole - part for whole, part in zip(searching, embedding, strict=True)]
    return {
        **Spread(embedding).figures("embedding"),
        **Spread(searching).figures("search"),
        **Spread(above).figures("above"),
        "above_processor_ms": statistics.mean(processor),
    }


async def _embed(client: Connection, text: str) -> None:
    await client.post("/v1/embeddings", {"model": EMBEDDING_MODEL, "input": text})


async def _search(client: Connection, text: str) -> None:
    found = await client.post("/v1/chunks", {"text": text, "limit": LIMIT})
    if len(found["data"]) != LIMIT:
        raise RuntimeError(f"{len(found['data'])} chunks were found for {text!r}")


async def first_pages(client: Connection) -> list[float]:
    """The milliseconds of the first page, again and again."""
    return [1000 * await seconds_of(_page(client, None)) for _ in range(PAGES)]


async def walk(client: Connection) -> tuple[list[float], int]:
    """The milliseconds of each page behind the first, to the end or as far as `PAGES` reach, and
    how many documents there were.
    """
    body = await _page(client, None)
    found = len(body["data"])
    taken: list[float] = []
    while body["has_more"] and len(taken) < PAGES:
        started = time.perf_counter()
        body = await _page(client, body["data"][-1]["doc_id"])
        taken.append(1000 * (time.perf_counter() - started))
        found += len(body["data"])
    return taken, found


async def _page(client: Connection, after: str | None) -> Any:
    query = {"limit": PAGE} | ({"after": after} if after else {})
    return json.loads(await client.get(f"/v1/ingest/list?{urlencode(query)}"))


async def _timed(server: RunningServer, work: Awaitable[object]) -> tuple[float, float]:
    """The milliseconds of the wall, and those of the server's on the processors."""
    before = processor_s(server.process_id)
    seconds = await seconds_of(work)
    return 1000 * seconds, 1000 * (processor_s(server.process_id) - before)


def processor_s(process_id: int) -> float:
    """What a process has taken of the processors, by the kernel's count."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(server: RunningServer, when: str) -> dict[str, Figure]:
    return {
        f"{when}_mb": server.resident_mb(children=True),
        f"{when}_own_mb": server.resident_mb(children=True, kind="RssAnon"),
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """Of times that were taken again and again."""

    values: Sequence[float]

    def figures(self, name: str) -> dict[str, Figure]:
        """The median and the 95th of a hundred."""
        several = len(self.values) > 1
        return {
            f"{name}_p50_ms": statistics.median(self.values),
            f"{name}_p95_ms": statistics.quantiles(self.values, n=20, method="inclusive")[18]
            if several
            else self.values[0],
        }
