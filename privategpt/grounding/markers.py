"""Finds the markers that models write and makes them all `[n]`.

**What is a marker.** Brackets (`[]`, `【】`, `［］`, single or doubled) around numbers, ranges and
lists of them, each perhaps after a caret or a word such as "Source", perhaps followed by `†…`:
`[1, 2]`, `[1-3]`, `[[1]]`, `【1†source】`, `[^1]`, `[Source 1]`. It is written out as `[1][2]…`.

**What is not**, and stays as it is:

- anything in code;
- a Markdown link, image or definition: a `(` follows, or a `:` where it starts a line;
- an index: it stands directly behind an identifier (`a[1]`, `my_list[2]`, `args[1]`), a call or a
  URL, or is a zero behind any word (`items[0]`); otherwise, directly behind an ordinary word
  (`water[1]`, `24 °C[1]`), it is a marker that lacks its space;
- an escaped bracket, a list that is assigned (`x = [1, 2]`), and mathematics (`x ∈ [1, 3]`,
  `x_{[1]}`, "the interval [1, 3]");
- a number of four digits or more that is no source: a year (`[2024]`, `[1990-1995]`);
- a list or range with a zero in it: an interval (`[0, 1]`);
- anything else that does not follow the form to the letter: `[1, 2, 3.5]`, `[-1]`, `[ ]`, `[x]`.

**Unknown numbers.** A number below 1000 that names no source is removed, with the space before
it (at the start of a line: the one behind it), and counted: once for each number or range.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from privategpt.grounding.lexicon import lowered, words
from privategpt.grounding.markdown import CodeLexer, Piece

MAX_MARKER_LENGTH = 80
"""In code points; also the most that is ever held back, but for one space and one more."""

_LOOK_BEHIND = 64
_FIRST_YEAR_LIKE = 1000

SOURCE_WORDS = words(
    "source sources src ref refs reference references doc docs document documents passage passages "
    "citation citations cite context result results footnote note notes excerpt chunk "
    "quelle quellen fuente fuentes fonte fontes fonti bron bronnen heimild heimildir "
    "来源 來源 出典 資料 资料 文献 文獻 参考 參考"
)
JOINERS = words("and und et y e en og to 和 と 及")
_PAGES = words("p pp page pages s seite seiten")
_PREFIXES = frozenset(
    word[:length] for word in SOURCE_WORDS | JOINERS | _PAGES for length in range(1, len(word) + 1)
)

_S = r"[ \t\u00a0\u2009\u202f\u3000]{0,2}"
_OPEN = r"[\[【［]"
_CLOSE = r"[\]】］]"
_WORD = rf"(?:{'|'.join(sorted(SOURCE_WORDS, key=len, reverse=True))})"
_NUMBER = r"\d{1,9}"
_RANGE = rf"{_S}(?:[-‐‑‒–—−~～〜]|to){_S}"
_ITEM = rf"\^?(?:{_WORD}{_S}[:#._]?{_S}#?){{0,2}}{_NUMBER}(?:{_RANGE}{_NUMBER})?"
_JOIN = rf"{_S}(?:[,;，、；&]|and|und|et|y|e|en|og|和|と|及){_S}"
_DAGGER = r"(?::\d{1,4})?[†‡][^\]】］\[【［\n]*"
_PAGE = rf",{_S}(?:pp?|pages?|S|Seiten?)\.?{_S}\d{{1,5}}(?:[-–]\d{{1,5}})?"
_ITEMS = rf"{_ITEM}(?:{_JOIN}{_ITEM})*(?:{_DAGGER}|{_PAGE})?"
_SINGLE = rf"{_OPEN}{_S}{_ITEMS}{_S}{_CLOSE}"
_DOUBLE = rf"{_OPEN}{_S}{_SINGLE}(?:(?:{_JOIN}|{_S}){_SINGLE})*{_S}{_CLOSE}"

_OPENER = re.compile(_OPEN)
_OPENERS = re.compile(rf"{_OPEN}+")
_MARKER = re.compile(rf"{_DOUBLE}|{_SINGLE}", re.IGNORECASE)
_VIABLE = re.compile(rf"{_OPEN}{_S}{_OPEN}?{_S}\^?(?:[^\W\d_]+|\d|$)")
_BEFORE_DAGGER = re.compile(r"[^†‡\n]*")
_PUNCTUATION_OF_MARKERS = re.compile(
    r"(?:[\d\s,;:#._&，、；\-‐‑‒–—−~～〜^]|[^\W\d_]|[\[\]【】［］])*"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_DAGGERED = re.compile(r"(?::\d{1,4})?[†‡].*", re.DOTALL)
_FILE_INDEX = re.compile(r":\d{1,4}[†‡]")
_PAGED = re.compile(_PAGE, re.IGNORECASE)
_ITEM_NUMBERS = re.compile(rf"({_NUMBER})(?:{_RANGE}({_NUMBER}))?", re.IGNORECASE)
_INNER = re.compile(r"[^\[\]【】［］]+")

_BEGUN = re.compile(rf"(?<!{_OPEN}){_OPEN}{{1,2}}{_S}\^?(?:{_WORD}|[\d\s,;:#-])*\Z", re.IGNORECASE)
_LINE_START = re.compile(r"[ \t>]*")
_MATHEMATICS = re.compile(
    r"(?:(?:=|[∈∉⊂⊆]|\\(?:not)?in|\\(?:times|cup|cap|subset(?:eq)?|left))[ \t]*|[_^]\{)\Z"
)
_INTERVAL = re.compile(r"\b(?:intervals?|intervall[eo]?|intervalo)[ \t]+\Z|区间\Z", re.IGNORECASE)
_SEVERAL = re.compile(r"\d\D+\d")
_LAST_TOKEN = re.compile(r"\S+\Z")
_INDEXED = re.compile(r"([A-Za-z_$][\w$.]*)((?:\([^()\s]*\)|\[[^\[\]\s]*\])*)\Z", re.ASCII)
_IDENTIFIER_LIKE = re.compile(r".*[_$\d].*|.*\w\.\w.*|[a-z]+[A-Z].*|[A-Za-z]", re.ASCII)
_PROGRAMMERS_WORDS = words(
    "args argv arr array arrays buf char chars cols coords df dict elem elems env expr func idx "
    "kwargs len list lists lst nums obj objs params pos props rec res ret seq str tbl tmp tok toks "
    "tpl tuple val vals vec vecs xs ys"
)


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker left in the text: `text[start:end] == f"[{number}]"`, in code points."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What can be released: pieces in order, the markers among them, and how many were removed.

    Markers count from the start of all text that the scanner has released.
    """

    pieces: tuple[Piece, ...] = ()
    markers: tuple[Marker, ...] = ()
    removed: int = 0

    @property
    def text(self) -> str:
        """The released text."""
        return "".join(piece.text for piece in self.pieces)


