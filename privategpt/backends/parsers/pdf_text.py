"""What PDF text needs beyond the common rule, page by page and over all pages of a document.

A PDF knows glyphs, not words: ligatures stand for letters, words break at line ends, and the
same header stands on every page.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

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

_MIN_PAGES = 4
_RUNNING_SHARE = 0.6
_EDGE_LINES = 2


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

    Numbers do not count in the comparison, so that page numbers go too.
    """
    if len(texts) < _MIN_PAGES:
        return list(texts)
    pages = [text.split("\n") for text in texts]
    counts = Counter(key for lines in pages for key in set(map(_shape, _edges(lines))))
    needed = max(_MIN_PAGES - 1, _RUNNING_SHARE * sum(map(bool, texts)))
    running = {key for key, count in counts.items() if count >= needed and key}
    seen: set[str] = set()
    return ["\n".join(_without(lines, running, seen)).strip() for lines in pages]


def _edges(lines: list[str]) -> list[str]:
    if len(lines) <= 2 * _EDGE_LINES:
        return lines[:1] + lines[-1:]
    return lines[:_EDGE_LINES] + lines[-_EDGE_LINES:]


def _shape(line: str) -> str:
    return _NUMBERS.sub("#", " ".join(line.split()))


def _without(lines: list[str], running: set[str], seen: set[str]) -> list[str]:
    last = len(lines) - 1
    kept: list[str] = []
    for number, line in enumerate(lines):
        key = _shape(line)
        at_edge = number < _EDGE_LINES or number > last - _EDGE_LINES
        if at_edge and key in running and (key in seen or not any(map(str.isalpha, key))):
            continue
        if key in running:
            seen.add(key)
        kept.append(line)
    return kept if any(line.strip() for line in kept) else lines
