"""Web search as a client sees it, through a real searx: on both dialects, streamed and not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from privategpt.api.profiles import ModelCatalog, ModelProfile
from privategpt.backends.state.opening import open_database
from privategpt.backends.state.quota import SqlQuota
from privategpt.backends.websearch.searxng import SearxngSearch
from privategpt.domain.answers import FinishReason, GenerationFinished, Usage
from privategpt.domain.websearch import SearchEngine, SearchOutcome
from privategpt.services.allowance import Allowance
from privategpt.services.websearch import WebSearch
from tests.e2e.anthropic_server import OPINION
from tests.e2e.stacks import ours
from tests.fakes.anthropic_events import citations_of, events_of, message_of, text_of
from tests.fakes.asgi import chunks_of, posted
from tests.fakes.language_model import ScriptedLanguageModel
from tests.fakes.llm_server import CHAT as LLM
from tests.fakes.llm_server import ScriptedServer, finish_chunk, sse, text_chunk, usage_chunk
from tests.fakes.postgres import postgres_database
from tests.fakes.searx import running_searx
from tests.fakes.websearch import (
    FORECAST,
    LISBON,
    Answer,
    FakeQuota,
    FakeSearchEngine,
    LoopbackServer,
    SeenRequest,
    loopback_server,
    reply,
    silence,
)
from tests.fakes.wired import WiredLibrary
from tests.fakes.wired_app import WiredApp

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
QUESTION = "What is the weather forecast for Lisbon this weekend?"
ASK: dict[str, Any] = {
    "model": "shannon-3",
    "messages": [{"role": "user", "content": QUESTION}],
    "web_search": True,
    "max_tokens": 300,
}
FOUND = reply(
    {"found": [{"address": one.url, "name": one.title, "extract": one.text} for one in LISBON]}
)
SOURCES = [
    {"index": number, "title": one.title, "url": one.url}
    for number, one in enumerate(LISBON, start=1)
]
MODELS = ModelCatalog(profiles=(ModelProfile(id="shannon-3"),))


def speak(given: str) -> str:
    return FORECAST if "<source>" in given else OPINION


@dataclass
class Searching:
    """The app in this process, over `engine`; `now` is its clock."""

    library: WiredLibrary
    engine: SearchEngine
    deadline_s: float = 30.0
    per_day: int = 100
    now: datetime = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    quota: FakeQuota | SqlQuota = field(default_factory=FakeQuota)
    outcomes: list[SearchOutcome] = field(default_factory=list[SearchOutcome])

    def __post_init__(self) -> None:
        self.library.llm = ScriptedLanguageModel(
            script=lambda request: [
                speak(request.messages[0].text),
                GenerationFinished(FinishReason.STOP, Usage(2874, 41)),
            ]
        )
        web = WebSearch(
            engine=self.engine,
            allowance=Allowance(quota=self.quota, per_day=self.per_day, now=lambda: self.now),
            results=5,
            deadline_s=self.deadline_s,
            observe=self.outcomes.append,
        )
        self.app = WiredApp(self.library, models=MODELS, web=web).app()

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://gpt.test", timeout=60)


@dataclass(frozen=True)
class Seen:
    """What one answer shows; `places` are where its markers stand, or what is cited there."""

    text: str
    sources: list[dict[str, Any]] | None
    places: list[Any]


async def answers(client: httpx.AsyncClient) -> list[Seen]:
    """The four ways of asking, all answered with 200: chat and messages, plain and streamed."""
    seen: list[Seen] = []
    for path in (CHAT, MESSAGES):
        for stream in (False, True):
            response = await client.post(path, json={**ASK, "stream": stream})
            assert response.status_code == 200, response.text
            seen.append(_chat(response) if path == CHAT else _message(response))
    return seen


def _message(response: httpx.Response) -> Seen:
    is_stream = response.headers["content-type"].startswith("text/event-stream")
    message = message_of(events_of(response.text)) if is_stream else response.json()
    cited = [one["cited_text"] for one in citations_of(message)]
    return Seen(text_of(message), message.get("sources"), cited)


def _chat(response: httpx.Response) -> Seen:
    if not response.headers["content-type"].startswith("text/event-stream"):
        body: dict[str, Any] = response.json()
        message = body["choices"][0]["message"]
        return Seen(message["content"], body.get("sources"), _places(message["annotations"]))
    chunks: list[dict[str, Any]] = chunks_of(response.text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert not any("sources" in chunk for chunk in chunks[:-1])
    text = "".join(delta.get("content") or "" for delta in deltas)
    annotated = [delta["annotations"] for delta in deltas if "annotations" in delta]
    assert len(annotated) <= 1
    if annotated:
        assert "annotations" in deltas[-2]
    return Seen(text, chunks[-1].get("sources"), _places(annotated[0] if annotated else []))


def _places(annotations: list[dict[str, Any]]) -> list[Any]:
    places = [one["url_citation"] for one in annotations]
    return [(place["start_index"], place["end_index"], place["url"]) for place in places]


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    return WiredLibrary(folder=tmp_path)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[ExitStack]:
    """Ends what a test has started."""
    with ExitStack() as stack:
        yield stack


@asynccontextmanager
async def engine_answering(answer: Answer) -> AsyncGenerator[LoopbackServer]:
    async with loopback_server(answer) as engine:
        yield engine


def assert_ordinary(seen: list[Seen]) -> None:
    """Four answers that were written without results."""
    assert seen == [Seen(OPINION, None, [])] * 4


async def test_what_was_found_is_cited_in_every_way_of_asking(
    library: WiredLibrary, running: ExitStack, tmp_path: Path
) -> None:
    async with engine_answering(FOUND) as engine:
        url = running.enter_context(running_searx(tmp_path, engine_url=engine.url))
        searching = Searching(library, SearxngSearch(url=url, deadline_s=30))
        async with searching.client() as client:
            seen = await answers(client)
            usage = (await client.get("/v1/usage/searches")).json()
    places = [(66, 69, LISBON[0].url), (137, 140, LISBON[1].url)]
    cited = [LISBON[0].text, LISBON[1].text]
    assert seen == [Seen(FORECAST, SOURCES, where) for where in (places, places, cited, cited)]
    assert searching.outcomes == [SearchOutcome.FOUND] * 4
    assert usage["used"] == 4
    assert {request.query["q"] for request in engine.requests} == {QUESTION}


@pytest.mark.parametrize(
    ("answer", "formats", "deadline_s", "outcome", "told"),
    [
        (
            reply({"found": []}),
            ("html", "json"),
            30.0,
            SearchOutcome.NOTHING_FOUND,
            "found nothing",
        ),
        (
            reply(b"no", status="500 Internal Server Error"),
            ("html", "json"),
            30.0,
            SearchOutcome.COULD_NOT_LOOK,
            "its engines did not answer: local (",
        ),
        (
            FOUND,
            ("html",),
            30.0,
            SearchOutcome.COULD_NOT_LOOK,
            "'json' is missing from search.formats in its settings.yml",
        ),
        (
            silence(),
            ("html", "json"),
            0.3,
            SearchOutcome.COULD_NOT_LOOK,
            "did not answer within 0.3 s",
        ),
    ],
    ids=["nothing found", "engine down", "JSON disabled", "beyond the deadline"],
)
async def test_without_results_the_answer_is_an_ordinary_one(
    library: WiredLibrary,
    running: ExitStack,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    answer: Answer,
    formats: tuple[str, ...],
    deadline_s: float,
    outcome: SearchOutcome,
    told: str,
) -> None:
    caplog.set_level("INFO")
    async with engine_answering(answer) as engine:
        url = running.enter_context(running_searx(tmp_path, engine_url=engine.url, formats=formats))
        searching = Searching(library, SearxngSearch(url=url, deadline_s=deadline_s))
        async with searching.client() as client:
            assert_ordinary(await answers(client))
            assert (await client.get("/v1/usage/searches")).json()["used"] == 0
    assert searching.outcomes == [outcome] * 4
    assert told in caplog.text


async def test_a_server_that_is_gone_is_no_error_to_the_client(
    library: WiredLibrary, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_answering(FOUND) as engine:
        with running_searx(tmp_path, engine_url=engine.url) as url:
            searching = Searching(library, SearxngSearch(url=url, deadline_s=30))
    async with searching.client() as client:
        assert_ordinary(await answers(client))
    assert searching.outcomes == [SearchOutcome.COULD_NOT_LOOK] * 4
    assert "SearXNG cannot be reached" in caplog.text


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_stream_sends_neither_headers_nor_events_before_the_search_has_ended(
    library: WiredLibrary, running: ExitStack, tmp_path: Path, path: str
) -> None:
    release = asyncio.Event()

    async def held(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await FOUND(request, writer)

    async with engine_answering(held) as engine:
        url = running.enter_context(running_searx(tmp_path, engine_url=engine.url))
        searching = Searching(library, SearxngSearch(url=url, deadline_s=30))
        async with posted(searching.app, path, {**ASK, "stream": True}) as under_way:
            await engine.asked.wait()
            assert under_way.sent.empty()
            release.set()
            assert await under_way.status() == 200
            assert "Saturday" in await under_way.rest()


async def test_a_client_that_leaves_during_the_search_uses_nothing(library: WiredLibrary) -> None:
    engine = FakeSearchEngine(None)
    searching = Searching(library, engine)
    async with posted(searching.app, MESSAGES, {**ASK, "stream": True}) as under_way:
        await engine.asked.wait()
        under_way.leave()
        await under_way.ended()
    async with searching.client() as client:
        assert (await client.get("/v1/usage/searches")).json()["used"] == 0


SHANNON: dict[str, Any] = {
    "object": "chat.completion",
    "model": "shannon-3",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Saturday in Lisbon is forecast to be sunny with a high near 24 °C [1]. "
                "Sunday turns cloudy, with a chance of light rain in the afternoon [2].",
                "reasoning_content": None,
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "start_index": 66,
                            "end_index": 69,
                            "url": "https://weather.example/lisbon/weekend",
                            "title": "Lisbon weather: weekend outlook",
                        },
                    },
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "start_index": 137,
                            "end_index": 140,
                            "url": "https://forecast.example/pt/lisbon/sunday",
                            "title": "Sunday forecast for Lisbon",
                        },
                    },
                ],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 2874, "completion_tokens": 41, "total_tokens": 2915},
    "sources": [
        {
            "index": 1,
            "title": "Lisbon weather: weekend outlook",
            "url": "https://weather.example/lisbon/weekend",
        },
        {
            "index": 2,
            "title": "Sunday forecast for Lisbon",
            "url": "https://forecast.example/pt/lisbon/sunday",
        },
        {
            "index": 3,
            "title": "Portugal: the week ahead",
            "url": "https://news.example/portugal/weather-week",
        },
    ],
}
"""The published reply, without its id and date."""


def only_what_is_published(ours: Any, published: Any) -> Any:
    """`ours` without the fields of objects that `published` does not have."""
    if isinstance(published, Mapping):
        return {
            key: only_what_is_published(ours[key], value)
            for key, value in published.items()  # pyright: ignore[reportUnknownVariableType]
        }
    if isinstance(published, list) and len(ours) == len(published):  # pyright: ignore[reportUnknownArgumentType]
        return [only_what_is_published(*pair) for pair in zip(ours, published, strict=True)]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    return ours


async def test_the_published_reply_is_reproduced_field_by_field(
    library: WiredLibrary, running: ExitStack, tmp_path: Path
) -> None:
    async with engine_answering(FOUND) as engine:
        url = running.enter_context(running_searx(tmp_path, engine_url=engine.url))
        searching = Searching(library, SearxngSearch(url=url, deadline_s=30))
        async with searching.client() as client:
            ours = (await client.post(CHAT, json=ASK)).json()
    assert only_what_is_published(ours, SHANNON) == SHANNON
    assert ours["id"].startswith("chatcmpl-")
    assert isinstance(ours["created"], int)
    content = ours["choices"][0]["message"]["content"]
    assert (content[66:69], content[137:140]) == ("[1]", "[2]")


@pytest.mark.parametrize("tool", ["web_search_20250305", "web_search_20260209", "custom"])
async def test_a_search_tool_of_another_system_or_of_the_caller_starts_no_search(
    library: WiredLibrary, tool: str
) -> None:
    engine = FakeSearchEngine(LISBON)
    searching = Searching(library, engine)
    tools = [{"type": tool, "name": "web_search", "input_schema": {"type": "object"}}]
    async with searching.client() as client:
        body = {**ASK, "web_search": False, "tools": tools}
        response = await client.post(MESSAGES, json=body)
    assert response.status_code == 200
    assert "sources" not in response.json()
    assert engine.queries == []
    offered = searching.library.llm.requests[0].tooling.tools
    assert len(offered) == (1 if tool == "custom" else 0)


async def test_the_day_ends_at_midnight_utc_wherever_the_host_is(
    library: WiredLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        database = await open_database(tmp_path / "state")
        last_second = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC).astimezone(
            ZoneInfo("Asia/Tokyo")
        )
        searching = Searching(
            library,
            FakeSearchEngine(LISBON),
            per_day=1,
            now=last_second,
            quota=SqlQuota(database=database),
        )
        async with searching.client() as client:
            assert "sources" in (await client.post(MESSAGES, json=ASK)).json()
            assert "sources" not in (await client.post(CHAT, json=ASK)).json()
            usage = (await client.get("/v1/usage/searches")).json()
            assert (usage["used"], usage["resets_at"]) == (1, "2026-03-02T00:00:00+00:00")
            searching.now += timedelta(seconds=1)
            assert (await client.get("/v1/usage/searches")).json()["used"] == 0
            assert "sources" in (await client.post(CHAT, json=ASK)).json()
        await database.close()
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_of_twenty_requests_at_once_one_gets_the_last_search_of_the_day(
    running: ExitStack, tmp_path: Path
) -> None:
    """A real server with its state on disk, and searx and a language model behind it."""
    await _ask_twenty_times(running, tmp_path, servers=1)


async def test_two_servers_on_one_state_store_share_the_last_search_of_the_day(
    running: ExitStack, tmp_path: Path
) -> None:
    """SQLite is one process's; PostgreSQL is where several meet."""
    async with postgres_database() as url:
        await _ask_twenty_times(running, tmp_path, servers=2, PRIVATEGPT_STATE__URL=url)
        running.close()  # before the database is dropped


