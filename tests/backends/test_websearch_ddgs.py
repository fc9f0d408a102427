"""The real `ddgs` package, with an engine of its own kind whose pages a server here answers."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.machinery import ModuleSpec
from typing import Any, ClassVar

import pytest

from privategpt.backends.websearch.ddgs import DdgsSearch
from privategpt.domain.errors import EngineFailed, EngineTimedOut, InvalidSettings, Unavailable
from privategpt.domain.websearch import WebResult
from tests.fakes.websearch import Answer, LoopbackServer, loopback_server, raw, reply, silence

pytest.importorskip("ddgs")
from ddgs.base import BaseSearchEngine
from ddgs.engines import ENGINES
from ddgs.exceptions import RatelimitException, TimeoutException
from ddgs.results import TextResult

HTML = "text/html; charset=utf-8"
FOUND = b"""<html><ul class=results>
  <li><h2><a href="https://a.example/1">Lisbon &amp; more</a></h2><p>Sunny, <b>24</b>.</p></li>
  <li><h2><a href="javascript:alert(1)">Bad</a></h2><p>Text</p></li>
  <li><h2><a href="https://a.example/2">Two</a></h2><p>Cloudy.</p></li>
</ul></html>"""


class LoopbackEngine(BaseSearchEngine[TextResult]):
    """Reads a list of results, as the package's own engines do."""

    name = "loopback"
    category = "text"
    provider = "loopback"
    search_method = "GET"
    items_xpath = "//ul[@class='results']/li"
    elements_xpath: ClassVar[Mapping[str, str]] = {
        "title": ".//h2//text()",
        "href": ".//h2/a/@href",
        "body": ".//p//text()",
    }

    def build_payload(
        self,
        query: str,
        region: str,
        safesearch: str,
        timelimit: str | None,
        page: int,
        **kwargs: str,
    ) -> dict[str, Any]:
        return {"q": query, "region": region}


@asynccontextmanager
async def asking(
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    *,
    engine: type[LoopbackEngine] = LoopbackEngine,
    **more: Any,
) -> AsyncGenerator[tuple[DdgsSearch, LoopbackServer]]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "DDGS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with loopback_server(answer) as server:
        monkeypatch.setattr(engine, "search_url", f"{server.url}/search", raising=False)
        monkeypatch.setitem(ENGINES["text"], "loopback", engine)
        search = DdgsSearch(engines="loopback", **more)
        try:
            yield search, server
        finally:
            await search.close()


async def failure(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, **more: Any
) -> tuple[Unavailable, LoopbackServer]:
    async with asking(monkeypatch, answer, **more) as (search, server):
        with pytest.raises(Unavailable) as raised:
            await search.search("lisbon", limit=5)
        return raised.value, server


async def test_results_are_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asking(monkeypatch, reply(FOUND, media_type=HTML)) as (search, server):
        results = await search.search("lisbon", limit=5)
    assert results == [
        WebResult("Lisbon & more", "https://a.example/1", "Sunny, 24."),
        WebResult("Two", "https://a.example/2", "Cloudy."),
    ]
    assert server.requests[0].query == {"q": "lisbon", "region": "us-en"}


async def test_the_region_is_handed_on_and_the_limit_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = reply(FOUND, media_type=HTML)
    async with asking(monkeypatch, answer, region="de-de") as (search, server):
        assert len(await search.search("lisbon", limit=1)) == 1
    assert server.requests[0].query["region"] == "de-de"


async def test_connections_serve_more_than_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asking(monkeypatch, reply(FOUND, media_type=HTML)) as (search, server):
        for _ in range(2):
            assert len(await search.search("lisbon", limit=5)) == 2
        assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"<html></html>", media_type=HTML),
        reply(b"no", status="403 Forbidden"),
        reply(b"no", status="429 Too Many Requests"),
    ],
)
async def test_an_empty_hand_counts_as_could_not_look(
    monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    error, _server = await failure(monkeypatch, answer)
    assert isinstance(error, EngineFailed)
    assert error.message == (
        "ddgs: the search engines found nothing or refused; it does not tell which"
    )


async def test_a_broken_connection_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    error, _server = await failure(monkeypatch, raw())
    assert isinstance(error, EngineFailed)
    assert error.message == "ddgs: the search engines cannot be reached or read"


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (RatelimitException("202"), EngineFailed, "refuse so many searches"),
        (TimeoutException("operation timed out"), EngineTimedOut, "did not answer in time"),
        (TimeoutException("too late"), EngineTimedOut, "did not answer in time"),
    ],
)
async def test_what_an_engine_raises_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, kind: type[Unavailable], message: str
) -> None:
    class Raising(LoopbackEngine):
        def search(self, *args: Any, **kwargs: Any) -> list[TextResult] | None:
            raise raised

    error, _server = await failure(monkeypatch, raw(), engine=Raising)
    assert isinstance(error, kind)
    assert message in error.message


async def test_engines_that_are_too_slow_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error, _server = await failure(monkeypatch, silence(), deadline_s=0.1)
    assert isinstance(error, EngineTimedOut)
    assert error.message == "ddgs did not answer within 0.1 s"


async def test_a_caller_that_leaves_does_not_wait_for_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking(monkeypatch, silence(), deadline_s=60) as (search, server):
        searching = asyncio.create_task(search.search("lisbon", limit=5))
        await server.asked.wait()
        searching.cancel()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await searching
        assert not server.departures.is_set()


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(InvalidSettings, match=r"pip install 'privategpt\[ddgs\]'"):
        DdgsSearch()


@pytest.mark.parametrize("region", ["de", "deutsch", "", "de_DE"])
def test_a_region_that_is_none_is_refused(region: str) -> None:
    with pytest.raises(InvalidSettings, match="'de-de'"):
        DdgsSearch(region=region)
