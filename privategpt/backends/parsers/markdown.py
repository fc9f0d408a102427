"""Markdown: the text as it is, its headings noted."""

from __future__ import annotations

import re

from privategpt.domain.documents import Heading

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_OTHER_BLOCK = re.compile(r"^ {0,3}(?:[>|]|[-*+][ \t]|\d{1,9}[.)][ \t])")
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
            front_matter = number == 0 or line not in {"---", "..."}
            continue
        if fence or _FENCE.match(line):
            fence, above = _next_fence(fence, line), None
        elif match := _ATX.match(line):
            _note(headings, start, len(match[1]), match[2] or "")
            above = None
        elif above and (match := _SETEXT.match(line)):
            _note(headings, above[0], 1 if match[1][0] == "=" else 2, above[1])
            above = None
        else:
            above = _paragraph_line(above, start, line)
    return tuple(headings)


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
        return above[0], f"{above[1]} {line.strip()}"
    return None if line.startswith(("    ", "\t")) else (start, line.strip())


def _note(headings: list[Heading], start: int, level: int, title: str) -> None:
    plain = " ".join(_INLINE.sub(lambda match: match[1] or "", title).split())
    if plain:
        headings.append(Heading(start=start, level=level, title=plain))
