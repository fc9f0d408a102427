"""Background ingestions over HTTP, and foreground ones whose client leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from privategpt.api.wire.jobs import JobReply, JobsReply
from privategpt.domain.access import Scope
from privategpt.domain.documents import UnreadFile
from privategpt.domain.errors import QuotaExceeded, TooManyRequests, Unavailable
from privategpt.domain.jobs import Job, JobFailure, JobState, Progress
from tests.api.conftest import NewClient
from tests.fakes.asgi import exchange
from tests.fakes.edge import Edge
from tests.fakes.jobs import NOON, new_job
from tests.fakes.tenants import shared_server
from tests.fakes.wired import WiredLibrary
from tests.fakes.wired_app import WiredApp

JOBS = "/v1/ingest/jobs"
FILE = {"file": ("a.txt", b"One.", "text/plain")}


def running(job_id: str = "job-1") -> Job:
    """Half done after ten seconds."""
    return replace(
        new_job(job_id, tenant="default"),
        state=JobState.RUNNING,
        progress=Progress(pages_done=1, pages_total=2, chunks_done=5, chunks_total=10),
        started_at=NOON,
        indexing_since=NOON,
        updated_at=NOON + timedelta(seconds=10),
    )


def events(text: str) -> list[Any]:
    """The JSON of every event; nothing else is in the stream."""
    lines = [line for line in text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines), lines
    return [json.loads(line[6:]) for line in lines]


class TestSubmitting:
    @pytest.mark.parametrize("path", ["/v1/ingest", "/v1/ingest/file"])
    async def test_the_reply_is_a_job_at_once(
        self, path: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        fields = {"metadata": '{"year": 1999}', "replace": "true", "password": "sesame"}
        reply = await client.post(f"{path}?background=true", files=FILE, data=fields)
        assert reply.status_code == 202, reply.text
        assert reply.headers["location"] == f"{JOBS}/job-1"
        assert reply.json() == {
            "object": "ingest.job",
            "job_id": "job-1",
            "state": "queued",
            "file_name": "a.txt",
            "size_bytes": 4,
            "pages": {"done": 0, "total": None},
            "chunks": {"done": 0, "total": None},
            "seconds_left": None,
            "created_at": NOON.isoformat(),
            "started_at": None,
            "finished_at": None,
            "error": None,
            "doc_ids": [],
        }
        JobReply.model_validate(reply.json())
        ((request, content),) = edge.jobs.submitted
        assert content == b"One."
        assert (request.tenant, request.replaces, request.metadata) == (
            "default",
            True,
            {"year": 1999},
        )
        assert request.upload.password == "sesame"
        assert edge.library.ingested == []

    @pytest.mark.parametrize("query", ["", "?background=false"])
    async def test_without_it_the_reply_has_the_documents(
        self, query: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        reply = await client.post(f"/v1/ingest{query}", files=FILE)
        assert (reply.status_code, reply.json()["data"][0]["doc_id"]) == (200, "doc-1")
        assert edge.jobs.submitted == []

    async def test_several_files_are_refused_and_none_is_taken(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        files = [("file", ("a.txt", b"One.")), ("file", ("b.txt", b"Two."))]
        reply = await client.post("/v1/ingest?background=true", files=files)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "file")
        assert edge.jobs.submitted == []

    async def test_what_is_no_truth_value_is_refused(self, client: httpx.AsyncClient) -> None:
        reply = await client.post("/v1/ingest?background=perhaps", files=FILE)
        assert reply.status_code in {400, 422}
        assert "error" in reply.json()

    @pytest.mark.parametrize(
        ("error", "status", "headers"),
        [
            (TooManyRequests("full", retry_after_s=30), 429, {"retry-after": "30"}),
            (QuotaExceeded("full"), 429, {"x-should-retry": "false"}),
            (Unavailable("full", retry_after_s=30), 503, {"retry-after": "30"}),
        ],
    )
    async def test_what_is_not_taken_says_when_to_come_back(
        self,
        error: Exception,
        status: int,
        headers: Mapping[str, str],
        edge: Edge,
        client: httpx.AsyncClient,
    ) -> None:
        edge.jobs.error = error
        reply = await client.post("/v1/ingest?background=true", files=FILE)
        assert reply.status_code == status
        assert headers.items() <= dict(reply.headers).items()


class TestLooking:
    async def test_a_job_tells_how_far_it_is(self, edge: Edge, client: httpx.AsyncClient) -> None:
        edge.jobs.known["job-1"] = running()
        reply = (await client.get(f"{JOBS}/job-1")).json()
        JobReply.model_validate(reply)
        assert (reply["state"], reply["pages"], reply["chunks"], reply["seconds_left"]) == (
            "running",
            {"done": 1, "total": 2},
            {"done": 5, "total": 10},
            10.0,
        )
        assert reply["started_at"] == NOON.isoformat()

    @pytest.mark.parametrize(
        ("failure", "code", "type_"),
        [
            (JobFailure("CorruptFile", "broken"), "corrupt_file", "invalid_request_error"),
            (JobFailure("", "broken"), "internal_error", "server_error"),
            (JobFailure("NoSuchClass", "broken"), "internal_error", "server_error"),
        ],
    )
    async def test_a_failed_job_has_the_error_that_the_foreground_would_have_had(
        self, failure: JobFailure, code: str, type_: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.jobs.known["job-1"] = replace(running(), state=JobState.FAILED, failure=failure)
        assert (await client.get(f"{JOBS}/job-1")).json()["error"] == {
            "message": "broken",
            "type": type_,
            "param": None,
            "code": code,
        }

    async def test_pages_of_the_list(self, edge: Edge, client: httpx.AsyncClient) -> None:
        edge.jobs.known = {f"job-{n}": running(f"job-{n}") for n in range(3)}
        first = (await client.get(JOBS, params={"limit": 2})).json()
        JobsReply.model_validate(first)
        assert [job["job_id"] for job in first["data"]] == ["job-2", "job-1"]
        assert first["has_more"] is True
        rest = (await client.get(JOBS, params={"after": "job-1"})).json()
        assert ([job["job_id"] for job in rest["data"]], rest["has_more"]) == (["job-0"], False)

    @pytest.mark.parametrize("limit", ["0", "1001", "1e3", "true"])
    async def test_limits_out_of_range_are_refused(
        self, limit: str, client: httpx.AsyncClient
    ) -> None:
        assert (await client.get(JOBS, params={"limit": limit})).status_code in {400, 422}

    async def test_cancelling_answers_with_the_job(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.jobs.known["job-1"] = running()
        reply = await client.post(f"{JOBS}/job-1/cancel")
        assert (reply.status_code, reply.json()["state"]) == (200, "cancelled")

    async def test_an_unknown_job_is_not_found_by_any_way(self, client: httpx.AsyncClient) -> None:
        for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
            reply = await client.request(method, f"{JOBS}/never{path}")
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
        assert (await client.get(JOBS, params={"after": "never"})).status_code == 404


class TestFollowing:
    async def test_a_stream_has_every_change_and_ends_with_the_job(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        job = edge.jobs.known["job-1"] = running()
        unread = (UnreadFile("x/plan.pdf", "damaged"),)
        done = replace(
            job, state=JobState.DONE, doc_ids=("doc-1",), unread=unread, finished_at=NOON
        )
        edge.jobs.steps = [done]
        reply = await client.get(f"{JOBS}/job-1/events")
        assert reply.headers["content-type"].startswith("text/event-stream")
        told = events(reply.text)
        assert [each["state"] for each in told] == ["running", "done"]
        assert told[-1]["doc_ids"] == ["doc-1"]
        skipped = [{"file_name": f"{job.file_name}/x/plan.pdf", "reason": "damaged"}]
        assert (told[-1]["skipped"], "skipped" in told[0]) == (skipped, False)
        for each in told:
            JobReply.model_validate(each)

    async def test_silence_is_filled_with_what_is_known(
        self, edge: Edge, new_client: NewClient
    ) -> None:
        edge.jobs.known["job-1"] = running()
        gate = asyncio.Event()
        edge.jobs.steps = [gate, replace(running(), state=JobState.DONE)]
        app = edge.app(ApiOptions(heartbeat_s=0.01))
        async with exchange(app, f"{JOBS}/job-1/events", method="GET") as stream:
            stream.body(b"")
            assert await stream.status() == 200
            first, again = await stream.next_text(), await stream.next_text()
            assert first == again
            gate.set()
            assert events(await stream.rest())[-1]["state"] == "done"

    async def test_a_job_that_vanishes_ends_its_stream_with_an_error(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.jobs.known["job-1"] = running()
        edge.jobs.steps = [Unavailable("down")]
        told = events((await client.get(f"{JOBS}/job-1/events")).text)
        assert told[-1]["error"]["code"] == "upstream_error"


async def test_jobs_ask_for_the_scope_of_ingestion(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as server:
        others = [scope for scope in Scope if scope is not Scope.WRITE]
        async with (
            await server.client("ann", scopes=[Scope.WRITE]) as writer,
            await server.client("ann", scopes=others) as other,
        ):
            job = await writer.post("/v1/ingest?background=true", files=FILE)
            job_id = job.json()["job_id"]
            for client, status in ((writer, 200), (other, 403)):
                replies = [
                    await client.get(f"{JOBS}/{job_id}/events"),
                    await client.get(f"{JOBS}/{job_id}"),
                    await client.get(JOBS),
                    await client.post(f"{JOBS}/{job_id}/cancel"),
                ]
                assert [reply.status_code for reply in replies] == [status] * 4
            assert (await other.get("/v1/ingest/list")).json()["data"][0]["doc_metadata"][
                "file_name"
            ] == "a.txt"


FORM = (
    b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nOne.\r\n--B--\r\n'
)
TEXT = json.dumps({"file_name": "a.txt", "text": "One."}).encode()


@pytest.mark.parametrize(
    ("path", "label", "body"),
    [
        ("/v1/ingest", "multipart/form-data; boundary=B", FORM),
        ("/v1/ingest/text", "application/json", TEXT),
    ],
)
async def test_a_client_that_leaves_gives_up_its_ingestion(
    path: str, label: str, body: bytes, tmp_path: Path
) -> None:
    library = WiredLibrary(folder=tmp_path)
    library.parser.gate.clear()
    app = WiredApp(library).app()
    async with exchange(app, path, headers={"content-type": label}) as upload:
        upload.body(body)
        await library.parser.entered.wait()
        upload.leave()
        await upload.ended()
    assert library.parser.cancelled == ["a.txt"]
    assert await library.state.list_documents("default") == []
