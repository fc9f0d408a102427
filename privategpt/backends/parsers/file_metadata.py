"""What files say of themselves, in the three words that citations use."""

from __future__ import annotations

import re

from privategpt.backends.parsers.cleaning import one_line
from privategpt.backends.parsers.packages import Package, local
from privategpt.domain.documents import Metadata, Scalar

_PLACEHOLDERS = frozenset(
    (
        *("untitled", "anonymous", "unspecified", "unknown", "author", "title", "user", "none"),
        *("python-docx", "openpyxl", "apache poi"),
    )
)
_OF_A_TEMPLATE = frozenset(("2013-12-23T23:15:00Z", "2013-01-27T09:14:16Z"))
"""When the templates were made that python-docx and python-pptx begin every document from."""

_SAVED_BY = "saved by "  # as browsers sign the pages that they save
_PROGRAM_PREFIX = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_YEAR = re.compile(r"(?<!\d)(1[4-9]\d\d|20\d\d)(?!\d)")
_PDF_DATE = re.compile(r"^(?:D:)?(\d{4})")
_MAX_CHARS = 500


def facts(
    *, title: str | None = None, author: str | None = None, date: str | None = None
) -> dict[str, Scalar | None]:
    """`title`, `author` and `year` (an int) where they are stated and mean something."""
    found: dict[str, Scalar | None] = {}
    if title and (stated := _stated(_PROGRAM_PREFIX.sub("", title))):
        found["title"] = stated
    if author and (stated := _stated(author)):
        found["author"] = stated
    if date and date not in _OF_A_TEMPLATE and (year := year_of(date)):
        found["year"] = year
    return found


def _stated(value: str) -> str | None:
    value = one_line(value)[:_MAX_CHARS]
    bare = value.strip('()[]<>" ').lower()
    placeholder = bare in _PLACEHOLDERS or bare.startswith(_SAVED_BY)
    return None if placeholder or not value else value


def year_of(date: str) -> int | None:
    """The year in a date of any form that starts with or contains one."""
    if match := _PDF_DATE.match(date):
        return int(match[1]) if 1400 <= int(match[1]) <= 2099 else None
    match = _YEAR.search(date)
    return int(match[1]) if match else None


def dublin_core(package: Package, part: str) -> Metadata:
    """Title, creator and date of a part that uses Dublin Core: OOXML, OpenDocument."""
    tree = package.optional_tree(part)
    if tree is None:
        return {}
    values: dict[str, str] = {}
    for element in tree.iter():
        name = local(element)
        if element.text and element.text.strip() and name not in values:
            values[name] = element.text
    author = values.get("initial-creator") or values.get("creator")
    date = values.get("created") or values.get("creation-date") or values.get("date")
    return facts(title=values.get("title"), author=author, date=date)
