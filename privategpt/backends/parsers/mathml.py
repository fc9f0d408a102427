"""Equations of web pages (MathML) on one line: what stands between their letters.

As with the letters alone, a half would be twelve.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_BETWEEN = {
    "mfrac": ("/",),
    "msup": ("^",),
    "msub": ("_",),
    "msubsup": ("_", "^"),
    "munder": ("_",),
    "mover": ("^",),
    "munderover": ("_", "^"),
    "mtr": (", ",) * 50,
    "mtable": ("; ",) * 50,
}
_ROOTS = {"msqrt": "√(", "mroot": "√("}
_GROUPING = frozenset(("mfrac", "msup", "msub", "msubsup", "munder", "munderover"))
_MAX_DEPTH = 200


@dataclass(slots=True)
class _Element:
    tag: str
    closes: str = ""
    children: int = 0


@dataclass(slots=True)
class MathMarks:
    """Told of every tag inside a `math`, says what stands there."""

    _open: list[_Element] = field(default_factory=list[_Element])

    def start(self, tag: str) -> str:
        """What stands before the element that begins."""
        between = grouped = ""
        if self._open:
            around = self._open[-1]
            signs = _BETWEEN.get(around.tag, ())
            if 0 < around.children <= len(signs):
                between = signs[around.children - 1]
            around.children += 1
            grouped = "(" if tag == "mrow" and around.tag in _GROUPING else ""
        if len(self._open) < _MAX_DEPTH:
            root = _ROOTS.get(tag, "")
            self._open.append(_Element(tag, closes=")" if root or grouped else ""))
            return between + grouped + root
        return between

    def end(self, tag: str) -> str:
        """What stands behind the element that ends."""
        if not any(element.tag == tag for element in self._open):
            return ""
        closes = ""
        while self._open:
            element = self._open.pop()
            closes += element.closes
            if element.tag == tag:
                break
        return closes
