"""Markdown: the text as it is, its headings noted.

Every pattern here takes time in proportion to the line, whatever is in it.
"""

from __future__ import annotations

import re

from privategpt.backends.parsers.bounds import MAX_TITLE_CHARS
from privategpt.backends.parsers.cleaning import noted_heading, require_headings
from privategpt.backends.parsers.file_metadata import facts
from privategpt.domain.documents import Heading, Metadata

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?![^ \t])")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_FRONT_MATTER_ENDS = frozenset(("---", "..."))
_FRONT_MATTER_LINES = 100
_FRONT_MATTER_LENGTH = 10_000
_STATED = re.compile(
    r"(title|author|date):[ \t]+(?![|>\[{&*!])([^#\n]*?)[ \t]*(?:#.*)?", re.IGNORECASE
)
"""A line of YAML whose value is on it; a `#` begins a remark."""

_OTHER_BLOCK = re.compile(r"^ {0,3}(?:[>|]|[-*+][ \t]|\d{1,9}[.)][ \t])")
_BLANKS = " \t"
_LONGEST_TITLE = 4 * MAX_TITLE_CHARS  # with its markup
_INLINE = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|(\*\*|__|[*`])")


def markdown_headings(text: str) -> tuple[Heading, ...]:
    """ATX and Setext headings of `text`, outside code fences and front matter (CommonMark 0.31)."""
    headings: list[Heading] = []
    fence: str | None = None
    above: tuple[int, str] | None = None
    offset = 0
    front_matter = text.startswith("---\n")
    for number, line in enumerate(text.split("\n")):
        start, offset = offset, offset + len(line) + 1
        if front_matter:
            front_matter = number == 0 or line.rstrip() not in _FRONT_MATTER_ENDS
            continue
        if fence or _FENCE.match(line):
            fence, above = _next_fence(fence, line), None
        elif match := _ATX.match(line):
            _note(headings, start, len(match[1]), _atx_title(line[match.end() :]))
            above = None
        elif above and (match := _SETEXT.match(line)):
            _note(headings, above[0], 1 if match[1][0] == "=" else 2, above[1])
            above = None
        else:
            above = _paragraph_line(above, start, line)
    return tuple(headings)


def front_matter_facts(text: str) -> Metadata:
    """What the block of YAML above the text says of it; none of its other entries counts."""
    found: dict[str, str] = {}
    if text.startswith("---\n"):
        for line in text[:_FRONT_MATTER_LENGTH].split("\n")[1:_FRONT_MATTER_LINES]:
            if line.rstrip() in _FRONT_MATTER_ENDS:
                return facts(**found)
            if match := _STATED.fullmatch(line[:_LONGEST_TITLE]):
                found.setdefault(match[1].lower(), match[2].strip("\"'"))
    return {}


def _atx_title(rest: str) -> str:
    """Without the `#`s that may close it, a blank before them."""
    title = rest.strip(_BLANKS)
    open_end = title.rstrip("#")
    return title if open_end and open_end[-1] not in _BLANKS else open_end.rstrip(_BLANKS)


def _next_fence(fence: str | None, line: str) -> str | None:
    match = _FENCE.match(line)
    if fence is None:
        return None if match is None or (match[1][0] == "`" and "`" in match[2]) else match[1]
    closes = match and match[1].startswith(fence) and not match[2].strip()
    return None if closes else fence


def _paragraph_line(above: tuple[int, str] | None, start: int, line: str) -> tuple[int, str] | None:
    """What an underline in the next line would make a heading: the paragraph so far."""
    if not line.strip() or _OTHER_BLOCK.match(line) or _SETEXT.match(line):
        return None
    if above:
        more = len(above[1]) < _LONGEST_TITLE
        return (above[0], f"{above[1]} {line.strip()}") if more else above
    return None if line.startswith(("    ", "\t")) else (start, line.strip())


def _note(headings: list[Heading], start: int, level: int, title: str) -> None:
    plain = _INLINE.sub(lambda match: match[1] or "", title[:_LONGEST_TITLE])
    if plain.strip():
        require_headings(headings)
        headings.append(noted_heading(plain, start=start, level=level))
