"""Cuts text into sentences, all at once or as it arrives, with exact offsets.

A sentence ends at `.`, `!`, `?`, `…` and their kin when white space follows and what comes next
does not go on in lower case; at `。`, `！` and the like at once; at a blank line or a form feed; at
the end of a heading, a table row, a bold line or a line that ends in a colon; before a list item.
It does not end at an abbreviation, an initial, a decimal, a list number or an ordinal before a
month. Closing quotes, brackets and markers behind the full stop belong to the sentence.

A sentence longer than `MAX_SENTENCE_LENGTH` is cut, so that a text without any full stop is
neither held back nor read twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from privategpt.grounding.lexicon import STOPS_AT_ONCE, STOPS_BEFORE_SPACE, words

MAX_SENTENCE_LENGTH = 1500
_LONGEST_END = 40
_LONGEST_GAP = 16
_LONGEST_WORD = 14

_CJK_STOPS = f"。！？｡{STOPS_AT_ONCE}"
_CANDIDATE = re.compile(rf"[.!?…؟{STOPS_BEFORE_SPACE}{_CJK_STOPS}\n\f]")
_STOPS = rf"[.!?…؟{STOPS_BEFORE_SPACE}]+"
_CLOSERS = r"[\"'”’»›)\]*_]*"
_MARKERS = r"(?:[ \u00a0]?\[\d{1,3}\])*"
_END = re.compile(rf"{_STOPS}{_CLOSERS}{_MARKERS}")
_END_WITHOUT_MARKERS = re.compile(rf"{_STOPS}{_CLOSERS}")
_CJK_END = re.compile(rf"[{_CJK_STOPS}]+[」』）”’\"')】]*{_MARKERS}")
_SPACE = re.compile(r"\s*")
_PERHAPS_MARKER = re.compile(r"\[\d{0,3}\Z")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_OPENING = re.compile(r"[\"'“‘«‹(\[*_¿¡]*")

_LINE_GAP = re.compile(r"\n[ \t\r]*")
_BLOCK = re.compile(r"[-*+•][ \t]|\d{1,3}[.)][ \t]|#{1,6}[ \t]|[>|]|```|~~~")
_PERHAPS_BLOCK = re.compile(r"(?:[-*+•]|\d{1,3}[.)]?|#{1,6}|`{1,2}|~{1,2})?\Z")
_WHOLE_LINE = re.compile(r"[ \t]*(?:#{1,6}[ \t].*|\|.*|\*\*[^*]+\*\*:?|.*[:：])[ \t\r]*")
_LIST_NUMBER = re.compile(r"(?:^|\n)[ \t>]*\d{1,3}\Z")
_TOKEN = re.compile(r"[^\s(\[\"'“‘«/]{1,24}\Z")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_]{1,4})*")
_ORDINAL = re.compile(r"\d{1,2}")

_ABBREVIATIONS = words(
    "mr mrs ms dr prof st mt vs fig figs eq eqs ref refs tab no nos vol vols pp p ch sec ed eds "
    "dept univ approx ca cf gen col sgt capt lt rev hon gov sen rep messrs viz resp incl excl "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun",
    "bzw evtl ggf inkl exkl max min nr str tel vgl bspw sog geb abs art hr fr bd hrsg jh mio mrd",
    "mme mlle mm cie env av chap",
    "sra srta dra ud uds pág págs núm aprox",
    "sig sigg dott ing avv pag cfr",
    "bijv dhr mevr blz nl",
    "bls nk sbr skv þús",
)
_MAY_END = words("etc al inc co ltd corp jr sr bros usw osv ecc enz am pm e.g i.e")
_STARTERS = words(
    "the it its in he she they this these that those a an we i you there however but and for as at "
    "on if when while after before his her their our some most many all no not other both with",
    "der die das es er sie ein eine im in und aber wir diese dieser",
    "le la les il elle ils elles un une ce cette dans",
    "el los las una en este esta o a os as um uma no na",
    "lo gli i de het een dat deze hann hún það þetta í á",
)
_MONTHS = words(
    "januar jänner februar märz april mai juni juli august september oktober november dezember",
    "janúar febrúar mars apríl maí júní júlí ágúst september október nóvember desember",
    "marts maj jahrhundert jahrhunderts öld",
)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text, in code points, end-exclusive."""

    start: int
    end: int


def split_sentences(text: str) -> list[Span]:
    """The sentences of `text` in order, without the white space around them."""
    splitter = SentenceSplitter()
    spans: list[Span] = []
    at = 0
    for segment in (*splitter.feed(text), *splitter.finish()):
        start = at + len(segment) - len(segment.lstrip())
        end = at + len(segment.rstrip())
        at += len(segment)
        if start < end:
            spans.append(Span(start, end))
    return spans


