"""Brave Search through its Web Search API.

https://api-dashboard.search.brave.com/api-reference/web/search/get: GET with `q` (at most 400
characters and 50 words), `count` (1–20) and the key in `X-Subscription-Token`. `web.results` are
objects with `title`, `url`, `description`, `page_age` (ISO 8601) and, on some plans,
`extra_snippets`; `web` is absent where nothing was found. Errors are
`{"type": "ErrorResponse", "error": {"status", "code", "detail", …}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from privategpt.backends.websearch.cleaning import RawResult, clean_results, rows_of
from privategpt.backends.websearch.http import BoundedClient, Question, read_object, require_key
from privategpt.domain.errors import EngineFailed
from privategpt.domain.websearch import WebResult

NAME = "Brave"
URL = "https://api.search.brave.com/res/v1/web/search"
KEY_SETTING = "web_search.brave.api_key"
MAX_COUNT = 20

ADVICE = {
    401: f"the key in {KEY_SETTING} is not known",
    403: f"the key in {KEY_SETTING} has no right to web search",
    422: f"the key in {KEY_SETTING} or the language in web_search.language is not one of Brave's",
    429: "too many searches for the plan of this key; the free plan allows one per second",
}


class BraveSearch:
    """A `SearchEngine` on Brave's index; `language` is one of its `search_lang` codes."""

    name = NAME

    def __init__(
        self,
        *,
        api_key: str,
        language: str | None = None,
        deadline_s: float = 5.0,
        max_bytes: int = 1_000_000,
        url: str = URL,
    ) -> None:
        self._url = url
        self._language = language
        self._client = BoundedClient(
            provider=NAME,
            headers={
                "Accept": "application/json",
                "X-Subscription-Token": require_key(api_key, setting=KEY_SETTING),
            },
            deadline_s=deadline_s,
            max_bytes=max_bytes,
        )

    async def search(self, query: str, *, limit: int) -> list[WebResult]:
        parameters = {
            "q": query,
            "count": str(min(limit, MAX_COUNT)),
            "result_filter": "web",
            "text_decorations": "false",
        }
        if self._language is not None:
            parameters["search_lang"] = self._language
        answer = await self._client.ask(Question("GET", self._url, query=parameters))
        found = read_object(answer, provider=NAME, advice=ADVICE)
        if found.get("type") != "search":
            raise EngineFailed(f"{NAME} answered without search results")
        return clean_results(map(_raw, rows_of(_results(found))), limit=limit)

    async def close(self) -> None:
        await self._client.close()


def _results(found: Mapping[str, Any]) -> object:
    web = found.get("web")
    return cast("Mapping[str, object]", web).get("results") if isinstance(web, dict) else []


def _raw(row: Mapping[str, Any]) -> RawResult:
    more = row.get("extra_snippets")
    snippets = [row.get("description")]
    if isinstance(more, list):
        snippets += cast("list[object]", more)
    return RawResult(
        title=row.get("title"),
        url=row.get("url"),
        text=" ".join(snippet for snippet in snippets if isinstance(snippet, str)),
        published=row.get("page_age"),
    )
