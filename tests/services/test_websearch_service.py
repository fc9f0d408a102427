"""Searching the web for an answer never fails it; see seed 003."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.state.opening import open_database
from privategpt.backends.state.quota import SqlQuota
from privategpt.domain.conversation import Message, Role
from privategpt.domain.errors import EngineFailed, EngineTimedOut, EngineUnavailable, Unavailable
from privategpt.domain.websearch import (
    MAX_QUERY_CHARACTERS,
    MAX_QUERY_WORDS,
    AllowanceUsage,
    Quota,
    SearchEngine,
    SearchOutcome,
    WebResult,
)
from privategpt.services.allowance import Allowance
from privategpt.services.websearch import WebSearch, fit_query
from tests.fakes.websearch import FakeQuota, FakeSearchEngine

NOON = datetime(2026, 3, 30, 12, tzinfo=UTC)
TODAY = date(2026, 3, 30)
RESULTS = [WebResult(f"Title {n}", f"https://a.example/{n}", f"Text {n}") for n in range(8)]
QUESTION = [Message(Role.USER, "What is the weather forecast for Lisbon this weekend?")]


class Counted:
    """A web search with its outcomes and its quota in sight."""

    def __init__(
        self,
        engine: SearchEngine | None,
        *,
        quota: Quota | None = None,
        per_day: int = 10,
        deadline_s: float = 5.0,
    ) -> None:
        self.quota = FakeQuota() if quota is None else quota
        self.outcomes: list[SearchOutcome] = []
        self.search = WebSearch(
            engine=engine,
            allowance=Allowance(quota=self.quota, per_day=per_day, now=lambda: NOON),
            results=5,
            deadline_s=deadline_s,
            observe=self.outcomes.append,
        )

    async def used(self) -> int:
        return await self.quota.used("ann", TODAY)


# Found


async def test_what_was_found_is_returned_and_uses_one_search() -> None:
    web = Counted(FakeSearchEngine(RESULTS))
    assert await web.search.search(QUESTION, tenant="ann") == tuple(RESULTS[:5])
    assert (web.outcomes, await web.used()) == ([SearchOutcome.FOUND], 1)


async def test_an_engine_that_gives_more_than_was_asked_for_is_cut() -> None:
    class Generous(FakeSearchEngine):
        async def search(self, query: str, *, limit: int) -> list[WebResult]:
            return list(RESULTS)

    assert len(await Counted(Generous()).search.search(QUESTION, tenant="ann")) == 5


async def test_the_last_user_message_is_searched_for() -> None:
    engine = FakeSearchEngine(RESULTS)
    messages = [
        Message(Role.SYSTEM, "Answer in verse."),
        Message(Role.USER, "Who wrote Faust?"),
        Message(Role.ASSISTANT, "Goethe."),
        Message(Role.USER, "What is the weather forecast for Lisbon this weekend?"),
    ]
    await Counted(engine).search.search(messages, tenant="ann")
    assert engine.queries == ["What is the weather forecast for Lisbon this weekend?"]


async def test_the_conversation_gives_a_message_context_that_is_no_question_alone() -> None:
    engine = FakeSearchEngine(RESULTS)
    messages = [
        Message(Role.USER, "What is the weather forecast for Lisbon?"),
        Message(Role.ASSISTANT, "Sunny."),
        Message(Role.USER, "And on Sunday?"),
    ]
    await Counted(engine).search.search(messages, tenant="ann")
    (query,) = engine.queries
    assert "Lisbon" in query
    assert query.endswith("And on Sunday?")
    assert "\n" not in query


# No sources, and why


async def test_nothing_found_is_told_as_such_and_uses_no_search(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    web = Counted(FakeSearchEngine([]))
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert (web.outcomes, await web.used()) == ([SearchOutcome.NOTHING_FOUND], 0)
    assert [(r.levelname, r.message) for r in caplog.records] == [
        ("INFO", "Web search: fake found nothing")
    ]


@pytest.mark.parametrize(
    "error",
    [
        EngineUnavailable("SearXNG cannot be reached"),
        EngineFailed("SearXNG refused with status 403: 'json' is missing from search.formats"),
        EngineTimedOut("SearXNG did not answer within 5 s"),
        Unavailable("out of order"),
    ],
)
async def test_an_engine_that_could_not_look_is_warned_of_with_the_reason_and_uses_no_search(
    error: Unavailable, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    web = Counted(FakeSearchEngine(error))
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert (web.outcomes, await web.used()) == ([SearchOutcome.COULD_NOT_LOOK], 0)
    assert [(r.levelname, r.message) for r in caplog.records] == [
        ("WARNING", f"Web search could not look: {error.message}")
    ]


async def test_an_engine_that_keeps_no_deadline_is_given_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    web = Counted(FakeSearchEngine(None), deadline_s=0.05)
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert (web.outcomes, await web.used()) == ([SearchOutcome.COULD_NOT_LOOK], 0)
    assert "fake did not answer within 0.05 s" in caplog.text


async def test_a_used_up_allowance_means_no_search(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    engine = FakeSearchEngine(RESULTS)
    web = Counted(engine, per_day=1)
    await web.search.search(QUESTION, tenant="ann")
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert web.outcomes == [SearchOutcome.FOUND, SearchOutcome.ALLOWANCE_USED_UP]
    assert len(engine.queries) == 1
    assert [r.levelname for r in caplog.records] == ["INFO"]


async def test_without_an_engine_search_is_off() -> None:
    web = Counted(None)
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert (web.outcomes, await web.used()) == ([SearchOutcome.OFF], 0)
    await web.search.close()


@pytest.mark.parametrize(
    "messages", [[], [Message(Role.USER, "")], [Message(Role.USER, " \x00\n")]]
)
async def test_without_words_nothing_is_searched_for(messages: list[Message]) -> None:
    engine = FakeSearchEngine(RESULTS)
    web = Counted(engine)
    assert await web.search.search(messages, tenant="ann") == ()
    assert (engine.queries, web.outcomes) == ([], [SearchOutcome.NOTHING_FOUND])


async def test_the_question_is_in_no_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for found in (RESULTS, [], EngineFailed("refused")):
        await Counted(FakeSearchEngine(found)).search.search(QUESTION, tenant="ann")
    assert "Lisbon" not in caplog.text


class BrokenQuota(FakeQuota):
    """A quota whose store is down for the named methods."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self._broken = broken

    async def reserve(self, tenant: str, day: date, *, limit: int) -> bool:
        self._require("reserve")
        return await super().reserve(tenant, day, limit=limit)

    async def refund(self, tenant: str, day: date) -> None:
        self._require("refund")
        await super().refund(tenant, day)

    def _require(self, method: str) -> None:
        if method in self._broken:
            raise Unavailable("The state store does not serve: the disk is full")


