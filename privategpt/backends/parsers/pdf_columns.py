"""The text of a page by where its letters stand: columns one after the other, cells apart.

A PDF's text comes in the order in which it was drawn, which is mostly that of reading. Some
programs draw a page in two columns line by line over both, and what is read is neither of them.
Only the order of such pages is touched, and only where both sides are prose: the rows of a table
are drawn across its columns as well, and belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TypeAlias

Box: TypeAlias = tuple[float, float, float, float]
"""Left, bottom, right, top, in points; the bottom of a page is below its top."""

_MIN_ROWS = 5
_GUTTER = 0.8
"""Of the height of a line, at least; blanks between words are a third of it, in justified lines
up to two."""

_BLANK = 0.15
"""Of the height of a line: more than letters of a word are ever apart."""

_ROWS_ACROSS = 0.6
_FILLED = 0.7
_RUN_ON = 0.35
"""Of the lines of prose in Latin, Greek or Cyrillic, at least so many begin within a sentence:
in small letters. Of the cells of a table hardly any do."""

_SMALL_WORDS = 0.5
"""Of all words of such prose, at least: German has two thirds, names, codes and figures few."""

_MIN_WORDS = 3
_ROW_GAP = 1.35
_SAME_GAPS = 0.8
_APART = 2.5
"""Lines: so far off stands what is no part of a column, a page number below it."""

_GUTTERS_TRIED = 4
_HYPHENS = ("-", "\xad", "\u2010", "\x02", "\ufffe")


@dataclass(frozen=True, slots=True)
class Char:
    """A character as it is drawn; `box` is None for one that is not: a blank, a line end."""

    text: str
    box: Box | None


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is drawn side by side, and the blanks behind it; `number` is its place in the order."""

    number: int
    text: str
    box: Box

    @property
    def left(self) -> float:
        return self.box[0]

    @property
    def right(self) -> float:
        return self.box[2]

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


_Band: TypeAlias = tuple[list[_Piece], list[_Piece]]
"""The left and the right column of a part of the page, each in the order drawn."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The pieces of one side that stand on one line."""

    pieces: list[_Piece] = field(default_factory=list[_Piece])

    @property
    def text(self) -> str:
        return " ".join(piece.text.strip() for piece in self.pieces)

    @property
    def left(self) -> float:
        return min(piece.left for piece in self.pieces)

    @property
    def right(self) -> float:
        return max(piece.right for piece in self.pieces)

    @property
    def middle(self) -> float:
        return self.pieces[0].middle


def may_have_columns(boxes: Sequence[Box], text: str) -> bool:
    """True where some of a page's runs of text, in the order drawn, hop over the same gap, and
    its text may be prose: most pages that hop have tables, and are told at once.
    """
    return _gutter(_hops(boxes)) is not None and _has_small_words(text.split())


def placed(chars: Sequence[Char]) -> str:
    """The page's text with its columns one after the other, and what is on a line on one."""
    return _joined(_ordered(list(_pieces(chars))))


