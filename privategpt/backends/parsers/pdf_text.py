"""What PDF text needs beyond the common rule, page by page and over all pages of a document.

A PDF knows glyphs, not words: ligatures stand for letters, words break at line ends, and the
same header stands on every page.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from privategpt.backends.parsers.bounds import MAX_TITLE_CHARS
from privategpt.backends.parsers.cleaning import clean, one_line

_COMPATIBILITY = re.compile(
    "[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdf9\ufe70-\ufefc\u2e80-\u2fdf\uf900-\ufaff]"
)
"""Latin and Armenian ligatures, Hebrew and Arabic presentation forms, CJK radicals and
compatibility ideographs: glyph variants that text never means."""

_BLANKS_AT_LINE_END = re.compile(r"[ \t\xa0]+(?=\n)")
_BROKEN_WORD = re.compile(r"(\w+)(?:[\x02\ufffe]\r?\n?|(?:-|\xad)\r?\n(?=[^\W\d_]))(\w+)")
_WORD = re.compile(r"\w+(?:-\w+)*")
_NUMBERS = re.compile(r"\d+|(?<![^\W\d_])[ivxlc]+(?![^\W\d_])", re.IGNORECASE)
"""Arabic and Roman: page numbers of both kinds."""

_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}  # "İ" is an "i" to a pattern
_LONGEST_NUMBER = 18

_Values: TypeAlias = tuple[int, ...]

_MIN_PAGES = 4
_RUNNING_SHARE = 0.6
_EDGE_LINES = 2
_NEAR_PAGES = 2  # left and right pages may have headers of their own


def page_texts(raw: Sequence[str]) -> list[str]:
    """The pages' texts as they are stored, in the same order."""
    joined = join_broken_words([_letters(text) for text in raw])
    return drop_running_lines([_tidy(text) for text in joined])


def clean_title(title: str) -> str:
    """A bookmark's title in the letters that the pages are stored in."""
    return one_line(_letters(title))[:MAX_TITLE_CHARS].rstrip()


def _letters(text: str) -> str:
    return _COMPATIBILITY.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def _tidy(text: str) -> str:
    return _BLANKS_AT_LINE_END.sub("", clean(text) + "\n").strip()


def join_broken_words(texts: Sequence[str]) -> list[str]:
    """Words broken at line ends in one piece again.

    Whether the hyphen goes is decided by the document itself: "well-known" keeps it where the
    document has "well-known" in a line and not "wellknown".
    """
    if not any(_BROKEN_WORD.search(text) for text in texts):
        return list(texts)
    words = _vocabulary(texts)

    def join(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        whole, hyphenated = first + second, f"{first}-{second}"
        if whole.lower() in words:
            return whole
        keeps = hyphenated.lower() in words or not second[0].islower() or not first[-1].isalpha()
        return hyphenated if keeps and second[0].isascii() else whole

    return [_BROKEN_WORD.sub(join, text) for text in texts]


def _vocabulary(texts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for text in texts:
        found.update(word.lower() for word in _WORD.findall(_BROKEN_WORD.sub(" ", text)))
    return found


def drop_running_lines(texts: Sequence[str]) -> list[str]:
    """Without the headers and footers that most pages repeat, but for their first appearance.

    Page numbers go too: a number may be one more on the next page. All others must be the same
    there, or it is a row of a table that has the place of a header on every page.
    """
    if len(texts) < _MIN_PAGES:
        return list(texts)
    pages = [text.split("\n") for text in texts]
    edges = [_edge_shapes(lines) for lines in pages]
    counts = Counter(shape for shapes in edges for shape in shapes)
    needed = max(_MIN_PAGES - 1, _RUNNING_SHARE * sum(map(bool, texts)))
    running = {shape for shape, count in counts.items() if count >= needed and shape}
    seen: set[str] = set()
    kept: list[str] = []
    for index, lines in enumerate(pages):
        near = {n: edges[n] for n in _neighbours(index, len(pages))}
        repeated = {
            number
            for number in _edge_numbers(lines)
            if (shape := _shape(lines[number])) in running
            and any(
                _goes_on(_values(lines[number]), other, pages=n - index)
                for n, shapes in near.items()
                for other in shapes.get(shape, ())
            )
        }
        kept.append("\n".join(_without(lines, repeated, seen)).strip())
    return kept


def _neighbours(index: int, count: int) -> list[int]:
    reach = range(max(0, index - _NEAR_PAGES), min(count, index + _NEAR_PAGES + 1))
    return [number for number in reach if number != index]


def _edge_numbers(lines: list[str]) -> list[int]:
    """Which lines of a page may be its headers and footers."""
    last = len(lines) - 1
    return [n for n in range(len(lines)) if n < _EDGE_LINES or n > last - _EDGE_LINES]


def _edge_shapes(lines: list[str]) -> dict[str, list[_Values]]:
    """The numbers in the lines at a page's edges, by what the lines are without them."""
    edges = lines
    if len(lines) > 2 * _EDGE_LINES:
        edges = lines[:_EDGE_LINES] + lines[-_EDGE_LINES:]
    elif lines:
        edges = [lines[0], lines[-1]]
    found: dict[str, list[_Values]] = {}
    for line in edges:
        found.setdefault(_shape(line), []).append(_values(line))
    return found


def _shape(line: str) -> str:
    return _NUMBERS.sub("#", " ".join(line.split()))


def _values(line: str) -> _Values:
    return tuple(map(_value, _NUMBERS.findall(line)))


def _value(number: str) -> int:
    if number.isdecimal():
        return int(number[:_LONGEST_NUMBER])
    values = [_ROMAN.get(digit, 0) for digit in number.lower()]
    following = [*values[1:], 0]
    return sum(-v if v < f else v for v, f in zip(values, following, strict=True))


def _goes_on(values: _Values, other: _Values, *, pages: int) -> bool:
    """Whether a line so many pages on is the same, but for what counts pages."""
    return all(b - a in (0, pages) for a, b in zip(values, other, strict=True))


def _without(lines: list[str], repeated: set[int], seen: set[str]) -> list[str]:
    kept: list[str] = []
    for number, line in enumerate(lines):
        shape = _shape(line)
        if number in repeated:
            if shape in seen or not any(map(str.isalpha, shape)):
                continue
            seen.add(shape)
        kept.append(line)
    return kept if any(line.strip() for line in kept) else lines
