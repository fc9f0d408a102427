"""SearXNG, Brave and Tavily against small servers that answer in their documented shapes."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from privategpt.backends.websearch.brave import BraveSearch
from privategpt.backends.websearch.http import USER_AGENT
from privategpt.backends.websearch.searxng import SearxngSearch, escape
from privategpt.backends.websearch.tavily import TavilySearch
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    Unavailable,
)
from privategpt.domain.websearch import SearchEngine, WebResult
from tests.fakes.websearch import (
    Answer,
    LoopbackServer,
    endless,
    loopback_server,
    raw,
    reply,
    silence,
)

HTML = "text/html; charset=utf-8"
FORBIDDEN = (
    b"<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n"
    b"<p>You don&#39;t have the permission to access the requested resource.</p>\n"
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# The documented shapes


def searxng_found(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "query": "lisbon",
        "number_of_results": 0,
        "results": list(rows),
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [],
        **more,
    }


def searxng_row(number: int, **more: Any) -> dict[str, Any]:
    return {
        "url": f"https://a.example/{number}",
        "title": f"Title {number}",
        "content": f"Text {number}",
        "engine": "bing",
        "parsed_url": ["https", "a.example", f"/{number}", "", "", ""],
        "template": "default.html",
        "engines": ["bing"],
        "positions": [number],
        "score": 1.0,
        "category": "general",
        **more,
    }


def brave_found(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "search",
        "query": {"original": "lisbon", "more_results_available": True},
        "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}]},
        "web": {"type": "search", "results": list(rows), "family_friendly": True},
        **more,
    }


def brave_row(number: int, **more: Any) -> dict[str, Any]:
    return {
        "title": f"Title {number}",
        "url": f"https://a.example/{number}",
        "is_source_local": False,
        "is_source_both": False,
        "description": f"Text {number}",
        "language": "en",
        "family_friendly": True,
        "type": "search_result",
        "subtype": "generic",
        "meta_url": {"scheme": "https", "netloc": "a.example", "hostname": "a.example"},
        **more,
    }


def tavily_found(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "query": "lisbon",
        "follow_up_questions": None,
        "answer": None,
        "images": [],
        "results": list(rows),
        "response_time": 0.67,
        "request_id": "123e4567-e89b-12d3-a456-426614174111",
        **more,
    }


def tavily_row(number: int, **more: Any) -> dict[str, Any]:
    return {
        "url": f"https://a.example/{number}",
        "title": f"Title {number}",
        "content": f"Text {number}",
        "score": 0.8,
        "raw_content": None,
        **more,
    }


@dataclass(frozen=True, slots=True)
class Provider:
    """How one provider is asked and how its answers look."""

    name: str
    found: Callable[..., dict[str, Any]]
    row: Callable[..., dict[str, Any]]
    open: Callable[..., SearchEngine]


def _searxng(url: str, **more: Any) -> SearchEngine:
    return SearxngSearch(url=url, **more)


def _brave(url: str, **more: Any) -> SearchEngine:
    return BraveSearch(url=url, api_key="key-1", **more)


def _tavily(url: str, **more: Any) -> SearchEngine:
    return TavilySearch(url=url, api_key="key-1", **more)


SEARXNG = Provider("SearXNG", searxng_found, searxng_row, _searxng)
BRAVE = Provider("Brave", brave_found, brave_row, _brave)
TAVILY = Provider("Tavily", tavily_found, tavily_row, _tavily)
PROVIDERS = [SEARXNG, BRAVE, TAVILY]

every_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda p: p.name)


@asynccontextmanager
async def asking(
    provider: Provider, answer: Answer, **more: Any
) -> AsyncGenerator[tuple[SearchEngine, LoopbackServer]]:
    async with loopback_server(answer) as server:
        engine = provider.open(server.url, **more)
        try:
            yield engine, server
        finally:
            await engine.close()


async def failure(provider: Provider, answer: Answer, **more: Any) -> Unavailable:
    async with asking(provider, answer, **more) as (engine, _server):
        with pytest.raises(Unavailable) as raised:
            await engine.search("lisbon weather", limit=5)
    return raised.value


# Found


@every_provider
async def test_results_come_in_the_engines_order_up_to_the_limit(provider: Provider) -> None:
    answer = reply(provider.found(*map(provider.row, range(10))))
    async with asking(provider, answer) as (engine, _server):
        results = await engine.search("lisbon weather", limit=3)
    assert results == [
        WebResult(title=f"Title {n}", url=f"https://a.example/{n}", text=f"Text {n}")
        for n in range(3)
    ]


@every_provider
async def test_nothing_found_is_an_empty_list(provider: Provider) -> None:
    async with asking(provider, reply(provider.found())) as (engine, _server):
        assert await engine.search("lisbon weather", limit=5) == []


@every_provider
async def test_what_pages_say_is_cleaned_and_pages_found_twice_are_one(provider: Provider) -> None:
    text_key = "description" if provider is BRAVE else "content"
    rows = [
        provider.row(
            1, title="<b>Lisbon</b> &amp; more", **{text_key: "<i>Sunny</i>\x00 24&#176;"}
        ),
        provider.row(2, url="javascript:alert(1)"),
        provider.row(3, url="https://user@evil.example/"),
        provider.row(4, **{text_key: " "}),
        provider.row(5, url="http://a.example/1/#again", **{text_key: "Sunny"}),
        "no object",
        provider.row(6, url=None),
    ]
    async with asking(provider, reply(provider.found(*rows))) as (engine, _server):
        results = await engine.search("lisbon weather", limit=5)
    assert results == [WebResult("Lisbon & more", "https://a.example/1", "Sunny 24°")]


@every_provider
async def test_connections_are_kept_from_search_to_search(provider: Provider) -> None:
    async with asking(provider, reply(provider.found(provider.row(1)))) as (engine, server):
        for _ in range(3):
            await engine.search("lisbon weather", limit=5)
        assert (len(server.requests), server.connections) == (3, 1)


@every_provider
async def test_no_cookie_ties_one_search_to_the_next(provider: Provider) -> None:
    answer = reply(provider.found(), headers={"Set-Cookie": "id=1; Path=/"})
    async with asking(provider, answer) as (engine, server):
        for _ in range(2):
            await engine.search("lisbon weather", limit=5)
        assert ["cookie" in request.headers for request in server.requests] == [False, False]


@every_provider
async def test_a_compressed_answer_is_read(provider: Provider) -> None:
    body = json.dumps(provider.found(provider.row(1))).encode()
    for encoding, packed in [("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))]:
        answer = reply(packed, headers={"Content-Encoding": encoding})
        async with asking(provider, answer) as (engine, _server):
            assert len(await engine.search("lisbon weather", limit=5)) == 1


# Could not look


@every_provider
async def test_a_server_that_is_not_there_is_unavailable(provider: Provider) -> None:
    async with loopback_server(reply(provider.found())) as server:
        url = server.url
    engine = provider.open(url)
    with pytest.raises(EngineUnavailable, match=f"{provider.name} cannot be reached"):
        await engine.search("lisbon weather", limit=5)
    await engine.close()


SLOW = {
    "says nothing": silence(),
    "stops in the head": silence(b"HTTP/1.1 200 OK\r\nContent-"),
    "stops in the body": silence(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
}


@every_provider
@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW.keys())
async def test_a_server_that_is_too_slow_times_out(provider: Provider, answer: Answer) -> None:
    error = await failure(provider, answer, deadline_s=0.05)
    assert isinstance(error, EngineTimedOut)
    assert error.message == f"{provider.name} did not answer within 0.05 s"


async def test_the_deadline_is_for_the_whole_answer_and_not_for_its_pieces() -> None:
    async def trickle(_request: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    assert isinstance(await failure(SEARXNG, trickle, deadline_s=0.2), EngineTimedOut)


BROKEN = {
    "closes at once": raw(),
    "is not HTTP": raw(b"SSH-2.0-OpenSSH\r\n\r\n"),
    "breaks off in the body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
    "breaks off in a chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"),
}


@every_provider
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
async def test_a_connection_that_breaks_is_a_failure(provider: Provider, answer: Answer) -> None:
    error = await failure(provider, answer)
    assert isinstance(error, EngineFailed)
    assert error.message == f"{provider.name} broke off its answer"


NOT_RESULTS = {
    "HTML": (reply(b"<html>Sign in</html>", media_type=HTML), "'text/html' that is not JSON"),
    "nothing": (reply(b"", media_type=""), "'something' that is not JSON"),
    "half of it": (reply(b'{"results": ['), "'application/json' that is not JSON"),
    "not UTF-8": (reply(b'{"a": "\xff"}'), "not JSON"),
    "too deep": (reply(b"[" * 100_000), "not JSON"),
    "a list": (reply([]), "not an object"),
    "another object": (reply({"hello": 1}), "answered without"),
    "unpackable": (
        reply(b"\x1f\x8b broken", headers={"Content-Encoding": "gzip"}),
        "cannot be decompressed",
    ),
    "in a foreign encoding": (
        reply(b"x", headers={"Content-Encoding": "br"}),
        "in the encoding 'br'",
    ),
}


@every_provider
@pytest.mark.parametrize("kind", NOT_RESULTS)
async def test_an_answer_that_is_not_results_is_a_failure(provider: Provider, kind: str) -> None:
    answer, message = NOT_RESULTS[kind]
    error = await failure(provider, answer)
    assert isinstance(error, EngineFailed)
    assert message in error.message


@every_provider
async def test_an_answer_is_not_read_beyond_the_bound(provider: Provider) -> None:
    error = await failure(provider, endless(), max_bytes=10_000)
    assert isinstance(error, EngineFailed)
    assert "more than 10000 bytes" in error.message


@every_provider
async def test_a_compressed_answer_is_not_unfolded_beyond_the_bound(provider: Provider) -> None:
    bomb = reply(gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"})
    error = await failure(provider, bomb, max_bytes=10_000)
    assert "more than 10000 bytes" in error.message


@every_provider
async def test_an_answer_of_exactly_the_bound_is_read(provider: Provider) -> None:
    body = json.dumps(provider.found(provider.row(1))).encode()
    async with asking(provider, reply(body), max_bytes=len(body)) as (engine, _server):
        assert len(await engine.search("lisbon weather", limit=5)) == 1
    error = await failure(provider, reply(body), max_bytes=len(body) - 1)
    assert "more than" in error.message


@every_provider
@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("http://elsewhere.example/search", "'elsewhere.example'"),
        ("/search/", "'itself'"),
        ("http://[", "'an address that is none'"),
    ],
)
async def test_a_redirect_is_not_followed_but_named(
    provider: Provider, location: str, named: str
) -> None:
    answer = reply(b"", status="302 Found", headers={"Location": location})
    async with asking(provider, answer) as (engine, server):
        with pytest.raises(EngineFailed) as raised:
            await engine.search("lisbon weather", limit=5)
        assert len(server.requests) == 1
    assert f"redirects to {named}" in raised.value.message


@every_provider
async def test_a_server_error_is_unavailable(provider: Provider) -> None:
    for status in ("500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"):
        error = await failure(provider, reply(FORBIDDEN, status=status, media_type=HTML))
        assert isinstance(error, EngineUnavailable)
        assert error.message == f"{provider.name} failed with status {status[:3]}"


@every_provider
async def test_another_refusal_names_its_status(provider: Provider) -> None:
    error = await failure(provider, reply({}, status="404 Not Found"))
    assert isinstance(error, EngineFailed)
    assert error.message == f"{provider.name} refused with status 404"


BRAVE_LIMITED = {
    "type": "ErrorResponse",
    "error": {
        "id": "x",
        "status": 429,
        "code": "RATE_LIMITED",
        "detail": "Request rate limit exceeded for plan",
        "meta": {"plan": "Free", "rate_limit": 1, "rate_current": 1},
    },
    "time": 1773685964,
}


@pytest.mark.parametrize(
    ("provider", "answer", "message"),
    [
        (
            SEARXNG,
            reply(FORBIDDEN, status="403 FORBIDDEN", media_type=HTML),
            "'json' is missing from search.formats in its settings.yml",
        ),
        (SEARXNG, reply(b"Too Many Requests", status="429 X"), "its limiter stops this server"),
        (BRAVE, reply(BRAVE_LIMITED, status="429 X"), "one per second"),
        (BRAVE, reply({}, status="401 X"), "key in web_search.brave.api_key is not known"),
        (BRAVE, reply({}, status="403 X"), "no right to web search"),
        (BRAVE, reply({}, status="422 X"), "web_search.language"),
        (TAVILY, reply({"detail": {"error": "x"}}, status="401 X"), "web_search.tavily.api_key"),
        (TAVILY, reply({}, status="403 X"), "no right to this search"),
        (TAVILY, reply({}, status="429 X"), "too many searches"),
        (TAVILY, reply({"detail": {"error": "x"}}, status="432 X"), "plan is reached"),
        (TAVILY, reply({}, status="433 X"), "pay-as-you-go"),
    ],
)
async def test_a_refusal_says_what_to_do(provider: Provider, answer: Answer, message: str) -> None:
    error = await failure(provider, answer)
    assert isinstance(error, EngineFailed)
    assert message in error.message
    assert "key-1" not in error.message


@every_provider
async def test_a_caller_that_leaves_takes_the_connection_along(provider: Provider) -> None:
    async with asking(provider, silence()) as (engine, server):
        searching = asyncio.create_task(engine.search("lisbon weather", limit=5))
        await server.asked.wait()
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        async with asyncio.timeout(5):
            await server.departures.wait()


async def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback_server(reply(b"", status="403 Forbidden")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        engine = TavilySearch(api_key="k", url="https://tavily.example/search")
        with pytest.raises(EngineUnavailable, match="the proxy refused"):
            await engine.search("lisbon weather", limit=5)
        await engine.close()


# SearXNG


async def test_searxng_is_asked_by_a_form_as_ourselves_for_html_or_json() -> None:
    async with asking(SEARXNG, reply(searxng_found()), language="de") as (engine, server):
        await engine.search("wetter in lissabon & porto", limit=5)
    (request,) = server.requests
    assert (request.method, request.path, request.query) == ("POST", "/search", {})
    assert request.form == {"q": "wetter in lissabon & porto", "format": "json", "language": "de"}
    assert request.headers["accept"] == "text/html, application/json"
    assert request.headers["user-agent"] == USER_AGENT
    assert USER_AGENT.startswith("privategpt/")


async def test_searxng_may_live_below_a_path() -> None:
    async with loopback_server(reply(searxng_found())) as server:
        engine = SearxngSearch(url=f"{server.url}/searxng/")
        await engine.search("lisbon weather", limit=5)
        await engine.close()
    assert server.requests[0].path == "/searxng/search"


@pytest.mark.parametrize(
    ("query", "escaped"),
    [
        ("!g lisbon", "g lisbon"),
        ("!!g lisbon", "g lisbon"),
        (":fr lisbon", "fr lisbon"),
        ("lisbon !images :de <3 ?news", "lisbon images de 3 news"),
        ("what is 5! in C:", "what is 5! in C:"),
        ("!! lisbon", "lisbon"),
        ("lisbon", "lisbon"),
    ],
)
def test_what_searxng_takes_for_commands_is_escaped(query: str, escaped: str) -> None:
    assert escape(query) == escaped


async def test_searxng_is_not_asked_for_nothing() -> None:
    async with asking(SEARXNG, reply(searxng_found())) as (engine, server):
        assert await engine.search("!! :", limit=5) == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("unresponsive", "named"),
    [
        (
            [["bing", "timeout"], ["qwant", "access denied"]],
            "bing (timeout), qwant (access denied)",
        ),
        ([["bing", "<b>x</b>\r\nforged"]], "bing (x forged)"),
        ([["bing", None], "odd", []], "bing, odd, ?"),
        ([["e", "x"]] * 9, "e (x), e (x), e (x), e (x), e (x)"),
    ],
)
async def test_no_results_from_engines_that_did_not_answer_is_a_failure(
    unresponsive: list[Any], named: str
) -> None:
    error = await failure(SEARXNG, reply(searxng_found(unresponsive_engines=unresponsive)))
    assert isinstance(error, EngineFailed)
    assert error.message == f"SearXNG found nothing, and its engines did not answer: {named}"


async def test_results_count_although_some_engines_did_not_answer() -> None:
    found = searxng_found(searxng_row(1), unresponsive_engines=[["bing", "timeout"]])
    async with asking(SEARXNG, reply(found)) as (engine, _server):
        assert len(await engine.search("lisbon weather", limit=5)) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"publishedDate": "2026-03-30T00:00:00"},
        {"publishedDate": "3 hours ago", "pubdate": "2026-03-30 09:00:00+0000"},
    ],
)
async def test_searxng_tells_the_day_of_publication(more: dict[str, str]) -> None:
    async with asking(SEARXNG, reply(searxng_found(searxng_row(1, **more)))) as (engine, _server):
        (result,) = await engine.search("lisbon weather", limit=5)
    assert result.published == date(2026, 3, 30)


@pytest.mark.parametrize(
    "url", ["", "searx.example", "ftp://searx.example", "http://", "http://x:y/", "http://a/?q=1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"web_search\.searxng\.url"):
        SearxngSearch(url=url)


# Brave


async def test_brave_is_asked_with_the_key_for_web_results_alone() -> None:
    async with asking(BRAVE, reply(brave_found()), language="de") as (engine, server):
        await engine.search("lisbon & porto", limit=50)
    (request,) = server.requests
    assert request.method == "GET"
    assert request.query == {
        "q": "lisbon & porto",
        "count": "20",
        "result_filter": "web",
        "text_decorations": "false",
        "search_lang": "de",
    }
    assert request.headers["x-subscription-token"] == "key-1"
    assert request.headers["accept"] == "application/json"


async def test_brave_without_a_web_part_found_nothing() -> None:
    found = brave_found()
    del found["web"]
    async with asking(BRAVE, reply(found)) as (engine, _server):
        assert await engine.search("lisbon weather", limit=5) == []


async def test_braves_further_snippets_and_day_are_kept() -> None:
    row = brave_row(1, extra_snippets=["More.", None, "And more."], page_age="2026-03-30T08:00:00")
    async with asking(BRAVE, reply(brave_found(row))) as (engine, _server):
        results = await engine.search("lisbon weather", limit=5)
    assert results == [
        WebResult("Title 1", "https://a.example/1", "Text 1 More. And more.", date(2026, 3, 30))
    ]


@pytest.mark.parametrize("extra", ["text", 7, {"a": 1}])
async def test_further_snippets_of_another_kind_are_left_out(extra: object) -> None:
    found = brave_found(brave_row(1, extra_snippets=extra))
    async with asking(BRAVE, reply(found)) as (engine, _server):
        (result,) = await engine.search("lisbon weather", limit=5)
    assert result.text == "Text 1"


# Tavily


async def test_tavily_is_asked_with_a_bearer_token_for_results_alone() -> None:
    async with asking(TAVILY, reply(tavily_found())) as (engine, server):
        await engine.search("lisbon & porto", limit=5)
    (request,) = server.requests
    assert request.method == "POST"
    assert request.headers["authorization"] == "Bearer key-1"
    assert request.json == {
        "query": "lisbon & porto",
        "max_results": 5,
        "search_depth": "basic",
        "include_answer": False,
        "include_raw_content": False,
        "include_images": False,
    }


async def test_tavily_tells_the_day_of_news() -> None:
    row = tavily_row(1, published_date="Mon, 30 Mar 2026 07:00:00 GMT")
    async with asking(TAVILY, reply(tavily_found(row))) as (engine, _server):
        (result,) = await engine.search("lisbon weather", limit=5)
    assert result.published == date(2026, 3, 30)


@pytest.mark.parametrize("key", ["", " ", "clé", "line\r\nbreak"])
@pytest.mark.parametrize("engine", [BraveSearch, TavilySearch])
def test_a_key_that_cannot_be_one_is_refused_without_repeating_it(
    engine: type[BraveSearch] | type[TavilySearch], key: str
) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        engine(api_key=key)
    assert refusal.value.message.endswith("is not a key: it has characters no key has")
