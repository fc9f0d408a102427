"""Tables in a text, and the header row that says what their cells are.

A table here is what the parsers make of one, rows on lines of their own: cells apart by ` | ` or a
tab, or a CSV file as it came. A chunk that begins in the middle of it has lost the header; this
finds it again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from privategpt.chunking.boundaries import LINE

_MIN_ROWS = 3
_MIN_RECORDS = 4  # of a CSV file; commas in prose line up now and then
_EVEN_SHARE = 0.8
_HEADER_WITHIN = 4  # titles and empty rows may stand above it
_SAMPLE_ROWS = 20
_MAX_HEADER_CHARACTERS = 400

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_NUMBER = re.compile(r"[^\w]*\d[\d\s.,:/%'-]*[^\w]*")
_RULE = re.compile(r"[|\s:+=-]+")
_CODE = re.compile(r"[{}\[\]()=<>]|[.!?]$")


@dataclass(frozen=True, slots=True)
class Table:
    """Where a table's rows below its header start and end, and the header, word for word."""

    start: int
    end: int
    header: str


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int
    text: str

    def cells(self, separator: str) -> list[str]:
        return [cell.strip(' "') for cell in self.text.strip("| ").split(separator)]


def find_tables(text: str) -> list[Table]:
    """The tables with a header in `text`, in reading order."""
    return [
        table for separator, rows in _blocks(text) if (table := _table(rows, separator)) is not None
    ]


def _blocks(text: str) -> Iterator[tuple[str, list[_Row]]]:
    """Runs of lines that one separator divides, with nothing between them."""
    rows: list[_Row] = []
    separator = ""
    for match in LINE.finditer(text):
        line = match[0].strip()
        if rows and (_apart(text, rows[-1].end, match.start()) or not _divides(separator, line)):
            yield separator, rows
            rows = []
        if not rows:
            separator = next((each for each in "|\t;," if _divides(each, line)), "")
        if separator:
            start = match.start() + match[0].index(line)
            rows.append(_Row(start=start, end=start + len(line), text=line))
    if rows:
        yield separator, rows


def _apart(text: str, end: int, start: int) -> bool:
    return text.count("\n", end, start) > 1


def _divides(separator: str, line: str) -> bool:
    if separator == "|":
        return " | " in line or line.startswith("|")
    return separator in line


def _table(rows: list[_Row], separator: str) -> Table | None:
    plain = separator in ",;"
    if len(rows) < (_MIN_RECORDS if plain else _MIN_ROWS) or (
        plain and not _is_even(rows, separator)
    ):
        return None
    for number, row in enumerate(rows[:_HEADER_WITHIN]):
        cells = row.cells(separator)
        filled = sum(map(bool, cells))
        if filled < 2 or _RULE.fullmatch(row.text):
            continue
        if any(map(_NUMBER.fullmatch, cells)) or len(row.text) > _MAX_HEADER_CHARACTERS:
            return None
        body = rows[number + 1 :]
        if not body or (plain and _CODE.search(row.text)) or not _heads(filled, body, separator):
            return None
        return Table(start=body[0].start, end=rows[-1].end, header=row.text)
    return None


def _is_even(rows: list[_Row], separator: str) -> bool:
    counts = Counter(_QUOTED.sub("", row.text).count(separator) for row in rows)
    return counts.most_common(1)[0][1] >= _EVEN_SHARE * len(rows)


def _heads(filled: int, body: list[_Row], separator: str) -> bool:
    """Whether a row of words really is a header: of many columns, of a rule, or of numbers.

    Two columns of words are as often names and values, the first of them no more a header than
    the others.
    """
    if filled > 2 or _RULE.fullmatch(body[0].text):
        return True
    sample = [row.cells(separator) for row in body[:_SAMPLE_ROWS]]
    numbers = sum(any(map(_NUMBER.fullmatch, cells)) for cells in sample)
    return 2 * numbers > len(sample)
