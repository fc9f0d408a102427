"""What is counted and timed, in Prometheus' text format; see docs/deployment.md for the list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from privategpt.api.errors import INTERNAL, kind_of
from privategpt.domain.answers import Usage
from privategpt.domain.errors import PrivateGptError
from privategpt.domain.jobs import JobState
from privategpt.domain.websearch import SearchOutcome

QUICK_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
SLOW_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """All metrics of one server. It is the `Observer` of the use cases.

    `clock` counts seconds from anywhere, and never backwards. No label ever holds what a client
    wrote, so that their number is bounded.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "privategpt_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._request_s = Histogram(
            "privategpt_request_seconds",
            "From the request's head to the last byte of its reply.",
            ["route"],
            buckets=QUICK_S + SLOW_S[7:],
            registry=registry,
        )
        self._requests_open = Gauge(
            "privategpt_requests_in_flight", "Requests under way.", registry=registry
        )
        self._answers_open = Gauge(
            "privategpt_answers_in_flight",
            "Answers under way, those that wait for the engine included.",
            registry=registry,
        )
        self._first_token_s = Histogram(
            "privategpt_first_token_seconds",
            "From the request to the first piece of its answer.",
            buckets=SLOW_S,
            registry=registry,
        )
        self._tokens = Counter(
            "privategpt_tokens", "Tokens as the engines counted them.", ["kind"], registry=registry
        )
        self._retrieval_s = Histogram(
            "privategpt_retrieval_seconds",
            "Searches in the library.",
            buckets=QUICK_S,
            registry=registry,
        )
        self._rerank_s = Histogram(
            "privategpt_rerank_seconds",
            "Scoring texts by the reranker, within a search or for a client.",
            buckets=QUICK_S + SLOW_S[7:10],
            registry=registry,
        )
        self._ingestion_s = Histogram(
            "privategpt_ingestion_seconds",
            "Ingestions of one file, failed ones included.",
            buckets=SLOW_S,
            registry=registry,
        )
        self._ingested = Counter(
            "privategpt_ingested_files", "Files that became ready.", registry=registry
        )
        self._chunks = Counter(
            "privategpt_ingested_chunks", "Chunks of these files.", registry=registry
        )
        self._ingestion_failures = Counter(
            "privategpt_ingestion_failures",
            "Files that did not become ready.",
            ["kind"],
            registry=registry,
        )
        self._jobs_open = Gauge(
            "privategpt_ingestion_jobs",
            "Background ingestions that have not ended.",
            ["state"],
            registry=registry,
        )
        self._jobs_ended = Counter(
            "privategpt_ingestion_jobs_ended",
            "Background ingestions that have.",
            ["state"],
            registry=registry,
        )
        self._removed = Counter(
            "privategpt_markers_removed",
            "Citation markers that the model wrote and that were taken out.",
            registry=registry,
        )
        self._searches = Counter(
            "privategpt_searches", "Web searches.", ["outcome"], registry=registry
        )

    def render(self) -> bytes:
        """All of it, in the text format that Prometheus reads."""
        return generate_latest(self._registry)

    @contextmanager
    def request(self) -> Generator[None]:
        """A request under way."""
        with self._requests_open.track_inprogress():
            yield

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is its template."""
        known = method if method in METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._request_s.labels(route).observe(seconds)

    @contextmanager
    def answering(self) -> Generator[_Answer]:
        """See `domain.observing.Observer`."""
        with self._answers_open.track_inprogress():
            yield _Answer(clock=self._clock, first_s=self._first_token_s, tokens=self._tokens)

    @contextmanager
    def retrieving(self) -> Generator[None]:
        """See `domain.observing.Observer`."""
        with _timed(self._retrieval_s, self._clock):
            yield

    @contextmanager
    def reranking(self) -> Generator[None]:
        """See `domain.observing.Observer`."""
        with _timed(self._rerank_s, self._clock):
            yield

    @contextmanager
    def ingesting(self) -> Generator[None]:
        """See `domain.observing.Observer`."""
        with _timed(self._ingestion_s, self._clock):
            try:
                yield
            except BaseException as error:
                self._ingestion_failures.labels(_kind(error)).inc()
                raise

    def indexed(self, chunks: int) -> None:
        """See `domain.observing.Observer`."""
        self._ingested.inc()
        self._chunks.inc(chunks)

    def job_moved(self, before: JobState | None, after: JobState) -> None:
        """See `domain.observing.Observer`."""
        if before is not None and not before.is_final:
            self._jobs_open.labels(before.value).dec()
        if after.is_final:
            self._jobs_ended.labels(after.value).inc()
        else:
            self._jobs_open.labels(after.value).inc()

    def embedded(self, tokens: int) -> None:
        """See `domain.observing.Observer`."""
        self._tokens.labels("embedding").inc(tokens)

    def reranked(self, tokens: int) -> None:
        """See `domain.observing.Observer`."""
        self._tokens.labels("rerank").inc(tokens)

    def markers_removed(self, count: int) -> None:
        """See `domain.observing.Observer`."""
        self._removed.inc(count)

    def searched(self, outcome: SearchOutcome) -> None:
        """See `domain.observing.Observer`."""
        self._searches.labels(outcome.value).inc()


class _Answer:
    """See `domain.observing.ObservedAnswer`."""

    def __init__(self, *, clock: Callable[[], float], first_s: Histogram, tokens: Counter) -> None:
        self._clock = clock
        self._started_at: float | None = clock()
        self._first_s = first_s
        self._tokens = tokens

    def text_began(self) -> None:
        if self._started_at is not None:
            self._first_s.observe(self._clock() - self._started_at)
            self._started_at = None

    def counted(self, usage: Usage) -> None:
        for kind, count in (
            ("prompt", usage.prompt_tokens),
            ("completion", usage.completion_tokens),
            ("cached", usage.cached_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            self._tokens.labels(kind).inc(count)


@contextmanager
def _timed(histogram: Histogram, clock: Callable[[], float]) -> Generator[None]:
    started_at = clock()
    try:
        yield
    finally:
        histogram.observe(clock() - started_at)


def _kind(error: BaseException) -> str:
    if isinstance(error, PrivateGptError):
        return kind_of(error).code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else INTERNAL.code
