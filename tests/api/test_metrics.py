"""What /metrics tells, fed through the real use cases."""

from __future__ import annotations

import asyncio
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from privategpt.api.metrics import Metrics
from privategpt.domain.answers import (
    AnswerStarted,
    ChoiceFinished,
    FinishReason,
    TextDelta,
    Usage,
    UsageCounted,
)
from privategpt.domain.conversation import Message, Role
from privategpt.domain.errors import EmptyFile, EngineTimedOut
from privategpt.domain.jobs import JobState
from privategpt.domain.observing import UNOBSERVED
from privategpt.domain.websearch import SearchOutcome
from privategpt.services.access import Keys
from privategpt.services.answering import AnswerRequest
from privategpt.services.embeddings import EmbeddingService
from privategpt.services.ingestion import Ingestion
from privategpt.services.observed import ObservedAnswers
from privategpt.services.retrieval import Retrieval
from privategpt.settings import DEFAULT_FOLDER
from tests.fakes.answering import FakeAnswers
from tests.fakes.edge import Edge
from tests.fakes.keys import FakeKeyStore
from tests.fakes.language_model import ScriptedLanguageModel
from tests.fakes.wired import NOW, WiredLibrary


class Clock:
    """Seconds; every look at it lets `step` of them pass."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def samples(text: str) -> dict[str, float]:
    """Every sample by its name and labels, without buckets and what prometheus adds."""
    return {
        f"{sample.name}{{{','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))}}}": (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
        and sample.name.startswith("privategpt_")
    }


def told(metrics: Metrics) -> dict[str, float]:
    return {name: value for name, value in samples(metrics.render().decode()).items() if value}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(clock=clock)


# Requests


async def test_requests_are_counted_by_route_and_never_by_path() -> None:
    transport = httpx.ASGITransport(Edge().app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        for path in ("/v1/documents/a", "/v1/documents/b?x=1", "/v1/models/org/model:tag", "/a/b"):
            await client.get(path)
        await client.request("BREW", "/health")
        reply = await client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(reply.text)
    assert {name: value for name, value in found.items() if "_requests_total" in name} == {
        "privategpt_requests_total{method=GET,route=/v1/documents/{doc_id},status=404}": 2,
        "privategpt_requests_total{method=GET,route=/v1/models/{model_id:path},status=200}": 1,
        "privategpt_requests_total{method=GET,route=(none),status=404}": 1,
        "privategpt_requests_total{method=other,route=(none),status=405}": 1,
    }
    assert found["privategpt_request_seconds_count{route=/v1/documents/{doc_id}}"] == 2
    # The one that asks.
    assert found["privategpt_requests_in_flight{}"] == 1
    assert "process_resident_memory_bytes" in reply.text


async def test_metrics_need_an_admins_key_where_keys_are_needed() -> None:
    edge = Edge()
    keys = Keys(
        store=FakeKeyStore(), now=lambda: datetime.now(UTC), random_bytes=secrets.token_bytes
    )
    edge.keys = keys
    plain = (await keys.create("ann")).text
    transport = httpx.ASGITransport(edge.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.get("/metrics", headers={"x-api-key": plain})).status_code == 403


# Jobs


def test_jobs_are_counted_where_they_are_and_where_they_end(metrics: Metrics) -> None:
    moves = [
        (None, JobState.QUEUED),
        (None, JobState.QUEUED),
        (JobState.QUEUED, JobState.RUNNING),
        (JobState.RUNNING, JobState.DONE),
        (None, JobState.DONE),
        (None, JobState.QUEUED),
        (JobState.QUEUED, JobState.RUNNING),
    ]
    for before, after in moves:
        metrics.job_moved(before, after)
    assert told(metrics) == {
        "privategpt_ingestion_jobs{state=queued}": 1,
        "privategpt_ingestion_jobs{state=running}": 1,
        "privategpt_ingestion_jobs_ended_total{state=done}": 2,
    }


# Answers


def request() -> AnswerRequest:
    return AnswerRequest(messages=(), tenant="ann")


async def test_an_answer_is_timed_to_its_first_text_and_its_tokens_are_counted(
    metrics: Metrics, clock: Clock
) -> None:
    usage = Usage(prompt_tokens=7, completion_tokens=5, cached_tokens=3, reasoning_tokens=2)
    answers = FakeAnswers(
        script=[
            AnswerStarted(),
            TextDelta("a"),
            TextDelta("b"),
            ChoiceFinished(FinishReason.STOP, markers_removed=4),
            UsageCounted(usage),
        ]
    )
    events = ObservedAnswers(answers, observer=metrics).answer(request())
    await anext(events)
    assert told(metrics) == {"privategpt_answers_in_flight{}": 1}
    clock.now += 1.5
    assert await anext(events) == TextDelta("a")
    clock.now += 100
    assert [event async for event in events] == answers.script[2:]
    assert told(metrics) == {
        "privategpt_first_token_seconds_count{}": 1,
        "privategpt_first_token_seconds_sum{}": 1.5,
        "privategpt_tokens_total{kind=prompt}": 7,
        "privategpt_tokens_total{kind=completion}": 5,
        "privategpt_tokens_total{kind=cached}": 3,
        "privategpt_tokens_total{kind=reasoning}": 2,
        "privategpt_markers_removed_total{}": 4,
    }


async def test_an_answer_that_is_left_is_no_longer_in_flight(metrics: Metrics) -> None:
    answers = FakeAnswers(script=[AnswerStarted(), asyncio.Event()])
    events = ObservedAnswers(answers, observer=metrics).answer(request())
    await anext(events)
    await events.aclose()
    assert answers.closed.is_set()
    assert told(metrics) == {}


async def test_removed_markers_are_counted_through_the_grounding(
    tmp_path: Path, metrics: Metrics
) -> None:
    said = "The zebra sleeps [1]. The moon is far away [7]."
    library = WiredLibrary(folder=tmp_path, llm=ScriptedLanguageModel(script=[said]))
    await library.add("zebra.txt", "The zebra sleeps.")

    asked = AnswerRequest(
        messages=(Message(Role.USER, "Does the zebra sleep?"),),
        tenant="ann",
        use_context=True,
        cite=True,
    )
    answers = ObservedAnswers(library.answering, observer=metrics)
    async for _ in answers.answer(asked):
        pass
    assert told(metrics)["privategpt_markers_removed_total{}"] == 1


# The library


def ingestion(library: WiredLibrary, metrics: Metrics) -> Ingestion:
    return Ingestion(
        parser=library.parser,
        embedding=library.embedding,
        index=library.index,
        state=library.state,
        now=lambda: NOW,
        new_id=lambda: "file-1",
        observer=metrics,
    )


async def test_files_are_counted_with_their_chunks_and_the_time_they_took(tmp_path: Path) -> None:
    metrics = Metrics(clock=Clock(step=2))
    library = WiredLibrary(folder=tmp_path)
    observed = ingestion(library, metrics)
    await observed.ingest(library.request("a.txt", "Red.\fGreen."))
    # It is there already.
    await observed.ingest(library.request("a.txt", "Red.\fGreen."))
    assert told(metrics) == {
        "privategpt_ingested_files_total{}": 1,
        "privategpt_ingested_chunks_total{}": 2,
        "privategpt_ingestion_seconds_count{}": 1,
        "privategpt_ingestion_seconds_sum{}": 2,
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EmptyFile("empty"), "empty_file"),
        (EngineTimedOut("slow"), "upstream_timeout"),
        (ValueError("unforeseen"), "internal_error"),
        (asyncio.CancelledError(), "cancelled"),
    ],
)
async def test_failed_files_are_counted_by_kind(
    tmp_path: Path, metrics: Metrics, error: Exception, kind: str
) -> None:
    library = WiredLibrary(folder=tmp_path)
    library.parser.refusals = {"a.txt": error}  # type: ignore[dict-item]
    with pytest.raises(type(error)):
        await ingestion(library, metrics).ingest(library.request("a.txt", "Red."))
    assert told(metrics) == {
        f"privategpt_ingestion_failures_total{{kind={kind}}}": 1,
        "privategpt_ingestion_seconds_count{}": 1,
    }


async def test_searches_of_the_library_are_timed(tmp_path: Path) -> None:
    metrics = Metrics(clock=Clock(step=0.25))
    library = WiredLibrary(folder=tmp_path)
    await library.add("a.txt", "Red.")
    retrieval = Retrieval(
        embedding=library.embedding, index=library.index, state=library.state, observer=metrics
    )
    await retrieval.search("Red?", tenant="ann", limit=3)
    assert told(metrics) == {
        "privategpt_retrieval_seconds_count{}": 1,
        "privategpt_retrieval_seconds_sum{}": 0.25,
    }


async def test_embedded_tokens_and_web_searches_are_counted(
    tmp_path: Path, metrics: Metrics
) -> None:
    library = WiredLibrary(folder=tmp_path)
    await EmbeddingService(model=library.embedding, observer=metrics).embed(["one two", "three"])
    for outcome in (SearchOutcome.FOUND, SearchOutcome.FOUND, SearchOutcome.COULD_NOT_LOOK):
        metrics.searched(outcome)
    assert told(metrics) == {
        "privategpt_tokens_total{kind=embedding}": 3,
        "privategpt_searches_total{outcome=found}": 2,
        "privategpt_searches_total{outcome=could_not_look}": 1,
    }


async def test_who_is_not_observed_does_the_same() -> None:
    answers = FakeAnswers()
    observed = ObservedAnswers(answers, observer=UNOBSERVED).answer(request())
    assert [event async for event in observed] == answers.script
    UNOBSERVED.searched(SearchOutcome.OFF)
    UNOBSERVED.embedded(1)


def test_the_page_names_every_metric_and_no_other(metrics: Metrics) -> None:
    page = (DEFAULT_FOLDER / "docs" / "deployment.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(privategpt_\w+)`", page, re.MULTILINE))
    told_of = set(re.findall(r"^# TYPE (privategpt_\w+) ", metrics.render().decode(), re.MULTILINE))
    assert named == {name for name in told_of if not name.endswith("_created")}