async def _ask_twenty_times(
    running: ExitStack, folder: Path, *, servers: int, **environ: str
) -> None:
    """With one search left, turn about; exactly one answer may have sources."""
    answer = sse(text_chunk(OPINION), finish_chunk(), usage_chunk())
    async with engine_answering(FOUND) as engine, ScriptedServer() as llm:
        llm.on(LLM, answer)
        url = running.enter_context(running_searx(folder, engine_url=engine.url))
        settings = environ | {
            "PRIVATEGPT_WEB_SEARCH__PROVIDER": "searxng",
            "PRIVATEGPT_WEB_SEARCH__SEARXNG__URL": url,
            "PRIVATEGPT_WEB_SEARCH__SEARCHES_PER_DAY": "1",
            "PRIVATEGPT_WEB_SEARCH__DEADLINE_S": "60",
        }
        bases: list[str] = []
        for number in range(servers):
            server = ours(folder / f"data-{number}", llm.base_url, **settings)
            base_url, _ = await asyncio.to_thread(running.enter_context, server)
            bases.append(base_url)
        async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
            body = {**ASK, "model": "private-gpt", "max_tokens": 20}
            urls = [bases[at % servers] + path for at in range(10) for path in (CHAT, MESSAGES)]
            replies = await asyncio.gather(*(client.post(url, json=body) for url in urls))
            usage = (await client.get(f"{bases[0]}/v1/usage/searches")).json()
    assert [reply.status_code for reply in replies] == [200] * 20
    with_sources = [reply.json() for reply in replies if "sources" in reply.json()]
    assert [reply["sources"] for reply in with_sources] == [SOURCES]
    assert (usage["used"], usage["limit"]) == (1, 1)
