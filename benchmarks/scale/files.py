"""Ten thousand files of a passage each: listing them, and adding one more."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.client import Connection, connection
from benchmarks.scale.asking import Spread, first_pages, processor_s, walk
from benchmarks.scale.corpus import Passage, endless
from benchmarks.scale.filling import cheap_model, opened, store
from benchmarks.scale.notebook import Notebook
from benchmarks.serving import RunningServer, running_server

AT = (0, 1_000, 5_000, 10_000)
ADDED = 50
ADDED_FROM = 500_000
"""Passages of another edition, so that every file that is added is new."""
STORED_AT_A_TIME = 250

Tell = Callable[[str], None]


async def measure_files(work: Path, corpus: Path, *, notebook: Notebook, tell: Tell) -> None:
    """Grow a library of small files, and at some sizes add a few through a real server."""
    embedding = await cheap_model()
    library = work / "files"
    before = 0
    for size in AT:
        if notebook.find(f"files {size}") is None:
            source = islice(endless(corpus), before, size)
            async with opened(library, embedding) as ingestion:
                number = before
                while found := list(islice(source, STORED_AT_A_TIME)):
                    named = [(f"{number + i:05}.txt", one.text) for i, one in enumerate(found)]
                    folder = library.with_suffix(".texts")
                    await store(named, ingestion=ingestion, folder=folder)
                    number += len(found)
                    tell(f"{number:,} of {size:,} files stored")
            added = list(islice(endless(corpus), ADDED_FROM, ADDED_FROM + ADDED))
            async with running_server(library) as server:
                notebook.note(f"files {size}", await _figures(server, added, tell=tell))
        before = size


async def _figures(
    server: RunningServer, added: Sequence[Passage], *, tell: Tell
) -> dict[str, float | str]:
    async with connection(server.url) as client:
        first = await first_pages(client)
        later, documents = await walk(client)
        processor = processor_s(server.process_id)
        taken, ids = await _add(client, added)
        used = processor_s(server.process_id) - processor
        # Everything is as it was for the next size.
        for doc_id in ids:
            await client.delete(f"/v1/ingest/{doc_id}")
    tell(f"{documents:,} documents listed, {statistics.median(taken):.0f} ms to add one")
    return {
        "documents": documents,
        "ready_s": server.ready_s,
        **Spread(first).figures("first_page"),
        **(Spread(later).figures("later_page") if later else {}),
        "walk_s": sum(later) / 1000,
        **Spread(taken).figures("add"),
        "add_processor_ms": 1000 * used / len(added),
    }


async def _add(client: Connection, added: Sequence[Passage]) -> tuple[list[float], list[str]]:
    """What each takes, the parser process's first file left out, and their documents' ids."""
    taken: list[float] = []
    ids: list[str] = []
    for number, passage in enumerate(added):
        started = time.perf_counter()
        body = {"file_name": f"added-{number}.txt", "text": passage.text}
        reply = await client.post("/v1/ingest/text", body)
        if number:
            taken.append(1000 * (time.perf_counter() - started))
        ids += [document["doc_id"] for document in reply["data"]]
    return taken, ids
