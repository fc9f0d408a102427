"""Web search through a real searx, each way it can come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from privategpt.backends.websearch.searxng import SearxngSearch
from privategpt.domain.conversation import Message, Role
from privategpt.domain.websearch import SearchOutcome, WebResult
from privategpt.services.allowance import Allowance
from privategpt.services.websearch import WebSearch
from tests.fakes.searx import running_searx
from tests.fakes.websearch import (
    Answer,
    FakeQuota,
    LoopbackServer,
    loopback_server,
    raw,
    reply,
    silence,
)

FOUND = reply(
    {
        "found": [
            {
                "address": "https://weather.example/lisbon/weekend",
                "name": "Lisbon weather: <b>weekend</b> outlook",
                "extract": "Sunny &amp; warm on Saturday, 24 &deg;C.",
            },
            {"address": "javascript:alert(1)", "name": "Bad", "extract": "Bad"},
            {
                "address": "https://forecast.example/pt/lisbon/sunday",
                "name": "Sunday forecast for Lisbon",
                "extract": "Light rain.",
            },
        ]
    }
)
RESULTS = (
    WebResult(
        "Lisbon weather: weekend outlook",
        "https://weather.example/lisbon/weekend",
        "Sunny & warm on Saturday, 24 °C.",
    ),
    WebResult(
        "Sunday forecast for Lisbon", "https://forecast.example/pt/lisbon/sunday", "Light rain."
    ),
)
QUESTION = "What is the weather forecast for Lisbon this weekend?"

StartSearx = Callable[..., str]


@pytest.fixture
def start_searx(tmp_path: Path) -> Iterator[StartSearx]:
    """Starts searx servers, each ended with the test."""
    with ExitStack() as running:

        def start(engine_url: str, *, formats: tuple[str, ...] = ("html", "json")) -> str:
            return running.enter_context(
                running_searx(tmp_path, engine_url=engine_url, formats=formats)
            )

        yield start


@dataclass(frozen=True, slots=True)
class Asked:
    """A web search and what became of it."""

    search: WebSearch
    outcomes: list[SearchOutcome]

    async def ask(self, question: str) -> tuple[WebResult, ...]:
        return await self.search.search([Message(Role.USER, question)], tenant="ann")

    async def used(self) -> int:
        return (await self.search.usage("ann")).used


@asynccontextmanager
async def asking(url: str, *, deadline_s: float = 30.0) -> AsyncGenerator[Asked]:
    outcomes: list[SearchOutcome] = []
    web = WebSearch(
        engine=SearxngSearch(url=url, deadline_s=deadline_s),
        allowance=Allowance(quota=FakeQuota(), per_day=9, now=lambda: datetime.now(UTC)),
        results=5,
        deadline_s=60,
        observe=outcomes.append,
    )
    try:
        yield Asked(search=web, outcomes=outcomes)
    finally:
        await web.close()


@asynccontextmanager
async def engine_answering(answer: Answer) -> AsyncGenerator[LoopbackServer]:
    async with loopback_server(answer) as engine:
        yield engine


async def test_what_the_engine_found_is_found(start_searx: StartSearx) -> None:
    async with engine_answering(FOUND) as engine, asking(start_searx(engine.url)) as web:
        assert await web.ask(QUESTION) == RESULTS
        assert (web.outcomes, await web.used()) == ([SearchOutcome.FOUND], 1)
        assert [request.query["q"] for request in engine.requests] == [QUESTION]


async def test_commands_of_searx_in_a_question_are_words(start_searx: StartSearx) -> None:
    async with engine_answering(FOUND) as engine, asking(start_searx(engine.url)) as web:
        assert len(await web.ask("!!g weather <1 !images :fr lisbon !nowhere")) == 2
        assert [request.query["q"] for request in engine.requests] == [
            "g weather 1 images fr lisbon nowhere"
        ]


async def test_nothing_found_is_nothing_found(start_searx: StartSearx) -> None:
    async with (
        engine_answering(reply({"found": []})) as engine,
        asking(start_searx(engine.url)) as web,
    ):
        assert await web.ask(QUESTION) == ()
        assert (web.outcomes, await web.used()) == ([SearchOutcome.NOTHING_FOUND], 0)


@pytest.mark.parametrize(
    "answer",
    [raw(), reply(b"no", status="500 Internal Server Error"), reply(b"<html>", media_type="x/y")],
    ids=["closes", "fails", "nonsense"],
)
async def test_an_engine_that_is_down_means_could_not_look(
    start_searx: StartSearx, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_answering(answer) as engine, asking(start_searx(engine.url)) as web:
        assert await web.ask(QUESTION) == ()
        assert (web.outcomes, await web.used()) == ([SearchOutcome.COULD_NOT_LOOK], 0)
        assert "SearXNG found nothing, and its engines did not answer: local (" in caplog.text

        engine.answer = FOUND
        assert await web.ask(QUESTION) == RESULTS


async def test_json_that_is_not_among_the_formats_is_named(
    start_searx: StartSearx, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        engine_answering(FOUND) as engine,
        asking(start_searx(engine.url, formats=("html",))) as web,
    ):
        assert await web.ask(QUESTION) == ()
        assert (web.outcomes, await web.used()) == ([SearchOutcome.COULD_NOT_LOOK], 0)
        assert "'json' is missing from search.formats in its settings.yml" in caplog.text


async def test_a_search_beyond_the_deadline_is_given_up(
    start_searx: StartSearx, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        engine_answering(silence()) as engine,
        asking(start_searx(engine.url), deadline_s=0.5) as web,
    ):
        assert await web.ask(QUESTION) == ()
        assert (web.outcomes, await web.used()) == ([SearchOutcome.COULD_NOT_LOOK], 0)
        assert "SearXNG did not answer within 0.5 s" in caplog.text


async def test_a_server_that_is_gone_means_could_not_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_answering(FOUND) as engine:
        with running_searx(tmp_path, engine_url=engine.url) as url:
            async with asking(url) as web:
                assert await web.ask(QUESTION) == RESULTS
        async with asking(url) as web:
            assert await web.ask(QUESTION) == ()
            assert (web.outcomes, await web.used()) == ([SearchOutcome.COULD_NOT_LOOK], 0)
        assert "SearXNG cannot be reached" in caplog.text