class MarkerScanner:
    """Reads an answer piece by piece. What it releases does not depend on where it was cut.

    With `keep_unknown`, what names no source is released as a marker too, each number or range as
    one, for a caller who sees more of what stands around it than a scanner does.
    """

    def __init__(self, *, sources: int, keep_unknown: bool = False) -> None:
        self._sources = sources
        self._keep_unknown = keep_unknown
        self._lexer = CodeLexer()
        self._behind = ""  # the last of what was read and decided
        self._undecided = ""
        self._output = _Output()

    def feed(self, delta: str) -> Scan:
        """Read `delta` and release what is decided."""
        return self.feed_pieces(self._lexer.feed(delta))

    def finish(self) -> Scan:
        """Release the rest; the answer has ended."""
        return self.finish_pieces(self._lexer.finish())

    def feed_pieces(self, pieces: Iterable[Piece]) -> Scan:
        """The same for text in which code has already been told from prose."""
        self._read(pieces)
        return self._output.take()

    def finish_pieces(self, pieces: Iterable[Piece] = ()) -> Scan:
        """Release the rest after these last pieces."""
        self._read(pieces)
        self._decide(last=True, final=True)
        self._output.flush()
        return self._output.take()

    def _read(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if not piece.code:
                self._undecided += piece.text
                continue
            self._decide(last=True)
            self._output.write(piece.text, code=True)
            self._behind = (self._behind + piece.text)[-_LOOK_BEHIND:]
        self._decide(last=False)

    def _decide(self, *, last: bool, final: bool = False) -> None:
        """Go on as far as can be; to the `last` of this prose, or the `final` one of the answer."""
        text = self._behind + self._undecided
        at = len(self._behind)
        while opener := _OPENER.search(text, at):
            start = opener.start()
            self._output.write(text[at:start])
            at = start
            end = self._marker_end(text, start, last=last)
            if end is None:
                break
            if end == start and final and _is_cut_short(text, start):
                self._output.write_markers((), removed=0)
                at = len(text)
            elif end == start:  # no marker starts here
                at = self._skip_opener(text, start)
            else:
                self._write_marker(text, start, end)
                at = end
        else:
            self._output.write(text[at:])
            at = len(text)
        self._behind = text[max(0, at - _LOOK_BEHIND) : at]
        self._undecided = text[at:]

    def _marker_end(self, text: str, start: int, *, last: bool) -> int | None:
        """Where the marker ends; `start` if there is none; None if more text has to tell."""
        found = _MARKER.match(text, start, start + MAX_MARKER_LENGTH)
        if found:
            # The character behind it tells a link or a definition.
            return found.end() if last or found.end() < len(text) else None
        if last or len(text) - start > MAX_MARKER_LENGTH or not _may_become_marker(text[start:]):
            return start
        return None

    def _skip_opener(self, text: str, start: int) -> int:
        run = _OPENERS.match(text, start)
        assert run  # noqa: S101 - `start` is where an opener was found
        # Only the last two of a run can open a marker. Skipping the rest keeps this linear.
        end = max(start + 1, run.end() - 2)
        self._output.write(text[start:end])
        return end

    def _write_marker(self, text: str, start: int, end: int) -> None:
        items = _items(text[start:end])
        zero_index = items == [(0, 0)] and text[start - 1 : start].isalpha()
        if (
            zero_index
            or _is_text(text, start, end)
            or _are_years_or_interval(items, sources=self._sources)
        ):
            self._output.write(text[start:end])
            return
        numbers: dict[int, None] = {}
        removed = 0
        for low, high in items:
            numbers |= dict.fromkeys(range(max(low, 1), min(high, self._sources) + 1))
            if low < 1 or high > self._sources:
                removed += not self._keep_unknown
                numbers |= {max(high, 0): None} if self._keep_unknown else {}
        self._output.write_markers(numbers, removed=removed)


def unmark(text: str) -> str:
    """`text` with parentheses where a marker has brackets, so that no marker is left in it."""
    return _MARKER.sub(_in_parentheses, text)


def _in_parentheses(marker: re.Match[str]) -> str:
    if _is_text(marker.string, marker.start(), marker.end()):
        return marker[0]
    return f"({' '.join(_INNER.findall(marker[0]))})"


class _Output:
    """Collects what is released. One space is held back: it goes where a marker goes."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._prose: list[str] = []
        self._markers: list[Marker] = []
        self._removed = 0
        self._length = 0  # of everything ever written, the held space not counted
        self._space = ""
        self._on_empty_line = True
        self._drop_space = False

    def write(self, text: str, *, code: bool = False) -> None:
        if text and self._drop_space:
            self._drop_space = False
            text = text.removeprefix(" ") if not code else text
        if not text:
            return
        self._release_space()
        self._on_empty_line = not text.rpartition("\n")[2].strip() and (
            "\n" in text or self._on_empty_line
        )
        if code:
            self._append(Piece(text, code=True))
            return
        if text.endswith(" "):
            self._space, text = " ", text[:-1]
        self._prose.append(text)
        self._length += len(text)

    def write_markers(self, numbers: Iterable[int], *, removed: int) -> None:
        self._removed += removed
        written = False
        for number in numbers:
            self._release_space()
            text, start = f"[{number}]", self._length
            self._append(Piece(text, number=number))
            self._markers.append(Marker(number=number, start=start, end=self._length))
            written = True
        if written:
            self._on_empty_line = self._drop_space = False
        elif self._on_empty_line:
            self._drop_space = True
        else:
            self._space = ""

    def flush(self) -> None:
        self._release_space()

    def take(self) -> Scan:
        self._end_prose()
        scan = Scan(tuple(self._pieces), tuple(self._markers), self._removed)
        self._pieces, self._markers, self._removed = [], [], 0
        return scan

    def _append(self, piece: Piece) -> None:
        self._end_prose()
        self._pieces.append(piece)
        self._length += len(piece.text)

    def _end_prose(self) -> None:
        if text := "".join(self._prose):
            self._pieces.append(Piece(text))
        self._prose = []

    def _release_space(self) -> None:
        if self._space:
            self._prose.append(self._space)
            self._length += 1
            self._space = ""


def _may_become_marker(text: str) -> bool:
    """Whether more text could make `text`, which starts with an opener, a marker."""
    if not _VIABLE.match(text):
        return False
    head = _BEFORE_DAGGER.match(text)
    assert head  # noqa: S101 - the pattern matches everywhere
    if head.end() < len(text) and text[head.end()] == "\n":
        return False
    if "†" in text or "‡" in text:
        return "\n" not in text and not re.search(_CLOSE, text[head.end() :])
    if not _PUNCTUATION_OF_MARKERS.fullmatch(text):
        return False
    doubled = len(_OPENERS.findall(text)) > 1 or re.match(rf"{_OPEN}{_S}{_OPEN}", text)
    if not doubled and re.search(_CLOSE, text):
        return False
    *words, last = ["", *_LETTERS.findall(lowered(text))]
    complete = SOURCE_WORDS | JOINERS | _PAGES
    ends_in_word = bool(_LETTERS.match(text[-1]))
    return all(word in complete for word in words if word) and (
        not last or last in complete or (ends_in_word and last in _PREFIXES)
    )


def _items(marker: str) -> list[tuple[int, int]]:
    """The numbers and ranges in a marker, lowest first; (0, -1) where a file index stands."""
    found: list[tuple[int, int]] = []
    for inner in _INNER.findall(marker):
        if _FILE_INDEX.search(inner):  # 【4:0†source】 counts messages and files, not sources
            found.append((0, -1))
            continue
        numbers = _PAGED.sub("", _DAGGERED.sub("", inner))
        for low, high in _ITEM_NUMBERS.findall(numbers):
            first, second = int(low), int(high or low)
            found.append((min(first, second), max(first, second)))
    return found


def _are_years_or_interval(items: list[tuple[int, int]], *, sources: int) -> bool:
    if any(high >= _FIRST_YEAR_LIKE and high > sources for _, high in items):
        return True
    several = len(items) > 1 or any(low < high for low, high in items)
    return several and any(low == 0 and high >= 0 for low, high in items)


def _is_text(text: str, start: int, end: int) -> bool:
    """Whether what stands around a marker's form makes it something else."""
    following = text[end : end + 1]
    before = text[max(0, start - _LOOK_BEHIND) : start]
    if following == "(" and text[end - 1] == "]":
        return True
    if following == ":" and _LINE_START.fullmatch(before.rpartition("\n")[2]):
        return True
    if (len(before) - len(before.rstrip("\\"))) % 2 or _MATHEMATICS.search(before):
        return True
    if _INTERVAL.search(before) and _SEVERAL.search(text, start, end):
        return True
    token = _LAST_TOKEN.search(before)
    if token is None:
        return False
    return "://" in token[0] or (text[start] == "[" and _is_indexed(token[0]))


def _is_cut_short(text: str, start: int) -> bool:
    """Whether a marker has begun that the end of the answer cuts through."""
    return _BEGUN.match(text, start) is not None and not _is_text(text, start, len(text))


def _is_indexed(token: str) -> bool:
    found = _INDEXED.search(token)
    if found is None:
        return False
    before = token[: found.start()]
    if before and (before[-1].isalnum() or before[-1] == "°"):
        return False  # the end of a word in another script, or a unit
    name, calls = found.groups()
    if name.endswith("_"):
        return False  # emphasis: `_Homo sapiens_[1]`
    return bool(
        "(" in calls or _IDENTIFIER_LIKE.fullmatch(name) or name.lower() in _PROGRAMMERS_WORDS
    )
