"""The numbers before the items of OpenDocument's lists, which the program writes, not the file.

OpenDocument 1.3, part 3, 16.27 (list styles) and 5.3 (lists). Bullets say nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.numerals import FORMS, numeral
from privategpt.backends.parsers.packages import attribute, descendants, local, whole_number

_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Level:
    form: str = ""
    prefix: str = ""
    suffix: str = ""
    start: int = 1
    shown: int = 1  # how many levels' numbers stand before an item, with its own


_Style = Mapping[int, _Level]


@dataclass(slots=True)
class _Open:
    """A list that is being read; one inside another counts on its own."""

    style: _Style
    name: str
    depth: int
    number: int | None = None
    label: str = ""


@dataclass(slots=True)
class Lists:
    """Told where lists and their items begin, says what number stands there."""

    _styles: Mapping[str, _Style]
    _open: list[_Open] = field(default_factory=list[_Open])
    _ended: dict[str, int] = field(default_factory=dict[str, int])
    _number: str = ""

    @contextmanager
    def list(self, element: ET.Element) -> Generator[None]:
        """While this list is read."""
        around = self._open[-1] if self._open else None
        name = attribute(element, "style-name") or (around.name if around else "")
        opened = _Open(self._styles.get(name, {}), name, around.depth + 1 if around else 1)
        before = self._ended_of(element, name, opened.depth)
        if before is not None:
            opened.number = before
        self._open.append(opened)
        try:
            yield
        finally:
            self._open.pop()
            self._number = ""
            if opened.number is not None:
                self._ended[f"{name}/{opened.depth}"] = opened.number
                self._ended[attribute(element, "id") or ""] = opened.number

    def _ended_of(self, element: ET.Element, name: str, depth: int) -> int | None:
        """The last number of the list that this one continues."""
        if (of := attribute(element, "continue-list")) is not None:
            return self._ended.get(of)
        continues = attribute(element, "continue-numbering") == "true"
        return self._ended.get(f"{name}/{depth}") if continues else None

    def item(self, element: ET.Element) -> None:
        """An item begins, or a header, which has no number."""
        if not self._open or local(element) == "list-header":
            return
        now = self._open[-1]
        level = now.style.get(now.depth, _Level())
        following = level.start if now.number is None else now.number + 1
        now.number = whole_number(attribute(element, "start-value"), following)
        now.label = numeral(now.number, level.form) if level.form else ""
        above = [each.label for each in self._open[:-1] if each.label]
        shown = [*above[max(0, len(above) - level.shown + 1) :], now.label]
        label = ".".join(shown) if level.shown > 1 else now.label
        self._number = f"{level.prefix}{label}{level.suffix}".strip() if now.label else ""

    def take_number(self) -> str:
        """The number for the paragraph that begins the item, once."""
        number, self._number = self._number, ""
        return number


def read_lists(*trees: ET.Element | None) -> Lists:
    """Lists of these styles, the first definition of a name being the one that holds."""
    styles: dict[str, _Style] = {}
    for tree in trees:
        for style in () if tree is None else descendants(tree, "list-style"):
            styles.setdefault(attribute(style, "name") or "", dict(map(_level, style)))
    return Lists(styles)


def _level(element: ET.Element) -> tuple[int, _Level]:
    counts = local(element) == "list-level-style-number"
    return _integer(element, "level", 1), _Level(
        form=FORMS.get(attribute(element, "num-format") or "", "") if counts else "",
        prefix=attribute(element, "num-prefix") or "",
        suffix=attribute(element, "num-suffix") or "",
        start=_integer(element, "start-value", 1),
        shown=min(_integer(element, "display-levels", 1), _MAX_SHOWN),
    )


def _integer(element: ET.Element, name: str, otherwise: int) -> int:
    return whole_number(attribute(element, name), otherwise)
