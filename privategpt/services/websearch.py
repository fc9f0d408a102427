"""Searches the web for the sources of an answer, within the account's daily allowance.

Seed 003: a search that finds nothing, that could not look, or that has no allowance left is no
error. The answer is then written without results, and only the operator is told which it was.
"""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import Callable, Sequence

from privategpt.domain.conversation import Message
from privategpt.domain.errors import EngineTimedOut, Unavailable
from privategpt.domain.websearch import (
    MAX_QUERY_CHARACTERS,
    MAX_QUERY_WORDS,
    AllowanceUsage,
    SearchEngine,
    SearchOutcome,
    WebResult,
)
from privategpt.services.allowance import Allowance, Unit
from privategpt.services.conversation_query import retrieval_query

_log = logging.getLogger(__name__)

NOTHING: tuple[WebResult, ...] = ()

LONGEST_READ = 20 * MAX_QUERY_CHARACTERS
"""Characters of a message that are looked at: it may be megabytes long."""


class WebSearch:
    """Finds web pages for a conversation; `engine` is None where the operator has set none.

    `observe` is told the outcome of every search that was not cancelled, for a metric.
    """

    def __init__(
        self,
        *,
        engine: SearchEngine | None,
        allowance: Allowance,
        results: int,
        deadline_s: float,
        observe: Callable[[SearchOutcome], None],
    ) -> None:
        self._engine = engine
        self._allowance = allowance
        self._results = results
        self._deadline_s = deadline_s
        self._observe = observe

    async def search(self, messages: Sequence[Message], *, tenant: str) -> tuple[WebResult, ...]:
        """Pages for the last user message, best first; none means: answer without sources.

        Where that message alone is not a question, the conversation gives it context. One search
        of the tenant's allowance is used exactly where something was found; cancelling uses none.
        """
        found, outcome = await self._search(messages, tenant=tenant)
        self._observe(outcome)
        return found

    async def usage(self, tenant: str) -> AllowanceUsage:
        """The tenant's allowance today. Raises `Unavailable` where it cannot be read."""
        return await self._allowance.usage(tenant)

    async def close(self) -> None:
        """Release the engine's connections."""
        if self._engine is not None:
            await self._engine.close()

    async def _search(
        self, messages: Sequence[Message], *, tenant: str
    ) -> tuple[tuple[WebResult, ...], SearchOutcome]:
        if self._engine is None:
            return NOTHING, SearchOutcome.OFF
        query = fit_query(retrieval_query(messages))
        if not query:
            return NOTHING, self._nothing_found(self._engine)
        try:
            unit = await self._allowance.reserve(tenant)
        except Unavailable as error:
            return NOTHING, _could_not_look(error)
        if unit is None:
            _log.info("Web search: the account's searches of today are used up")
            return NOTHING, SearchOutcome.ALLOWANCE_USED_UP
        # No await between the reservation and this `try`, or a cancellation would keep the unit.
        found = NOTHING
        try:
            found = await self._ask(self._engine, query)
        except Unavailable as error:
            return NOTHING, _could_not_look(error)
        finally:
            if not found:
                await self._give_back(unit)
        return found, SearchOutcome.FOUND if found else self._nothing_found(self._engine)

    async def _ask(self, engine: SearchEngine, query: str) -> tuple[WebResult, ...]:
        try:
            # Holds for every engine, whatever it promises of itself.
            async with asyncio.timeout(self._deadline_s):
                return tuple(await engine.search(query, limit=self._results))[: self._results]
        except TimeoutError as error:
            raise EngineTimedOut(
                f"{engine.name} did not answer within {self._deadline_s:g} s"
            ) from error

    async def _give_back(self, unit: Unit) -> None:
        try:
            await self._allowance.refund(unit)
        except Unavailable as error:
            _log.warning("Web search: a search could not be refunded: %s", error.message)

    @staticmethod
    def _nothing_found(engine: SearchEngine) -> SearchOutcome:
        _log.info("Web search: %s found nothing", engine.name)
        return SearchOutcome.NOTHING_FOUND


def _could_not_look(error: Unavailable) -> SearchOutcome:
    _log.warning("Web search could not look: %s", error.message)
    return SearchOutcome.COULD_NOT_LOOK


def fit_query(text: str) -> str:
    """`text` as one line without control characters, as long as search engines take it.

    Of a longer one the first quarter and the last three stay: the question stands after a pasted
    text far more often than before it, but it may.
    """
    if len(text) > LONGEST_READ:
        head = LONGEST_READ // 4
        text = f"{text[:head]} {text[head - LONGEST_READ :]}"
    words = "".join(map(_printable, text)).split()
    if len(words) > MAX_QUERY_WORDS:
        head = MAX_QUERY_WORDS // 4
        words = [*words[:head], *words[head - MAX_QUERY_WORDS :]]
    line = " ".join(words)
    if len(line) <= MAX_QUERY_CHARACTERS:
        return line
    head = MAX_QUERY_CHARACTERS // 4
    return f"{_until_blank(line[:head])} {_from_blank(line[head + 1 - MAX_QUERY_CHARACTERS :])}"


def _until_blank(text: str) -> str:
    return text[: text.rfind(" ")] if " " in text else text


def _from_blank(text: str) -> str:
    return text[text.find(" ") + 1 :]


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in {"Cc", "Cs"} else character