class SentenceSplitter:
    """Cuts a stream into sentences, each with the white space behind it; joined, they are the
    stream. Where it is cut does not depend on how the stream arrives.
    """

    def __init__(self) -> None:
        self._text = ""
        self._from = 0  # no sentence ends before this place

    def feed(self, delta: str) -> list[str]:
        """The sentences that are now certainly complete."""
        self._text += delta
        return self._take(last=False)

    def finish(self) -> list[str]:
        """The rest."""
        return self._take(last=True)

    @property
    def begun(self) -> str:
        """The beginning of the sentence that is not complete, up to where it may yet end."""
        end = _CANDIDATE.search(self._text, self._from)
        return self._text[: end.start()] if end else self._text

    def _take(self, *, last: bool) -> list[str]:
        segments: list[str] = []
        text, start, at = self._text, 0, self._from
        while True:
            end = None
            limit = start + MAX_SENTENCE_LENGTH
            while found := _CANDIDATE.search(text, at, limit):
                end = _end_at(text, start, found.start(), last=last)
                if end is None or end > 0:
                    break
                at = found.end()
            else:
                end = 0
                at = max(at, min(len(text), limit))
            if end is not None and end <= 0 and len(text) >= limit:
                end = _forced_end(text, start, limit)
            if not end:
                break
            segments.append(text[start:end])
            start = at = end
        self._text, self._from = text[start:], at - start
        if last and self._text:
            segments.append(self._text)
            self._text, self._from = "", 0
        return segments


def _forced_end(text: str, start: int, limit: int) -> int:
    space = text.rfind(" ", start, limit)
    return space + 1 if space > start else limit


def _end_at(text: str, start: int, at: int, *, last: bool) -> int | None:
    """Where the next sentence starts, if one ends with the character at `at`; 0 if it does not;
    None if more text has to tell.
    """
    char = text[at]
    if char == "\f":
        return at + 1
    if char == "\n":
        return _line_end(text, start, at, last=last)
    if char in _CJK_STOPS:
        return _after_gap(text, _CJK_END, at, last=last)
    return _stop_end(text, start, at, last=last)


def _after_gap(text: str, pattern: re.Pattern[str], at: int, *, last: bool) -> int | None:
    found = pattern.match(text, at, at + _LONGEST_END)
    assert found  # noqa: S101 - the pattern starts with the candidate
    gap = _SPACE.match(text, found.end(), found.end() + _LONGEST_GAP)
    assert gap  # noqa: S101 - the pattern matches everywhere
    if not last and (gap.end() == len(text) or _PERHAPS_MARKER.match(text, gap.end())):
        return None
    return gap.end()


def _line_end(text: str, start: int, at: int, *, last: bool) -> int | None:
    gap = _LINE_GAP.match(text, at, at + _LONGEST_GAP)
    assert gap  # noqa: S101 - the pattern starts with the candidate
    after = gap.end()
    if after == len(text):
        return 0 if last else None
    if not text[start:at].strip():
        return 0
    if text[after] == "\n" or _BLOCK.match(text, after):
        return after
    if not last and _PERHAPS_BLOCK.match(text, after):
        return None
    line = text[max(start, text.rfind("\n", start, at) + 1) : at]
    return after if _WHOLE_LINE.fullmatch(line) else 0


def _stop_end(text: str, start: int, at: int, *, last: bool) -> int | None:
    end = _END.match(text, at, at + _LONGEST_END)
    assert end  # noqa: S101 - the pattern starts with the candidate
    if _starts_next(text, end.end()):  # "It boils. [1] says so.": the marker is the next subject
        end = _END_WITHOUT_MARKERS.match(text, at, at + _LONGEST_END)
        assert end  # noqa: S101 - as above
        return end.end() + 1 if text[end.end()] == " " else 0
    gap = _SPACE.match(text, end.end(), end.end() + _LONGEST_GAP)
    assert gap  # noqa: S101 - the pattern matches everywhere
    if not last and (gap.end() == len(text) or _PERHAPS_MARKER.match(text, gap.end())):
        return None
    if gap.end() in (end.end(), len(text)):
        return 0
    word = _word_at(text, gap.end(), last=last)
    if word is None:
        return None
    return gap.end() if _ends_before(text, start, at, gap=gap[0], word=word) else 0


def _ends_before(text: str, start: int, at: int, *, gap: str, word: str) -> bool:
    """Whether the stop at `at` ends a sentence, given what follows."""
    if word[:1].islower() and "\n\n" not in gap:
        return False
    single = text[at] == "." and text[at + 1 : at + 2] != "."
    return not (single and _is_no_full_stop(text[start:at][-40:], word.casefold()))


def _word_at(text: str, at: int, *, last: bool) -> str | None:
    """The word behind opening quotes and brackets, cut to what is ever asked about; "" if there
    is none; None if more text has to tell.
    """
    opening = _OPENING.match(text, at)
    assert opening  # noqa: S101 - the pattern matches everywhere
    word = _NEXT_WORD.match(text, opening.end(), opening.end() + _LONGEST_WORD)
    decided = opening.end() if word is None else word.end()
    if not last and decided == len(text):
        return None
    return word[0] if word else ""


def _starts_next(text: str, marker_end: int) -> bool:
    return bool(
        text[marker_end - 1] == "]"
        and re.match(r" [^\W\d_A-Z]", text[marker_end : marker_end + 2])
        and text[marker_end + 1].islower()
    )


def _is_no_full_stop(before: str, next_word: str) -> bool:
    """Whether the full stop behind `before` belongs to an abbreviation, an initial or a number."""
    if _LIST_NUMBER.search(before if "\n" in before or len(before) < 40 else " " + before):
        return True
    found = _TOKEN.search(before)
    if found is None:
        return False
    token = found[0].casefold()
    if _ORDINAL.fullmatch(token):
        return next_word in _MONTHS
    if token in _ABBREVIATIONS:
        return True
    if token in _MAY_END or _INITIALS.fullmatch(token):
        return next_word not in _STARTERS
    return False
