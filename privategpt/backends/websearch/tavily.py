"""Tavily, a search engine for language models.

https://docs.tavily.com/documentation/api-reference/endpoint/search: POST a JSON object with `query`
(at most 400 characters) and `max_results` (0–20), the key as a bearer token. `results` are objects
with `title`, `url`, `content` and, for news, `published_date` (RFC 5322). Errors are
`{"detail": {"error": …}}`; beyond the usual statuses 432 and 433 say that the plan's or the
pay-as-you-go limit is reached (https://help.tavily.com/articles/8645538886-understanding-http-errors).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privategpt.backends.websearch.cleaning import RawResult, clean_results, rows_of
from privategpt.backends.websearch.http import BoundedClient, Question, read_object, require_key
from privategpt.domain.errors import EngineFailed
from privategpt.domain.websearch import WebResult

NAME = "Tavily"
URL = "https://api.tavily.com/search"
KEY_SETTING = "web_search.tavily.api_key"
MAX_COUNT = 20

ADVICE = {
    401: f"the key in {KEY_SETTING} is not known",
    403: f"the key in {KEY_SETTING} has no right to this search",
    429: "too many searches in a short time for this key",
    432: "the limit of this key's plan is reached",
    433: "the pay-as-you-go limit of this account is reached",
}


class TavilySearch:
    """A `SearchEngine` on Tavily; it has no choice of language."""

    name = NAME

    def __init__(
        self,
        *,
        api_key: str,
        deadline_s: float = 5.0,
        max_bytes: int = 1_000_000,
        url: str = URL,
    ) -> None:
        self._url = url
        self._client = BoundedClient(
            provider=NAME,
            headers={
                "Accept": "application/json",
                "Authorization": f"Bearer {require_key(api_key, setting=KEY_SETTING)}",
            },
            deadline_s=deadline_s,
            max_bytes=max_bytes,
        )

    async def search(self, query: str, *, limit: int) -> list[WebResult]:
        wanted = {
            "query": query,
            "max_results": min(limit, MAX_COUNT),
            "search_depth": "basic",
            "include_answer": False,
            "include_raw_content": False,
            "include_images": False,
        }
        answer = await self._client.ask(Question("POST", self._url, json=wanted))
        found = read_object(answer, provider=NAME, advice=ADVICE)
        if not isinstance(found.get("results"), list):
            raise EngineFailed(f"{NAME} answered without a list of results")
        return clean_results(map(_raw, rows_of(found["results"])), limit=limit)

    async def close(self) -> None:
        await self._client.close()


def _raw(row: Mapping[str, Any]) -> RawResult:
    return RawResult(
        title=row.get("title"),
        url=row.get("url"),
        text=row.get("content"),
        published=row.get("published_date"),
    )
