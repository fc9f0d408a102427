"""SearXNG, the self-hosted metasearch engine, through its JSON API.

https://docs.searxng.org/dev/search_api: `/search` with `q` and `format=json`, by POST as a form, so
that questions stay out of access logs. A format that is not among `search.formats` is refused
with 403. Results are objects with `title`, `url`, `content` and, where known, `publishedDate`;
`unresponsive_engines` lists pairs of an engine and what kept it from answering. searx, the program
that SearXNG was made from, answers in the same shape (`pubdate` has the day there).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from privategpt.backends.websearch.cleaning import RawResult, clean_results, plain_text, rows_of
from privategpt.backends.websearch.http import (
    BoundedClient,
    Question,
    read_object,
    require_address,
)
from privategpt.domain.addresses import is_loopback_url
from privategpt.domain.errors import EngineFailed
from privategpt.domain.websearch import WebResult

NAME = "SearXNG"
URL_SETTING = "web_search.searxng.url"

ADVICE = {
    403: (
        "'json' is missing from search.formats in its settings.yml "
        "(or its limiter blocks this server's address)"
    ),
    429: (
        "its limiter stops this server; add its address to botdetection.ip_lists.pass_ip in "
        "SearXNG's limiter.toml, or set server.limiter to false"
    ),
}

COMMAND_MARKS = "!:?<"
"""What makes a word a command to SearXNG wherever it stands: an engine, a language, a redirect to
another site (`!!`), a category in older versions, a time limit."""

MAX_ENGINES_NAMED = 5


class SearxngSearch:
    """A `SearchEngine` on a SearXNG server; `language` is one of its codes, as `de` or `pt-BR`."""

    name = NAME

    def __init__(
        self,
        *,
        url: str,
        language: str | None = None,
        deadline_s: float = 5.0,
        max_bytes: int = 1_000_000,
    ) -> None:
        self._url = f"{require_address(url, setting=URL_SETTING)}/search"
        self._language = language
        # Its bot detection refuses clients that do not accept HTML.
        self._client = BoundedClient(
            provider=NAME,
            headers={"Accept": "text/html, application/json"},
            deadline_s=deadline_s,
            max_bytes=max_bytes,
            # A proxy is for the world outside: it would carry the question off this machine.
            proxied=not is_loopback_url(url),
        )

    async def search(self, query: str, *, limit: int) -> list[WebResult]:
        words = escape(query)
        if not words:
            return []
        form = {"q": words, "format": "json"}
        if self._language is not None:
            form["language"] = self._language
        answer = await self._client.ask(Question("POST", self._url, form=form))
        found = read_object(answer, provider=NAME, advice=ADVICE)
        if not isinstance(found.get("results"), list):
            raise EngineFailed(f"{NAME} answered without a list of results")
        results = clean_results(map(_raw, rows_of(found["results"])), limit=limit)
        if not results:
            _require_responsive(found.get("unresponsive_engines"))
        return results

    async def close(self) -> None:
        await self._client.close()


def escape(query: str) -> str:
    """`query` without what SearXNG would take for a command; it knows no way to quote one.

    A word that is nothing but marks goes.
    """
    return " ".join(filter(None, (word.lstrip(COMMAND_MARKS) for word in query.split())))


def _raw(row: Mapping[str, Any]) -> RawResult:
    return RawResult(
        title=row.get("title"),
        url=row.get("url"),
        text=row.get("content"),
        published=row.get("pubdate") or row.get("publishedDate"),
    )


def _require_responsive(unresponsive: object) -> None:
    if not isinstance(unresponsive, list) or not unresponsive:
        return
    named = [_engine(entry) for entry in cast("list[object]", unresponsive)[:MAX_ENGINES_NAMED]]
    raise EngineFailed(f"{NAME} found nothing, and its engines did not answer: {', '.join(named)}")


def _engine(entry: object) -> str:
    parts = cast("Iterable[object]", entry) if isinstance(entry, list) else [entry]
    name, *reason = [plain_text(part, longest=60) for part in parts] or ["?"]
    return f"{name} ({' '.join(reason)})" if any(reason) else name
