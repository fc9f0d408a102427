"""Text that is held until its sentence is complete, and what a sentence is made of."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from privategpt.grounding.claims import without_list_mark
from privategpt.grounding.lexicon import STOPS_AT_ONCE, STOPS_BEFORE_SPACE
from privategpt.grounding.markdown import Piece
from privategpt.grounding.removing import sure_before_marker, without_markers_but

_CODE = "x"  # stands for a character of code, so that a full stop in it ends no sentence
_STOPS = f".!…。！｡{STOPS_BEFORE_SPACE}{STOPS_AT_ONCE}"
_CLOSING_STOP = re.compile(rf"[{_STOPS}]+\s*\Z")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef」』）。]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A complete sentence with the white space behind it, its prose in one piece between markers
    and code.
    """

    pieces: tuple[Piece, ...]

    @property
    def claim(self) -> str:
        """Its words without its markers and its list mark; empty if it is nothing but code."""
        if not any(
            not piece.code and piece.number is None and piece.text.strip() for piece in self.pieces
        ):
            return ""
        return _joined(piece for piece, _ in without_markers_but((), self.pieces))

    @property
    def clauses(self) -> tuple[str, ...]:
        """For each marker the words since the one before it; markers in a row share theirs."""
        found: list[str] = []
        clause: list[Piece] = []
        previous = ""
        for piece in self.pieces:
            if piece.number is None:
                clause.append(piece)
                continue
            text = _joined(clause)
            if any(char.isalnum() for char in text):
                previous, clause = text.lstrip(",;:. "), []
            found.append(previous)
        return tuple(found)


class Waiting:
    """The pieces of sentences that are not complete yet."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self._begun = 0  # code points of the first piece that are taken
        self._ahead = 0  # code points taken beyond what was asked: the rest of a marker

    def add(self, pieces: Iterable[Piece]) -> str:
        """Keep the pieces; returns them as the splitter should see them, of the same length."""
        added = list(pieces)
        self._pieces += added
        return _shape(added)

    def sure(self, begun: str) -> str:
        """The words that stay as they are, whatever is found for the sentence that they begin.

        `begun` is that beginning, as the splitter sees it. A marker may yet be taken out, and one
        be put in at the sentence's end, which is no earlier than the word that stands last now.
        """
        if self._ahead:
            return ""
        text = "".join(piece.text for piece in takewhile(_is_no_marker, self._pieces))
        shape = begun[: len(text) - self._begun]
        words = shape.rpartition(" ")[0] or shape
        return text[self._begun :][: len(_without_end(words))]

    def take(self, length: int) -> Sentence:
        """The next `length` code points; a marker that the end cuts through is taken whole."""
        taken: list[Piece] = []
        left = length - self._ahead
        while left > 0:
            piece = self._pieces[0]
            is_marker = piece.number is not None
            end = len(piece.text) if is_marker else min(self._begun + left, len(piece.text))
            left -= end - self._begun
            _append(taken, replace(piece, text=piece.text[self._begun : end]))
            self._begun = end
            if end == len(piece.text):
                self._pieces.popleft()
                self._begun = 0
        self._ahead = -left
        return Sentence(tuple(taken))


def _append(pieces: list[Piece], piece: Piece) -> None:
    """Prose goes on where prose stands last."""
    if pieces and not (piece.code or pieces[-1].code) and pieces[-1].number is piece.number is None:
        piece = Piece(pieces.pop().text + piece.text)
    pieces.append(piece)


def _without_end(text: str) -> str:
    """Without what a marker would be put before, or take along when it is taken out."""
    while (shorter := sure_before_marker(text.rstrip().rstrip(_STOPS))) != text:
        text = shorter
    return text


def _is_no_marker(piece: Piece) -> bool:
    return piece.number is None


def _shape(pieces: Iterable[Piece]) -> str:
    """The text of the pieces, of the same length, with code as one long word."""
    return "".join(_masked(piece.text) if piece.code else piece.text for piece in pieces)


def _masked(code: str) -> str:
    """Each line of code ends a sentence, so that a fence is not held."""
    return "\f".join(_CODE * len(line) for line in code.split("\n"))


def _joined(pieces: Iterable[Piece]) -> str:
    return without_list_mark(" ".join("".join(piece.text for piece in pieces).split()))


def insert_marker(pieces: Sequence[Piece], number: int) -> tuple[list[Piece], int]:
    """A sentence with a marker where it belongs, and at which of its pieces that is."""
    shape = _shape(pieces)
    stop = _CLOSING_STOP.search(shape)
    at = stop.start() if stop else len(shape.rstrip())
    unspaced = at > 0 and _UNSPACED.match(shape[at - 1])
    before, after = _cut(pieces, at)
    gap = [] if unspaced or at == 0 or shape[at - 1].isspace() else [Piece(" ")]
    return [*before, *gap, Piece(f"[{number}]", number=number), *after], len(before) + len(gap)


def _cut(pieces: Sequence[Piece], at: int) -> tuple[list[Piece], list[Piece]]:
    before: list[Piece] = []
    for index, piece in enumerate(pieces):
        if len(piece.text) > at:
            head, tail = piece.text[:at], piece.text[at:]
            rest = [Piece(tail, code=piece.code), *pieces[index + 1 :]]
            return ([*before, Piece(head, code=piece.code)] if head else before), rest
        before.append(piece)
        at -= len(piece.text)
    return before, []
