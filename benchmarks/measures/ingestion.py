"""Ingestion over HTTP beside the bare embedding of the same chunks, and deletion."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from benchmarks.client import connection
from benchmarks.engines import Engines, Peer
from benchmarks.rows import Effort, Row, Rule, Target, in_turns, seconds_of
from privategpt.domain.ports import Upload
from privategpt.services.batch import AT_ONCE
from privategpt.services.ingestion import IngestRequest

BARE_SHARE = 0.9


async def text_rows(
    text: bytes, *, url: str, engines: Engines, peer: Peer, effort: Effort
) -> Sequence[Row]:
    """A plain text in, found, and out again."""
    chunks = await chunks_of("measured.txt", text, engines)
    deletions: list[float] = []

    async def ours(turn: int) -> float:
        ingested_s, deleted_s = await _in_and_out(url, f"measured-{turn}.txt", text)
        deletions.append(deleted_s)
        return len(text) / 1000 / ingested_s

    async def bare(_: int) -> float:
        return len(text) / 1000 / await seconds_of(engines.model.embed_passages(chunks))

    async def side_by_side(_: int) -> float:
        return len(text) / 1000 / await seconds_of(engines.embedding.embed_passages(chunks))

    async def plain(_: int) -> float:
        return len(text) / 1000 / await seconds_of(asyncio.to_thread(peer.encode, chunks))

    ways = {"ours": ours, "bare": bare, "batches": side_by_side, "peer": plain}
    taken = await in_turns(ways, effort)
    name = f"{len(text) / 1000:.0f} kB of text, {len(chunks)} chunks"
    beside = Target(Rule.RATIO_AT_LEAST, BARE_SHARE)
    return (
        Row(f"ingest {name}", "kB/s", taken["ours"], taken["bare"], beside),
        Row(f"ingest {name}, bare: batches at once", "kB/s", taken["ours"], taken["batches"]),
        Row(f"ingest {name}, bare: sentence-transformers", "kB/s", taken["ours"], taken["peer"]),
        Row("delete that file", "ms", [seconds * 1000 for seconds in deletions[1:]]),
    )


async def pdf_row(content: bytes, *, pages: int, url: str, engines: Engines, effort: Effort) -> Row:
    """A PDF in."""
    chunks = await chunks_of("measured.pdf", content, engines)

    async def ours(turn: int) -> float:
        ingested_s, _ = await _in_and_out(url, f"measured-{turn}.pdf", content)
        return ingested_s

    async def bare(_: int) -> float:
        return await seconds_of(engines.model.embed_passages(chunks))

    taken = await in_turns({"ours": ours, "bare": bare}, effort)
    name = f"ingest a PDF of {pages} pages, {len(content) / 1000:.0f} kB, {len(chunks)} chunks"
    return Row(name, "s", taken["ours"], taken["bare"])


async def reports_rows(
    reports: Sequence[bytes], *, pages: int, url: str, engines: Engines, effort: Effort
) -> Sequence[Row]:
    """Many PDFs, as `privategpt ingest` sends them: one is read while another is embedded."""
    chunks = [
        chunk
        for number, content in enumerate(reports)
        for chunk in await chunks_of(f"report-{number}.pdf", content, engines)
    ]
    total = pages * len(reports)

    async def ours(turn: int) -> float:
        waiting = deque(enumerate(reports))
        stored: list[str] = []

        async def client() -> None:
            async with connection(url) as server:
                while waiting:
                    number, content = waiting.popleft()
                    reply = await server.upload("/v1/ingest", f"{turn}-{number}.pdf", content)
                    stored.append(reply["data"][0]["doc_metadata"]["file_id"])

        seconds = await seconds_of(asyncio.gather(*(client() for _ in range(AT_ONCE))))
        async with connection(url) as server:
            for file_id in stored:
                await server.delete(f"/v1/ingest/{file_id}")
        return total / seconds

    async def bare(_: int) -> float:
        return total / await seconds_of(engines.model.embed_passages(chunks))

    async def side_by_side(_: int) -> float:
        return total / await seconds_of(engines.embedding.embed_passages(chunks))

    async def reading(_: int) -> float:
        return total / await seconds_of(_read(reports, engines))

    ways = {"ours": ours, "bare": bare, "batches": side_by_side, "reading": reading}
    taken = await in_turns(ways, effort)
    name = f"{len(reports)} PDFs of {pages} pages, {len(chunks)} chunks"
    return (
        Row(
            f"ingest {name}",
            "pages/s",
            taken["ours"],
            taken["bare"],
            Target(Rule.RATIO_AT_LEAST, BARE_SHARE),
        ),
        Row(f"ingest {name}, bare: batches at once", "pages/s", taken["ours"], taken["batches"]),
        Row(f"only read {name}", "pages/s", taken["reading"]),
    )


async def _read(files: Sequence[bytes], engines: Engines) -> None:
    """Parse them one after the other, in one process."""
    parser = engines.library.ingesting.parser
    for content in files:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            await parser.parse(Upload(Path(file.name), "report.pdf"))


async def _in_and_out(url: str, name: str, content: bytes) -> tuple[float, float]:
    """The seconds that ingestion took, and deletion."""
    async with connection(url) as server:
        started = time.perf_counter()
        reply = await server.upload("/v1/ingest", name, content)
        ingested_s = time.perf_counter() - started
        file_id = reply["data"][0]["doc_metadata"]["file_id"]
        return ingested_s, await seconds_of(server.delete(f"/v1/ingest/{file_id}"))


async def chunks_of(name: str, content: bytes, engines: Engines) -> list[str]:
    """The texts of exactly the chunks that the server stores of this file."""
    library = engines.library
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        request = IngestRequest(Upload(Path(file.name), name), tenant=library.tenant)
        stored = await library.ingestion.ingest(request)
    file_id = stored.file.file_id
    async with aclosing(library.state.chunks_for_reindex()) as batches:
        found = [
            item.chunk.text async for batch in batches for item in batch if item.file_id == file_id
        ]
    await library.ingestion.delete(library.tenant, file_id)
    return found
