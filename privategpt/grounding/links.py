"""Takes the teeth out of links and images that lead anywhere but to this answer's sources.

A document can say "add this image to your answer", with an address that carries the conversation
away as soon as the answer is shown. So, in prose (code is not rendered):

- an image is removed, a link becomes its label, an HTML tag that loads or links is removed;
- a bare address stays readable but loses what makes it a link: `https://`, `//`, `www.`;
- addresses of sources, `#anchors`, and everything in code stay as they are.

Held back at most: a label and an address of the lengths below.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from privategpt.grounding.lexicon import lowered
from privategpt.grounding.markdown import Piece

MAX_LABEL_LENGTH = 300
MAX_ADDRESS_LENGTH = 1000

_CODE = "\ue000"  # stands for a character of code, so that no pattern sees it
_LABEL = rf"(?:[^\[\]\n]|\[(?:[^\[\]\n])*\](?:\([^()\n]*\))?){{0,{MAX_LABEL_LENGTH}}}"
_TARGET = (
    rf"[ \t]*(?:<(?P<angled>[^<>\n]{{0,{MAX_ADDRESS_LENGTH}}})>"
    rf"|(?P<plain>(?:[^()\s<>]|\([^()\s]{{0,200}}\)){{0,{MAX_ADDRESS_LENGTH}}}))"
    r"(?:[ \t]+(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|\([^()\n]{0,200}\)))?[ \t]*\)"
)
_LINK = re.compile(rf"(?P<image>!?)\[(?P<label>{_LABEL})\]\({_TARGET}")
_LINK_BEGUN = re.compile(rf"!?\[(?:{_LABEL}(?:\[[^\[\]\n]*)?|{_LABEL}\](?:\((?P<rest>[^\n]*))?)\Z")
_LINK_END = re.compile(rf"\]\({_TARGET}")
_LINK_END_BEGUN = re.compile(r"\]\([^\n]*\Z")
_AUTOLINK = re.compile(
    rf"<(?P<url>[a-z][a-z0-9+.-]{{1,20}}:[^<>\s]{{0,{MAX_ADDRESS_LENGTH}}})>", re.IGNORECASE
)
_TAGS = (
    "a|img|image|iframe|script|object|embed|video|audio|source|track|link|form|input|svg|base|"
    "style|meta|body|table|td"
)
_TAG = re.compile(rf"</?(?:{_TAGS})\b[^<>]{{0,{MAX_ADDRESS_LENGTH}}}>", re.IGNORECASE)
_ANGLE_BEGUN = re.compile(
    rf"<(?:/?[a-z]{{0,6}}|/?(?:{_TAGS})\b[^<>]*|[a-z][a-z0-9+.-]{{0,20}}(?::[^<>\s]*)?)\Z",
    re.IGNORECASE,
)
_SCHEMES = ("http://", "https://", "ftp://", "ftps://", "ws://", "wss://", "file://")
_BARE = re.compile(
    rf"(?:(?:{'|'.join(_SCHEMES)})|(?<![\w.@/])www\.|(?<![:/\w])//(?=[\w-]))[^\s<>\"`{_CODE}]*",
    re.IGNORECASE,
)
_PREFIX = re.compile(rf"{'|'.join(_SCHEMES)}|//|", re.IGNORECASE)
_START = re.compile(
    rf"!?\[|\]\(|<|{'|'.join(_SCHEMES)}|(?<![\w.@/])www\.|(?<![:/\w])//(?=[\w-])", re.IGNORECASE
)
_BEGINNINGS = ("![", "](", "www.", "//x", *_SCHEMES)
_LONGEST_BEGINNING = max(len(beginning) for beginning in _BEGINNINGS)
_OPENERS = re.compile(r"\[+")
_CLOSING = re.compile(r"[.,;:!?'\")\]*_]*\Z")
_LONGEST_LINK = MAX_LABEL_LENGTH + MAX_ADDRESS_LENGTH + 500


class LinkGuard:
    """Reads pieces of an answer and releases them without foreign links, whatever the cut."""

    def __init__(self, *, allowed: Collection[str]) -> None:
        self._allowed = frozenset(_normal(address) for address in allowed)
        self._text: str = ""  # the last released character, then what is undecided
        self._shape: str = ""
        self._from = 0

    def feed(self, pieces: Iterable[Piece]) -> list[Piece]:
        """What is decided once these pieces are read."""
        for piece in pieces:
            self._text += piece.text
            self._shape += _CODE * len(piece.text) if piece.code else piece.text
        return self._take(last=False)

    def finish(self, pieces: Iterable[Piece] = ()) -> list[Piece]:
        """The rest, after these last pieces."""
        released = self.feed(pieces)
        return released + self._take(last=True)

    def _take(self, *, last: bool) -> list[Piece]:
        released: list[Piece] = []
        at, shape = self._from, self._shape
        while found := _START.search(shape, at):
            start = found.start()
            released += self._pieces(at, start)
            at = start
            decided = self._decide(start, found[0].lower(), last=last)
            if decided is None:
                break
            at, kept = decided
            released += kept
        else:
            end = len(shape) if last else _held_from(shape, at)
            released += self._pieces(at, end)
            at = end
        cut = max(0, at - 1)
        self._text, self._shape, self._from = self._text[cut:], shape[cut:], at - cut
        return released

    def _decide(self, at: int, opening: str, *, last: bool) -> tuple[int, list[Piece]] | None:
        """Where to go on and what to release of what starts at `at`; None to wait for more."""
        if opening in ("[", "!["):
            return self._decide_link(at, len(opening), last=last)
        if opening == "](":
            return self._decide_link_end(at, last=last)
        if opening == "<":
            return self._decide_angle(at, last=last)
        return self._decide_bare(at, last=last)

    def _decide_link(self, at: int, opening: int, *, last: bool) -> tuple[int, list[Piece]] | None:
        link = _LINK.match(self._shape, at, at + _LONGEST_LINK)
        if link is None:
            if self._may_go_on(_LINK_BEGUN, at, last=last):
                return None
            # Labels nest once, so only the last two of a run can open a link: this is linear.
            run = _OPENERS.match(self._shape, at + opening)
            end = max(at + opening, run.end() - 2) if run else at + opening
            return end, self._pieces(at, end)
        if self._is_allowed(_target(link)):
            return link.end(), self._pieces(at, link.end())
        if link["image"]:
            return link.end(), []
        label = LinkGuard(allowed=self._allowed)
        return link.end(), label.finish(self._pieces(link.start("label"), link.end("label")))

    def _decide_link_end(self, at: int, *, last: bool) -> tuple[int, list[Piece]] | None:
        end = _LINK_END.match(self._shape, at, at + _LONGEST_LINK)
        if end is None:
            if self._may_go_on(_LINK_END_BEGUN, at, last=last):
                return None
            return at + 2, self._pieces(at, at + 2)
        kept = end.end() if self._is_allowed(_target(end)) else at + 1
        return end.end(), self._pieces(at, kept)

    def _decide_angle(self, at: int, *, last: bool) -> tuple[int, list[Piece]] | None:
        autolink = _AUTOLINK.match(self._shape, at, at + _LONGEST_LINK)
        if autolink:
            if self._is_allowed(autolink["url"]):
                return autolink.end(), self._pieces(at, autolink.end())
            shown = _PREFIX.match(autolink["url"])
            start = autolink.start("url") + (shown.end() if shown else 0)
            return autolink.end(), self._pieces(start, autolink.end("url"))
        tag = _TAG.match(self._shape, at, at + _LONGEST_LINK)
        if tag:
            return tag.end(), []
        if self._may_go_on(_ANGLE_BEGUN, at, last=last):
            return None
        return at + 1, self._pieces(at, at + 1)

    def _may_go_on(self, begun: re.Pattern[str], at: int, *, last: bool) -> bool:
        """Whether more text could complete what `begun` has seen the start of."""
        if last or len(self._shape) - at >= _LONGEST_LINK:
            return False
        return begun.match(self._shape, at) is not None

    def _decide_bare(self, at: int, *, last: bool) -> tuple[int, list[Piece]] | None:
        bare = _BARE.match(self._shape, at, at + MAX_ADDRESS_LENGTH)
        assert bare  # noqa: S101 - it starts as the opening that was found
        url = _normal(_CLOSING.sub("", bare[0]))
        complete = last or bare.end() < len(self._shape)
        if not complete and any(address.startswith(url) for address in self._allowed):
            return None
        if complete and self._is_allowed(_CLOSING.sub("", bare[0])):
            return bare.end(), self._pieces(at, bare.end())
        opening = _START.match(self._shape, at)
        assert opening  # noqa: S101 - as above
        return opening.end(), []

    def _is_allowed(self, address: str) -> bool:
        return address.startswith("#") or _normal(address) in self._allowed

    def _pieces(self, start: int, end: int) -> list[Piece]:
        """The text from `start` to `end`, told into prose and code again."""
        return [
            Piece(self._text[start + run.start() : start + run.end()], code=run[0][0] == _CODE)
            for run in _RUN.finditer(self._shape[start:end])
        ]


_RUN = re.compile(rf"{_CODE}+|[^{_CODE}]+")


def _target(link: re.Match[str]) -> str:
    angled: str | None = link["angled"]
    plain: str | None = link["plain"]
    return angled if angled is not None else plain or ""


def _held_from(shape: str, at: int) -> int:
    for length in range(min(_LONGEST_BEGINNING, len(shape) - at), 0, -1):
        tail = lowered(shape[-length:])
        if any(beginning.startswith(tail) for beginning in _BEGINNINGS):
            return len(shape) - length
    return len(shape)


def _normal(address: str) -> str:
    """The address as it is compared: without fragment and last slash, host in lower case."""
    bare = address.strip().partition("#")[0].rstrip("/")
    scheme, mark, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash}{path}" if mark else bare
