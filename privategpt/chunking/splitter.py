"""Cuts a document into chunks: exact ranges of its text, never above the model's window.

LlamaIndex's SentenceSplitter, which this replaces, answers with stripped strings and no offsets,
counts tokens again at every level, and knows no headings, rows or full stops beyond Latin and
Chinese. Here the text is tokenised once; chunks near the limit are counted once more on their
own, because a tokenizer may read a piece differently from the same piece in its text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from privategpt.chunking.boundaries import (
    Boundaries,
    Section,
    find_boundaries,
    find_sections,
    sentence_ends,
)
from privategpt.chunking.identity import chunk_id
from privategpt.chunking.tables import Table, find_tables
from privategpt.domain.documents import Chunk, ParsedDocument
from privategpt.domain.ports import Tokenizer

MAX_CHARACTERS = 4000
"""The longest chunk in code points. One token may span any number of them (`[UNK]` for a word
of 100 letters in BERT), and a chunk is also what a language model has to read."""

_MIN_SECTION_SHARE = 0.25  # a heading starts a new chunk once the present one is filled this far
_MIN_PARAGRAPH_SHARE = 0.5  # a paragraph's end is preferred to a sentence's from here on
_TAIL_SHARE = 0.125  # a last chunk smaller than this is balanced with the one before it
_MAX_HEADER_SHARE = 0.25  # of a chunk, for the header of the table that it continues
_LINE_BREAK_TOKENS = 1
_READ_APART_TOKENS = 8  # by how much a piece, read alone, may exceed its count within the text
_BLOCK_CHARACTERS = 500_000  # tokenised at a time: bounds memory, which is some 100 bytes each
_COMBINING_REACH = 16

_VISIBLE = re.compile(r"\S")
_CLAUSE_END = re.compile(r"[,;:)\]–—](?=\s)|[、，；：،؛）」』》]")
_LINE_END = re.compile(r"\S(?=[^\S\n\r]*[\n\r])")
_WORD_END = re.compile(r"\S(?=\s)")


def split(
    document: ParsedDocument,
    *,
    doc_id: str,
    tokenizer: Tokenizer,
    max_tokens: int | None = None,
    max_characters: int = MAX_CHARACTERS,
) -> list[Chunk]:
    """The chunks of a document in reading order, without overlap.

    Together they cover every visible character exactly once; none has more than `max_tokens`
    (the tokenizer's window if None, and never more than it) or `max_characters`. The one
    exception: a single character that alone is more tokens than that. A chunk that continues a
    table has the header row as its `context`, and both together fit the window.
    """
    text = document.text
    sections = find_sections(text, document.headings)
    limit = min(max_tokens or tokenizer.max_tokens, tokenizer.max_tokens)
    cutter = _Cutter(
        text=text,
        tokenizer=tokenizer,
        token_ends=_token_ends(text, tokenizer),
        boundaries=find_boundaries(text, sections),
        headers=_headers(text, tokenizer, limit),
        max_tokens=limit,
        max_characters=max_characters,
    )
    spans = cutter.spans()
    paths = _heading_paths(sections, [start for start, _ in spans])
    return [
        Chunk(
            chunk_id=chunk_id(doc_id, position),
            doc_id=doc_id,
            position=position,
            start=start,
            end=end,
            text=text[start:end],
            heading_path=path,
            context=cutter.header(start),
        )
        for position, ((start, end), path) in enumerate(zip(spans, paths, strict=True))
    ]


def _headers(text: str, tokenizer: Tokenizer, limit: int) -> list[_Header]:
    """The header rows that leave most of a chunk to the rows below them."""
    found = ((table, tokenizer.count(table.header)) for table in find_tables(text))
    return [
        _Header(table=table, tokens=tokens + _LINE_BREAK_TOKENS)
        for table, tokens in found
        if tokens + _LINE_BREAK_TOKENS <= _MAX_HEADER_SHARE * limit
    ]


def _token_ends(text: str, tokenizer: Tokenizer) -> list[int]:
    ends: list[int] = []
    start = 0
    while start < len(text):
        end = start + _BLOCK_CHARACTERS
        space = max(text.rfind("\n", start + 1, end), text.rfind(" ", start + 1, end))
        if end < len(text) and space > start:
            end = space
        ends.extend(start + offset for offset in tokenizer.ends(text[start:end]))
        start = end
    return ends


def _heading_paths(sections: Sequence[Section], starts: Sequence[int]) -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    open_sections: list[Section] = []
    following = 0
    for start in starts:
        while following < len(sections) and sections[following].start <= start:
            section = sections[following]
            while open_sections and open_sections[-1].level >= section.level:
                open_sections.pop()
            open_sections.append(section)
            following += 1
        paths.append(tuple(section.title for section in open_sections))
    return paths


@dataclass(frozen=True, slots=True)
class _Header:
    table: Table
    tokens: int


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Chooses the ends of chunks. All positions are offsets into `text`.

    `token_ends` counts the tokens of any range of the whole text; `fits` says when that count
    cannot be trusted.
    """

    text: str
    tokenizer: Tokenizer
    token_ends: Sequence[int]
    boundaries: Boundaries
    headers: Sequence[_Header]
    max_tokens: int
    max_characters: int

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of every chunk, white space around them left out."""
        spans = list(self._greedy_spans())
        return self._balance_tail(spans)

    def header(self, start: int) -> str:
        """The header row that a chunk at `start` must be read with, "" where there is none."""
        found = self._header(start)
        return found.table.header if found else ""

    def _header(self, start: int) -> _Header | None:
        index = bisect_right(self.headers, start, key=lambda header: header.table.start) - 1
        if index < 0 or start >= self.headers[index].table.end:
            return None
        return self.headers[index]

    def _room(self, start: int) -> int:
        """How many tokens a chunk at `start` may have beside its header."""
        header = self._header(start)
        return self.max_tokens - (header.tokens if header else 0)

    def _greedy_spans(self) -> Iterator[tuple[int, int]]:
        last = len(self.text.rstrip())
        cut = 0
        while (start := self._skip_space(cut)) < last:
            cut = self._cut(start, previous=cut, last=last)
            yield start, start + len(self.text[start:cut].rstrip())

    def _skip_space(self, position: int) -> int:
        visible = _VISIBLE.search(self.text, position)
        return visible.start() if visible else len(self.text)

    def _cut(self, start: int, *, previous: int, last: int) -> int:
        """The best end for the chunk at `start` that really fits."""
        limit = min(self._token_limit(start), start + self.max_characters, last)
        slack = 0
        while True:
            cut = self._choose(start, limit, last)
            if cut <= start + 1 or self._fits(start, cut, previous=previous):
                return cut
            ends = self.tokenizer.ends(self.text[start:cut])
            within = ends[max(0, min(self._room(start), len(ends)) - 1 - slack)]
            limit = max(start + 1, min(start + within, cut - 1))
            slack = 2 * slack + 1

    def _token_limit(self, start: int) -> int:
        index = bisect_right(self.token_ends, start) + self._room(start)
        return self.token_ends[index - 1] if index < len(self.token_ends) else len(self.text)

    def _tokens(self, start: int, end: int) -> int:
        return bisect_right(self.token_ends, end) - bisect_right(self.token_ends, start)

    def _fits(self, start: int, end: int, *, previous: int) -> bool:
        aligned = self._is_token_end(end) and (start > previous or self._is_token_end(previous))
        if aligned and self._tokens(start, end) + _READ_APART_TOKENS <= self._room(start):
            return True
        header = self.header(start)
        passage = f"{header}\n{self.text[start:end]}" if header else self.text[start:end]
        return self.tokenizer.count(passage) <= self.max_tokens

    def _is_token_end(self, position: int) -> bool:
        index = bisect_left(self.token_ends, position)
        return position == 0 or self.token_ends[index : index + 1] == [position]

    def _choose(self, start: int, limit: int, last: int) -> int:
        section = self._section_end(start, limit)
        if section is not None:
            return section
        if limit >= last:
            return last
        units = self.boundaries.units
        unit = self._last_unit(start, limit)
        if unit is None:
            return self._inside_unit(start, limit)
        paragraph = _last_within(self.boundaries.paragraphs, start, limit)
        if paragraph is not None and self._tokens(start, paragraph) >= (
            _MIN_PARAGRAPH_SHARE * self.max_tokens
        ):
            return paragraph
        return units[unit]

    def _section_end(self, start: int, limit: int) -> int | None:
        """The first heading below which a new chunk pays."""
        sections = self.boundaries.sections
        for index in range(bisect_right(sections, start), bisect_right(sections, limit)):
            if self._tokens(start, sections[index]) >= _MIN_SECTION_SHARE * self.max_tokens:
                return sections[index]
        return None

    def _last_unit(self, start: int, limit: int) -> int | None:
        """The index of the last unit that ends in (start, limit], headings left to their text."""
        units = self.boundaries.units
        first = bisect_right(units, start)
        index = bisect_right(units, limit) - 1
        while index >= first and units[index] in self.boundaries.heading_ends:
            index -= 1
        if index >= first:
            return index
        # Nothing but headings fits before a unit that is whole below them: they go alone.
        index = bisect_right(units, limit) - 1
        if index >= first and index + 1 < len(units):
            following = self._skip_space(units[index])
            if units[index + 1] <= min(
                self._token_limit(following), following + self.max_characters
            ):
                return index
        return None

    def _inside_unit(self, start: int, limit: int) -> int:
        """Where to cut a unit that does not fit: sentence, line, clause, word, or a character.

        Lines and clauses count only in the second half, or chunks would become crumbs.
        """
        cut = max(sentence_ends(self.text, start, limit), default=start)
        if cut > start:
            return cut
        half = start + (limit - start) // 2
        for pattern in (_LINE_END, _CLAUSE_END):
            if cut <= half:
                cut = _last_match(pattern, self.text, start=start, limit=limit)
        if cut <= half:
            cut = _last_match(_WORD_END, self.text, start=start, limit=limit)
        return cut if cut > start else self._between_characters(start, limit)

    def _between_characters(self, start: int, limit: int) -> int:
        """Not between a letter and its accents, nor inside an emoji."""
        cut = limit
        while cut > max(start + 1, limit - _COMBINING_REACH) and self._clings(cut):
            cut -= 1
        return limit if self._clings(cut) else cut

    def _clings(self, position: int) -> bool:
        around = self.text[position - 1 : position + 1]
        return len(around) > 1 and (unicodedata.category(around[1])[0] == "M" or "\u200d" in around)

    def _balance_tail(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if len(spans) < 2:
            return spans
        (start, cut), (tail, end) = spans[-2:]
        if self._tokens(tail, end) >= _TAIL_SHARE * self.max_tokens or _holds(
            self.boundaries.sections, cut
        ):
            return spans
        units = self.boundaries.units
        candidates = [
            unit
            for unit in units[bisect_right(units, start) : bisect_left(units, cut)]
            if unit not in self.boundaries.heading_ends
        ]
        middle = start + (end - start) // 2
        best = min(candidates, key=lambda unit: abs(unit - middle), default=cut)
        following = self._skip_space(best)
        if end - following > self.max_characters or not self._fits(following, end, previous=best):
            return spans
        return [*spans[:-2], (start, best), (following, end)]


def _last_within(positions: Sequence[int], start: int, limit: int) -> int | None:
    index = bisect_right(positions, limit) - 1
    return positions[index] if index >= 0 and positions[index] > start else None


def _last_match(pattern: re.Pattern[str], text: str, *, start: int, limit: int) -> int:
    """The end of the last match that ends in (start, limit]; `start` where there is none."""
    ends = (match.end() for match in pattern.finditer(text, start, limit + 1))
    return max((end for end in ends if end <= limit), default=start)


def _holds(positions: Sequence[int], position: int) -> bool:
    index = bisect_left(positions, position)
    return index < len(positions) and positions[index] == position
