"""Public search engines without a key, through the `ddgs` package (MIT, optional).

It asks several engines' web pages in threads of its own. Two things it does not let us do: bound
the bytes it reads, and tell an engine that refused (it drops every status but 200) from one that
found nothing. An empty hand therefore counts as "could not look".
"""

from __future__ import annotations

import importlib.util
import math
import re
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter, fail_after, to_thread

from privategpt.backends.websearch.cleaning import RawResult, clean_results
from privategpt.domain.errors import EngineFailed, EngineTimedOut, InvalidSettings, Unavailable
from privategpt.domain.websearch import WebResult

if TYPE_CHECKING:
    from ddgs.ddgs import DDGS
    from ddgs.exceptions import DDGSException

NAME = "ddgs"
DEFAULT_REGION = "us-en"
SEARCHES_AT_ONCE = 4


class DdgsSearch:
    """A `SearchEngine` over `ddgs`; `region` is a country and a language, as `de-de`.

    `engines` are names that `ddgs` knows, separated by commas. Raises `InvalidSettings` where
    the package is not installed.
    """

    name = NAME

    def __init__(
        self, *, region: str | None = None, deadline_s: float = 5.0, engines: str = "auto"
    ) -> None:
        if importlib.util.find_spec("ddgs") is None:
            raise InvalidSettings(
                "Setting 'web_search.provider': ddgs needs its package: "
                "pip install 'privategpt[ddgs]'"
            )
        if region is not None and not re.fullmatch(r"[a-z]{2}-[a-z]{2,5}", region.lower()):
            raise InvalidSettings(
                "Setting 'web_search.language': ddgs wants a country and a language, as 'de-de'"
            )
        self._region = region or DEFAULT_REGION
        self._engines = engines
        self._deadline_s = deadline_s
        self._limiter = CapacityLimiter(SEARCHES_AT_ONCE)
        self._ddgs: DDGS | None = None

    async def search(self, query: str, *, limit: int) -> list[WebResult]:
        try:
            with fail_after(self._deadline_s):
                # The thread itself ends with the timeouts that ddgs sets on its connections.
                rows = await to_thread.run_sync(
                    self._ask, query, limit, abandon_on_cancel=True, limiter=self._limiter
                )
        except TimeoutError as error:
            raise EngineTimedOut(f"{NAME} did not answer within {self._deadline_s:g} s") from error
        return clean_results(
            (RawResult(row.get("title"), row.get("href"), row.get("body")) for row in rows),
            limit=limit,
        )

    async def close(self) -> None:
        self._ddgs = None

    def _ask(self, query: str, limit: int) -> list[dict[str, Any]]:
        # Imported here: it takes as long as lxml and a TLS stack of its own take.
        from ddgs.ddgs import DDGS
        from ddgs.exceptions import DDGSException

        ddgs = self._ddgs = self._ddgs or DDGS(timeout=math.ceil(self._deadline_s))
        try:
            return ddgs.text(query, region=self._region, max_results=limit, backend=self._engines)
        except DDGSException as error:
            raise _unavailable(error) from error


def _unavailable(error: DDGSException) -> Unavailable:
    """`ddgs` wraps what an engine raised last; without that, no engine raised anything."""
    from ddgs.exceptions import RatelimitException, TimeoutException

    cause: object = error.args[0] if error.args else None
    if isinstance(error, TimeoutException) or isinstance(cause, TimeoutException):
        return EngineTimedOut(f"{NAME}: the search engines did not answer in time")
    if isinstance(cause, RatelimitException):
        return EngineFailed(f"{NAME}: the search engines refuse so many searches")
    if isinstance(cause, Exception):
        return EngineFailed(f"{NAME}: the search engines cannot be reached or read")
    return EngineFailed(
        f"{NAME}: the search engines found nothing or refused; it does not tell which"
    )