def _ordered(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces in reading order; the right column of two may be two itself."""
    hops = _hops([piece.box for piece in pieces])
    for gutter in _gutters(hops):
        bands = list(_bands(pieces, hops, gutter))
        if bands:
            return list(_rearranged(pieces, bands))
    return pieces


def _rearranged(pieces: Sequence[_Piece], bands: Sequence[_Band]) -> Iterator[_Piece]:
    """Every band where its first piece was, and the other pieces where they were."""
    band_of = {piece.number: band for band in bands for side in band for piece in side}
    done: list[_Band] = []
    for piece in pieces:
        band = band_of.get(piece.number)
        if band is None:
            yield piece
        elif not any(band is one for one in done):
            done.append(band)
            yield from (*_ordered(band[0]), *_ordered(band[1]))


def _bands(pieces: list[_Piece], hops: Sequence[_Hop], gutter: float) -> Iterator[_Band]:
    """The left and the right side of what stands in two columns between two full lines."""
    full = sorted((p.middle for p in pieces if p.left < gutter < p.right), reverse=True)
    edges = [float("inf"), *full, float("-inf")]
    for upper, lower in pairwise(edges):
        inside = [p for p in pieces if lower < p.middle < upper]
        left = [p for p in inside if p.right <= gutter]
        right = [p for p in inside if p.left >= gutter]
        rows = sum(1 for hop in hops if hop.left < gutter < hop.right and lower < hop.y < upper)
        band = _as_columns(left, right, rows)
        if band:
            yield band


@dataclass(frozen=True, slots=True)
class _Hop:
    """A gap that was hopped over to the right, on one line."""

    left: float
    right: float
    y: float


def _hops(boxes: Sequence[Box]) -> list[_Hop]:
    return [hop for one, other in pairwise(boxes) if (hop := _hop(one, other))]


def _hop(one: Box, other: Box) -> _Hop | None:
    height = max(one[3] - one[1], other[3] - other[1])
    if other[0] - one[2] < _GUTTER * height or not _on_a_line(one, other):
        return None
    return _Hop(one[2], other[0], (one[1] + one[3]) / 2)


def _on_a_line(one: Box, other: Box) -> bool:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > 0.4 * min(one[3] - one[1], other[3] - other[1])


def _gutters(hops: Sequence[_Hop]) -> Iterator[float]:
    """The widest spread first: it may be that of a table beside which there are columns."""
    for _ in range(_GUTTERS_TRIED):
        gutter = _gutter(hops)
        if gutter is None:
            return
        yield gutter
        hops = [hop for hop in hops if not hop.left < gutter < hop.right]


def _gutter(hops: Sequence[_Hop]) -> float | None:
    """The middle of what most gaps have in common, if enough have."""
    edges = sorted([(hop.left, 1) for hop in hops] + [(hop.right, -1) for hop in hops])
    open_gaps = most = 0
    found = (0.0, 0.0)
    for (x, step), (following, _) in pairwise(edges):
        open_gaps += step
        if open_gaps > most and following > x:
            most, found = open_gaps, (x, following)
    return sum(found) / 2 if most >= _MIN_ROWS else None


def _pieces(chars: Sequence[Char]) -> Iterator[_Piece]:
    text: list[str] = []
    box: Box | None = None
    number = 0
    for char in chars:
        if box is not None and char.box is not None and not _continues(box, char.box):
            yield _Piece(number, "".join(text), box)
            text, box, number = [], None, number + 1
        elif box is not None and char.box is not None:
            _keep_on_line(text, blank=char.box[0] - box[2] > _BLANK * (box[3] - box[1]))
        text.append(char.text)
        if char.box is not None:
            box = char.box if box is None else _around(box, char.box)
    if box is not None:
        yield _Piece(number, "".join(text), box)


def _keep_on_line(text: list[str], *, blank: bool) -> None:
    """pdfium breaks a line before and behind whatever is drawn as a single letter."""
    if text[-1] in "\r\n":
        while text[-1].isspace():
            text.pop()
        text.extend(" " * blank)


def _continues(piece: Box, char: Box) -> bool:
    height = piece[3] - piece[1]
    gap = char[0] - piece[2]
    return _on_a_line(piece, char) and -height < gap < _GUTTER * height


def _around(one: Box, other: Box) -> Box:
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )


def _as_columns(left: Sequence[_Piece], right: Sequence[_Piece], rows: int) -> _Band | None:
    """Both sides without what stands far above and below them; None if they are no columns."""
    if rows < _MIN_ROWS:
        return None
    first, second = _block(_lines(left)), _block(_lines(right))
    shorter = min(len(first), len(second))
    if shorter < _MIN_ROWS or rows < _ROWS_ACROSS * shorter:
        return None
    if not (_is_prose(first) and _is_prose(second)) or _has_rows(first, second):
        return None
    return _in_drawn_order(first), _in_drawn_order(second)


def _in_drawn_order(lines: Sequence[_Line]) -> list[_Piece]:
    return sorted((p for line in lines for p in line.pieces), key=lambda piece: piece.number)


def _lines(pieces: Sequence[_Piece]) -> list[_Line]:
    """From the top down."""
    lines: list[_Line] = []
    for piece in sorted(pieces, key=lambda one: (-one.middle, one.left)):
        if lines and _on_a_line(lines[-1].pieces[0].box, piece.box):
            lines[-1].pieces.append(piece)
        else:
            lines.append(_Line([piece]))
    return lines


def _block(lines: list[_Line]) -> list[_Line]:
    """Without a line that stands far above or below the others."""
    far = _APART * _pitch(lines)
    while len(lines) > 1 and lines[0].middle - lines[1].middle > far:
        lines = lines[1:]
    while len(lines) > 1 and lines[-2].middle - lines[-1].middle > far:
        lines = lines[:-1]
    return lines


def _pitch(lines: Sequence[_Line]) -> float:
    return median([one.middle - other.middle for one, other in pairwise(lines)] or [0.0])


def _is_prose(lines: Sequence[_Line]) -> bool:
    """Lines as long as the column is wide, of several words, that run on into the next."""
    width = max(line.right for line in lines) - min(line.left for line in lines)
    if median(line.right - line.left for line in lines) < _FILLED * width:
        return False
    if median(len(line.text.split()) for line in lines) < _MIN_WORDS:
        return False
    if not _has_small_words([word for line in lines for word in line.text.split()]):
        return False
    run_on = sum(
        other.text[:1].islower() or one.text.endswith(_HYPHENS) for one, other in pairwise(lines)
    )
    return run_on >= _RUN_ON * (len(lines) - 1)


def _has_small_words(words: Sequence[str]) -> bool:
    return sum(word[:1].islower() for word in words) >= _SMALL_WORDS * len(words)


def _has_rows(first: Sequence[_Line], second: Sequence[_Line]) -> bool:
    """True where most lines that follow a gap have one beside them that does."""
    one, other = _starts(first), _starts(second)
    if min(len(one), len(other)) < 2:
        return False
    near = 0.3 * _pitch(first)
    same = sum(any(abs(y - z) < near for z in other) for y in one)
    return same >= _SAME_GAPS * max(len(one), len(other))


def _starts(lines: Sequence[_Line]) -> list[float]:
    pitch = _pitch(lines)
    return [b.middle for a, b in pairwise(lines) if a.middle - b.middle > _ROW_GAP * pitch]


def _joined(pieces: Sequence[_Piece]) -> str:
    """The blanks behind a piece are its own where the next one stands elsewhere, as drawn."""
    parts: list[str] = []
    for piece, following in pairwise(pieces):
        if _hop(piece.box, following.box):
            parts.append(piece.text.rstrip() + " ")
        elif following.number == piece.number + 1:
            parts.append(piece.text)
        else:
            parts.append(piece.text.rstrip() + "\n")
    return "".join((*parts, *(piece.text for piece in pieces[-1:])))
