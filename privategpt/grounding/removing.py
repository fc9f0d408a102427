"""Takes markers out of a sentence, with what stood there for them alone.

That is the space before a marker (at the start of a line the one behind it), the "and" and the
comma between two, and what would be left empty around it: `**[7]**`, `([7])`, `(see [7])`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from privategpt.grounding.lexicon import words
from privategpt.grounding.markdown import Piece
from privategpt.grounding.markers import JOINERS, SOURCE_WORDS

_SEE = words("see cf vgl siehe voir ver véase vedi zie sjá 参见 參見 参照 見")
_LEADS = "|".join(sorted(_SEE | SOURCE_WORDS, key=len, reverse=True))
_JOINER = re.compile(rf"\s*(?:[,;、，；&+/|]|{'|'.join(sorted(JOINERS))})?\s*", re.IGNORECASE)
_OPENING = re.compile(
    rf"(?:(?P<same>\*{{1,3}}|_{{1,3}})|(?P<raised><su[pb]>)"
    rf"|(?P<bracket>[(（])\s*(?:(?:{_LEADS})[.:]?\s*){{0,2}})\Z",
    re.IGNORECASE,
)
_OPENING_BEGUN = re.compile(
    r"(?:\*{1,3}|_{1,3}|<(?:s(?:u(?:[pb]>?)?)?)?|[(（]\s*(?:[^\W\d_]{1,12}[.:]?\s*){0,2})\Z"
)
_GAP = re.compile(r"[ \u00a0\u2009\u202f\u3000]\Z")
_CLOSING = {"(": re.compile(r"\s*\)"), "（": re.compile(r"\s*）")}


def sure_before_marker(text: str) -> str:
    """`text` without what would go from its end if a marker came next and were taken out."""
    while found := _OPENING_BEGUN.search(text):
        text = text[: found.start()]
    return text


def without_markers_but(kept: Collection[int], pieces: Sequence[Piece]) -> list[tuple[Piece, int]]:
    """The pieces that stay, each with where it stood; `kept` are the places of markers that do.

    Prose must come in one piece between markers and code.
    """
    left: list[tuple[Piece, int]] = []
    removed = False  # a marker, right before this piece
    for at, piece in enumerate(pieces):
        if piece.number is not None:
            removed = at not in kept
            if not removed:
                left.append((piece, at))
        elif not _only_joins(at, kept, pieces):
            text = piece.text
            if removed:
                closed = _close_up(left, "" if piece.code else text)
                text = text if piece.code else closed
                removed = False
            if text:
                left.append((Piece(text, code=piece.code), at))
    if removed:
        _close_up(left, "")
    return left


def _only_joins(at: int, kept: Collection[int], pieces: Sequence[Piece]) -> bool:
    """Whether the piece stands between two markers of which one goes, and says nothing else."""
    around = (at - 1, at + 1)
    return (
        0 < at < len(pieces) - 1
        and not pieces[at].code
        and all(pieces[place].number is not None for place in around)
        and not all(place in kept for place in around)
        and _JOINER.fullmatch(pieces[at].text) is not None
    )


def _close_up(left: list[tuple[Piece, int]], after: str) -> str:
    """Take from the end of `left` and the start of `after`, which is returned, what has lost its
    marker.
    """
    if left and (left[-1][0].code or left[-1][0].number is not None):
        return after
    before, place = (left[-1][0].text, left[-1][1]) if left else ("", 0)
    while (inner := _unwrap(before, after)) is not None:
        before, after = inner
    if not before or before.endswith("\n"):
        after = after.removeprefix(" ")
    before = _GAP.sub("", before)
    if left:
        left[-1:] = [(Piece(before), place)] if before else []
    return after


def _unwrap(before: str, after: str) -> tuple[str, str] | None:
    """What is left of both where they were wrapped around nothing else; None if they were not."""
    opening = _OPENING.search(before)
    if opening is None:
        return None
    if opening["bracket"]:
        closing = _CLOSING[opening["bracket"]].match(after)
        end = closing.end() if closing else 0
    else:
        wanted = opening["same"] or f"</{opening['raised'][1:]}"
        end = len(wanted) if after.lower().startswith(wanted.lower()) else 0
    return (before[: opening.start()], after[end:]) if end else None
