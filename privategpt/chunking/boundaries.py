"""Where a text may be cut: the ends of sections, paragraphs and units.

A *unit* is what a chunk keeps whole where it fits: a sentence of prose, or a line that stands for
itself (a table row, a CSV record, a line of code, a list item). Prose that was wrapped at a
column, as in PDF and plain text, is told from such lines by its shape, so that its sentences and
not its lines are the units.

Every boundary is the offset just behind the last visible character before the cut.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from privategpt.domain.documents import Heading

LINE = re.compile("[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
SENTENCE_END = re.compile(
    r"""
    # Latin, Greek and Cyrillic need white space behind; the other full stops end a sentence alone.
    [.!?…]+ ["'”’»)\]]* (?=\s)
  | [。！？｡．؟۔।॥։።။។༎᠃‼⁇⁈⁉]+ ["'”’»)\]」』）】〉》]*
    """,
    re.VERBOSE,
)
# "Dr. Smith", "e.g. this", "J. Smith", "No. 5" and a number in a list do not end a sentence.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:[^\W\d_]|\d{1,2}|(?:[^\W\d_]\.)+[^\W\d_]|Mrs?|Ms|Dr|Prof|St|Sr|Jr|Rev|Gen|Col|Capt|Lt"
    r"|vs|cf|ca|al|etc|eg|ie|No|Nos|Nr|Fig|Figs|Eq|Sec|Ch|Vol|pp|Inc|Ltd|Co|Corp|Abs|Art|bzw|Abb"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)$"
)
_ABBREVIATION_REACH = 12
_CODE = re.compile(r"[{}\[\]();=<>_\\`@$|]")
_VISIBLE = re.compile(r"\S")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LIST_ITEM = re.compile(r"(?:[-*+•‣◦▪]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s")
_FENCES = ("```", "~~~")
_SHORT_LINE = 200
_WRAPPED_LINE = 40
_SECTION_PREFIX = 12


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, by where its line begins."""

    start: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Ascending offsets. Sections are paragraphs too, and paragraphs are units.

    `heading_ends` are the ends of heading lines: a chunk that ended there would part a heading
    from its text.
    """

    sections: Sequence[int]
    paragraphs: Sequence[int]
    units: Sequence[int]
    heading_ends: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Line:
    """A physical line without the white space around it."""

    start: int
    end: int
    heading: bool
    prose: bool
    starts_paragraph: bool


def find_sections(text: str, headings: Sequence[Heading]) -> list[Section]:
    """The headings in order, each moved to the start of its line (before a Markdown `#`)."""
    return [
        Section(
            start=_line_start(text, heading.start),
            level=heading.level,
            title=heading.title,
        )
        for heading in sorted(headings, key=lambda heading: heading.start)
    ]


def find_boundaries(text: str, sections: Sequence[Section]) -> Boundaries:
    """All places where `text` may be cut without harm, in one pass over it."""
    section_ends: list[int] = []
    paragraphs: list[int] = []
    units: list[int] = []
    heading_ends: set[int] = set()
    previous: list[_Line] = []
    for lines in _logical_lines(text, [section.start for section in sections]):
        if previous and not previous[-1].heading:
            end = previous[-1].end
            if lines[0].heading:
                section_ends.append(end)
            if lines[0].heading or lines[0].starts_paragraph:
                paragraphs.append(end)
        if lines[0].heading:
            heading_ends.add(lines[-1].end)
        units.extend(_units(text, lines))
        previous = lines
    return Boundaries(
        sections=section_ends,
        paragraphs=paragraphs,
        units=units,
        heading_ends=frozenset(heading_ends),
    )


def _line_start(text: str, position: int) -> int:
    """The start of the line, if only marks such as `#` or `1.` stand between it and `position`."""
    start = position
    while start > max(0, position - _SECTION_PREFIX) and not text[start - 1].isalpha():
        start -= 1
        if text[start] in "\r\n":
            return start + 1
    return 0 if start == 0 else position


def _logical_lines(text: str, section_starts: Sequence[int]) -> Iterator[list[_Line]]:
    """Lines that stand for themselves, one by one; the wrapped lines of a paragraph together."""
    lines: list[_Line] = []
    for line in _lines(text, section_starts):
        if lines and not _continues(text, lines[-1], line):
            yield lines
            lines = []
        lines.append(line)
    if lines:
        yield lines


def _lines(text: str, section_starts: Sequence[int]) -> Iterator[_Line]:
    fenced = False
    previous_end = 0
    for match in LINE.finditer(text):
        line = match.group()
        visible = line.strip()
        if not visible:
            continue
        start = match.start() + len(line) - len(line.lstrip())
        end = start + len(visible)
        fence = visible.startswith(_FENCES)
        heading = bisect_left(section_starts, end) > bisect_left(section_starts, match.start())
        yield _Line(
            start=start,
            end=end,
            heading=heading,
            prose=not (fenced or fence) and _is_prose(visible),
            starts_paragraph=_is_blank_line(text, previous_end, match.start()),
        )
        fenced ^= fence
        previous_end = match.end()


def _is_blank_line(text: str, start: int, end: int) -> bool:
    breaks = max(text.count("\n", start, end), text.count("\r", start, end))
    return breaks > 1 or text.find("\f", start, end) >= 0


def _is_prose(line: str) -> bool:
    """Words in a row, as against a table row, a record or a line of code."""
    if "\t" in line or line.count(" ") < 3:
        return bool(_CJK.search(line)) and "\t" not in line and line.count("|") < 2
    if len(_CODE.findall(line)) >= 3:
        return False
    return line.count(";") + line.count(",") - line.count(", ") - line.count("; ") < 2


def _continues(text: str, line: _Line, following: _Line) -> bool:
    """Whether a line break is only where the column ended, so that the sentence goes on."""
    return (
        line.prose
        and following.prose
        and not line.heading
        and not following.heading
        and not following.starts_paragraph
        and line.end - line.start >= _WRAPPED_LINE
        and not _LIST_ITEM.match(text, following.start)
    )


def _units(text: str, lines: Sequence[_Line]) -> Iterator[int]:
    start, end = lines[0].start, lines[-1].end
    alone = len(lines) == 1 and (not lines[0].prose or end - start <= _SHORT_LINE)
    if not alone and not lines[0].heading:
        yield from sentence_ends(text, start, end)
    yield end


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """The ends of the sentences that end inside `text[start:end]`, its own end left out."""
    for match in SENTENCE_END.finditer(text, start, end):
        if match.end() < end and not _goes_on(text, start, match.start(), match.end()):
            yield match.end()


def _goes_on(text: str, start: int, stop: int, end: int) -> bool:
    following = _VISIBLE.search(text, end)
    if following and following.group().islower() and text[stop] in ".!?…":
        return True
    if text[stop] != ".":
        return False
    return bool(_ABBREVIATION.search(text[max(start, stop - _ABBREVIATION_REACH) : stop]))