async def test_an_allowance_that_cannot_be_counted_means_no_search(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = FakeSearchEngine(RESULTS)
    web = Counted(engine, quota=BrokenQuota("reserve"))
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert (engine.queries, web.outcomes) == ([], [SearchOutcome.COULD_NOT_LOOK])
    assert "the disk is full" in caplog.text


async def test_a_refund_that_fails_fails_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    web = Counted(FakeSearchEngine([]), quota=BrokenQuota("refund"))
    assert await web.search.search(QUESTION, tenant="ann") == ()
    assert (web.outcomes, await web.used()) == ([SearchOutcome.NOTHING_FOUND], 1)
    assert "could not be refunded: The state store" in caplog.text


# Cancelled


async def test_a_caller_that_leaves_stops_the_search_and_uses_none() -> None:
    engine = FakeSearchEngine(None)
    web = Counted(engine)
    searching = asyncio.create_task(web.search.search(QUESTION, tenant="ann"))
    await engine.asked.wait()
    assert await web.used() == 1
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert (web.outcomes, await web.used()) == ([], 0)


@asynccontextmanager
async def sql_quota(folder: Path) -> AsyncGenerator[SqlQuota]:
    database = await open_database(folder)
    try:
        yield SqlQuota(database=database)
    finally:
        await database.close()


@pytest.mark.parametrize("turns", range(0, 40, 4))
async def test_a_caller_that_leaves_at_any_moment_uses_none(tmp_path: Path, turns: int) -> None:
    async with sql_quota(tmp_path) as quota:
        web = Counted(FakeSearchEngine(None), quota=quota)
        searching = asyncio.create_task(web.search.search(QUESTION, tenant="ann"))
        for _ in range(turns):
            await asyncio.sleep(0)
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        assert (web.outcomes, await web.used()) == ([], 0)


# At once


async def test_of_20_searches_at_once_one_gets_the_last_unit(tmp_path: Path) -> None:
    async with sql_quota(tmp_path) as quota:
        web = Counted(FakeSearchEngine(RESULTS), quota=quota, per_day=1)
        found = await asyncio.gather(
            *(web.search.search(QUESTION, tenant="ann") for _ in range(20))
        )
        assert sorted(map(len, found)) == [0] * 19 + [5]
        assert sorted(web.outcomes) == sorted(
            [SearchOutcome.FOUND] + [SearchOutcome.ALLOWANCE_USED_UP] * 19
        )
        assert await web.used() == 1


async def test_usage_tells_the_allowance_of_today() -> None:
    web = Counted(FakeSearchEngine(RESULTS), per_day=3)
    await web.search.search(QUESTION, tenant="ann")
    midnight = datetime(2026, 3, 31, tzinfo=UTC)
    assert await web.search.usage("ann") == AllowanceUsage(used=1, limit=3, resets_at=midnight)
    assert await web.search.usage("bob") == AllowanceUsage(used=0, limit=3, resets_at=midnight)


async def test_closing_closes_the_engine() -> None:
    engine = FakeSearchEngine()
    await Counted(engine).search.close()
    assert engine.closed


# The query


@given(st.text())
def test_a_query_is_one_line_within_what_engines_take(text: str) -> None:
    query = fit_query(text)
    assert len(query) <= MAX_QUERY_CHARACTERS
    assert len(query.split()) <= MAX_QUERY_WORDS
    assert query == " ".join(query.split())
    assert {unicodedata.category(c) for c in query}.isdisjoint({"Cc", "Cs"})


def test_a_long_message_keeps_its_beginning_and_more_of_its_end() -> None:
    words = [f"w{n}" for n in range(1000)]
    kept = fit_query(" ".join(words)).split()
    assert kept == [*words[:12], *words[-38:]]


def test_long_words_are_left_out_rather_than_cut() -> None:
    text = f"What is this? {'x' * 390} And who wrote it?"
    assert fit_query(text) == "What is this? And who wrote it?"


@pytest.mark.parametrize("text", ["x" * 5_000_000, "多" * 5_000_000, "x y " * 2_000_000])
def test_a_message_of_megabytes_is_cut_to_a_query(text: str) -> None:
    query = fit_query(text)
    assert 0 < len(query) <= MAX_QUERY_CHARACTERS
