"""A background ingestion over a process that is killed in the middle of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.stacks import ours, stack
from tests.fakes.llm_server import ScriptedServer

PAGES = 40
WAIT_S = 120.0


@pytest.fixture
async def engine() -> AsyncGenerator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


async def followed(client: httpx.AsyncClient, job_id: str) -> AsyncGenerator[Any]:
    """The job at every change."""
    async with client.stream("GET", f"/v1/ingest/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if line:
                yield json.loads(line.removeprefix("data: "))


async def submitted(client: httpx.AsyncClient, name: str, text: str) -> str:
    files = {"file": (name, text.encode())}
    reply = await client.post("/v1/ingest?background=true", files=files)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["job_id"])


async def test_jobs_go_on_after_a_kill_and_every_document_is_there_once(
    engine: ScriptedServer, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    book = "\n\n".join(f"Page {n} tells of {n * 7} things. " * 20 for n in range(PAGES))
    async with asyncio.timeout(WAIT_S):
        async with stack(ours, folder, engine) as running, running.client(WAIT_S) as client:
            first = await submitted(client, "book.txt", book)
            # One more than are in work at once.
            others = [await submitted(client, f"{n}.txt", f"Note {n}.") for n in range(2)]
            # All chunks are one call of the embedding model, which takes far longer than a kill.
            assert (
                await anext(
                    job["state"]
                    async for job in followed(client, first)
                    if job["chunks"]["total"] and not job["chunks"]["done"]
                )
                == "running"
            )
            running.process.kill()
            await asyncio.to_thread(running.process.wait)
        async with stack(ours, folder, engine) as running, running.client(WAIT_S) as client:
            ends = [[job async for job in followed(client, job_id)] for job_id in (first, *others)]
            assert [seen[-1]["state"] for seen in ends] == ["done"] * 3
            listed = (await client.get("/v1/ingest/list")).json()["data"]
            names = [document["doc_metadata"]["file_name"] for document in listed]
            assert sorted(names) == ["0.txt", "1.txt", "book.txt"]
            assert {document["doc_id"] for document in listed} == {
                doc_id for seen in ends for doc_id in seen[-1]["doc_ids"]
            }
            found = await client.post(
                "/v1/chunks", json={"text": "Page 33 tells of 231 things", "limit": 3}
            )
            assert "tells of" in found.json()["data"][0]["text"]
    assert list((folder / "jobs").glob("*.upload")) == []
