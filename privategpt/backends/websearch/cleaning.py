"""Turns what a search engine found into results that may be shown: plain, bounded, no page twice.

Everything here comes from pages that anyone may write. Nothing is fetched, and nothing but text
and http(s) addresses passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from html import unescape
from itertools import islice
from typing import Any, cast
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from privategpt.domain.websearch import WebResult

MAX_ROWS = 50
MAX_RAW_CHARACTERS = 5_000
MAX_SHRINKING = 4
MAX_TITLE_CHARACTERS = 300
MAX_TEXT_CHARACTERS = 2_000
MAX_URL_CHARACTERS = 2_048

_BLOCKS = (
    "address|article|aside|blockquote|br|caption|dd|div|dl|dt|figcaption|figure|footer|form|"
    "h[1-6]|header|hr|li|main|nav|ol|option|p|pre|section|table|tbody|td|tfoot|th|thead|tr|ul"
)
_MARKUP = re.compile(
    r"""
    <!--.*?(?:-->|\Z)
    | <(?P<unread>script|style|template|noscript)\b.*?(?:</(?P=unread)\b[^<>]*>|\Z)
    | <[!?][^<>]*>
    | </?(?P<name>[a-z][a-z0-9]*)(?:[\s/:-][^<>]*)?>
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_BLOCK = re.compile(rf"(?:{_BLOCKS})", re.IGNORECASE)

_JOINERS = "\u200c\u200d"
"""Invisible, but Persian, Indic scripts and emoji are misspelt without them."""

_QUOTED_IN_URL = re.compile(r"[<>\"`{}|^]")
_HOST = re.compile(r"[\w.:-]+")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|msclkid|dclid|yclid|mc_[ce]id|igshid", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RawResult:
    """One result as the engine's JSON has it; the values can be anything."""

    title: object
    url: object
    text: object
    published: object = None


def clean_results(found: Iterable[RawResult], *, limit: int) -> list[WebResult]:
    """The first `limit` different pages of `found`, in its order.

    Of a page found twice the first address and title stay, and the longer text.
    """
    pages: dict[tuple[str, ...], WebResult] = {}
    for raw in islice(found, MAX_ROWS):
        result = _clean(raw)
        if result is None:
            continue
        page = page_of(result.url)
        known = pages.get(page)
        if known is None:
            pages[page] = result
        elif len(result.text) > len(known.text):
            pages[page] = replace(known, text=result.text)
    return list(islice(pages.values(), limit))


def rows_of(value: object) -> Iterable[Mapping[str, Any]]:
    """The JSON objects among the first items of a JSON list."""
    for row in cast("list[object]", value)[:MAX_ROWS] if isinstance(value, list) else []:
        if isinstance(row, dict):
            yield cast("dict[str, Any]", row)


def _clean(raw: RawResult) -> WebResult | None:
    url = clean_url(raw.url)
    text = plain_text(raw.text, longest=MAX_TEXT_CHARACTERS)
    if url is None or not text:
        return None
    title = plain_text(raw.title, longest=MAX_TITLE_CHARACTERS)
    return WebResult(
        title=title or str(urlsplit(url).hostname),
        url=url,
        text=text,
        published=clean_date(raw.published),
    )


def plain_text(markup: object, *, longest: int) -> str:
    """Text without tags, its entities decoded once, on one line of at most `longest` characters.

    What an entity spells stays text: `&lt;b&gt;` is read as `<b>` and not stripped again.
    """
    if not isinstance(markup, str):
        return ""
    text = unescape(_MARKUP.sub(_in_place_of_markup, markup[:MAX_RAW_CHARACTERS]))
    text = text[: MAX_SHRINKING * longest]
    if not text.isprintable():  # which is rare, and looking at every character is slow
        text = "".join(map(_printable, text))
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def _in_place_of_markup(match: re.Match[str]) -> str:
    name = match["name"]
    return " " if match["unread"] or (name and _BLOCK.fullmatch(name)) else ""


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    # Format characters turn text around or hide it, and hidden text can speak to a model.
    return character if character.isprintable() or character in _JOINERS else ""


def clean_url(address: object) -> str | None:
    """An http(s) address without user name, quotes or blanks; None for any other."""
    if not isinstance(address, str):
        return None
    address = address.strip()
    if len(address) > MAX_URL_CHARACTERS or "\\" in address or " " in address:
        return None
    try:
        acceptable = address.isprintable() and _names_a_web_page(urlsplit(address))
    except ValueError:  # brackets or a port that are none
        return None
    return _QUOTED_IN_URL.sub(lambda match: quote(match[0]), address) if acceptable else None


def _names_a_web_page(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    return (
        parts.scheme in _DEFAULT_PORTS
        and bool(host.strip("."))
        and _HOST.fullmatch(host) is not None
        and "@" not in parts.netloc
        and parts.port != 0
    )


def page_of(url: str) -> tuple[str, ...]:
    """Equal for addresses of one page: scheme, default port, fragment, last slash and what only
    tracks the reader make no difference.
    """
    parts = urlsplit(url)
    port = "" if parts.port in {None, _DEFAULT_PORTS[parts.scheme]} else str(parts.port)
    query = urlencode(
        [
            (name, value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
            if not _TRACKING.fullmatch(name)
        ]
    )
    return ((parts.hostname or "").rstrip("."), port, unquote(parts.path).rstrip("/"), query)


def clean_date(stated: object) -> date | None:
    """The day of an ISO 8601 or RFC 5322 date; None for anything else ("2 hours ago")."""
    if not isinstance(stated, str):
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(stated.strip()[:64]).date()
        except (ValueError, OverflowError, IndexError, TypeError):
            continue
    return None
