"""Tells prose from code in Markdown that arrives piece by piece.

Nothing is held back but one or two tildes at the start of a line. The rules are CommonMark's,
with two departures that a stream forces: a code span that is not closed on its line ends with
the line (CommonMark would have to look ahead to learn that it is no code span at all), and
indented blocks are prose (in answers they are nearly always paragraphs of a list).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

_BEFORE_FENCE = re.compile(r"[ \t]*(?:(?:>|[-*+][ \t]|\d{1,3}[.)][ \t])[ \t]*)*")
_LONGEST_PREFIX = 40
_SPECIAL = re.compile(r"[`~\\\n]")
_RUNS = {"`": re.compile(r"`+"), "~": re.compile(r"~+")}
_NEWLINE = re.compile(r"\n")
_TICKS_OR_NEWLINE = re.compile(r"`+|\n")
_FENCE_LENGTH = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an answer: prose, code, or a marker (`number` is the source it names)."""

    text: str
    code: bool = False
    number: int | None = None


class _State(Enum):
    PROSE = auto()
    TILDES = auto()  # one or two tildes at the start of a line: perhaps a fence
    OPENING = auto()  # within the run of backticks that opens a span or a fence
    SPAN = auto()
    CLOSING = auto()  # within a run of backticks that may close the span
    INFO = auto()  # the rest of the line that opens a fence
    FENCE = auto()


class CodeLexer:
    """Splits a stream of text into prose and code; the pieces joined are the text."""

    def __init__(self) -> None:
        self._state = _State.PROSE
        self._line: str | None = ""  # the line so far; None once it is too long for a fence
        self._escaped = False
        self._fence = "`"
        self._opened = 0  # length of the run that opened the span or fence
        self._run = 0
        self._fence_line: list[str] = []

    def feed(self, delta: str) -> list[Piece]:
        """The pieces that `delta` completes, in order."""
        return list(self._pieces(delta))

    def finish(self) -> list[Piece]:
        """What was held back."""
        held = "~" * self._run if self._state is _State.TILDES else ""
        self._state = _State.PROSE
        return [Piece(held)] if held else []

    def _pieces(self, text: str) -> Iterator[Piece]:
        at = 0
        piece: Piece | None
        while at < len(text):
            match self._state:
                case _State.PROSE:
                    end, piece = self._prose(text, at)
                case _State.TILDES:
                    end, piece = self._tildes(text, at)
                case _State.OPENING:
                    end, piece = self._opening(text, at)
                case _State.SPAN:
                    end, piece = self._span(text, at)
                case _State.CLOSING:
                    end, piece = self._closing(text, at)
                case _State.INFO:
                    end, piece = self._info(text, at)
                case _State.FENCE:
                    end, piece = self._body(text, at)
            if piece is not None and piece.text:
                yield piece
            at = end

    def _prose(self, text: str, start: int) -> tuple[int, Piece]:
        at = start
        while match := _SPECIAL.search(text, at):
            special = match.start()
            if special > at:
                self._escaped = False
            self._extend_line(text[at:special])
            char, at = text[special], special + 1
            if char == "\n":
                self._line, self._escaped = "", False
                continue
            if char == "`" and not self._escaped:
                self._state, self._run, self._fence = _State.OPENING, 0, "`"
                return special, Piece(text[start:special])
            if char == "~" and not self._escaped and self._may_open_fence():
                self._state, self._run, self._fence = _State.TILDES, 0, "~"
                return special, Piece(text[start:special])
            self._escaped = char == "\\" and not self._escaped
            self._extend_line(char)
        if at < len(text):
            self._escaped = False
        self._extend_line(text[at:])
        return len(text), Piece(text[start:])

    def _extend_line(self, text: str) -> None:
        if self._line is not None:
            line = self._line + text[: _LONGEST_PREFIX + 1]
            self._line = line if len(line) <= _LONGEST_PREFIX else None

    def _may_open_fence(self) -> bool:
        return self._line is not None and _BEFORE_FENCE.fullmatch(self._line) is not None

    def _tildes(self, text: str, start: int) -> tuple[int, Piece | None]:
        if text[start] != "~":
            self._state = _State.PROSE
            held = "~" * self._run
            self._extend_line(held)
            return start, Piece(held)
        self._run += 1
        if self._run < _FENCE_LENGTH:
            return start + 1, None
        self._state = _State.OPENING
        return start + 1, Piece("~" * self._run, code=True)

    def _opening(self, text: str, start: int) -> tuple[int, Piece | None]:
        if run := _RUNS[self._fence].match(text, start):
            self._run += len(run[0])
            return run.end(), Piece(run[0], code=True)
        is_fence = self._run >= _FENCE_LENGTH and self._may_open_fence()
        self._state = _State.INFO if is_fence else _State.SPAN
        self._opened, self._line = self._run, None
        return start, None

    def _span(self, text: str, start: int) -> tuple[int, Piece]:
        found = _TICKS_OR_NEWLINE.search(text, start)
        if found is None:
            return len(text), Piece(text[start:], code=True)
        self._state = _State.PROSE if found[0] == "\n" else _State.CLOSING
        self._run = 0
        return found.start(), Piece(text[start : found.start()], code=True)

    def _closing(self, text: str, start: int) -> tuple[int, Piece | None]:
        if run := _RUNS["`"].match(text, start):
            self._run += len(run[0])
            return run.end(), Piece(run[0], code=True)
        self._state = _State.PROSE if self._run == self._opened else _State.SPAN
        return start, None

    def _info(self, text: str, start: int) -> tuple[int, Piece]:
        found = (_TICKS_OR_NEWLINE if self._fence == "`" else _NEWLINE).search(text, start)
        if found is None:
            return len(text), Piece(text[start:], code=True)
        if found[0] == "\n":
            self._state, end = _State.FENCE, found.end()
        else:  # a backtick after the opening run: it was a span all along
            self._state, self._run, end = _State.CLOSING, 0, found.start()
        return end, Piece(text[start:end], code=True)

    def _body(self, text: str, start: int) -> tuple[int, Piece]:
        end = text.find("\n", start) + 1
        self._fence_line.append(text[start : end or len(text)])
        if not end:
            return len(text), Piece(text[start:], code=True)
        line = "".join(self._fence_line).strip(" \t\r\n>")
        self._fence_line = []
        if len(line) >= self._opened and not line.strip(self._fence):
            self._state, self._line, self._escaped = _State.PROSE, "", False
        return end, Piece(text[start:end], code=True)
