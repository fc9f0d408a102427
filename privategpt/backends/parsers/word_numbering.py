"""The numbers that Word itself writes before paragraphs: of lists, headings and clauses.

They are no text of the file, and people refer to what they read by them ("clause 4.2"), so they
are counted here as Word does: ECMA-376, part 1, 17.9. Bullets say nothing and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.numerals import numeral
from privategpt.backends.parsers.packages import Package, attribute, child, children, whole_number

_PLACE = re.compile(r"%([1-9])")
_LEVELS = 9


@dataclass(frozen=True, slots=True)
class _Level:
    """How one level of a list counts; `text` has `%1` to `%9` for the numbers of levels."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    style: str = ""
    legal: bool = False
    restarts_after: int | None = None


@dataclass(frozen=True, slots=True)
class _List:
    """Lists that share `counter` are one list, which goes on wherever it is taken up again."""

    counter: str
    levels: Mapping[int, _Level]
    restarts: Mapping[int, int] = field(default_factory=dict[int, int])


class Numbering:
    """Says what stands before each paragraph, asked for them in order."""

    def __init__(self, lists: Mapping[str, _List], styles: Mapping[str, tuple[str, int]]) -> None:
        self._lists = lists
        self._styles = styles
        self._counts: dict[str, dict[int, int]] = {}
        self._restarted: set[tuple[str, int]] = set()

    def label(self, properties: ET.Element | None) -> str:
        """What stands before the paragraph with these properties, "" where nothing does."""
        number, level = self._place(properties)
        found = self._lists.get(number)
        if found is None or level >= _LEVELS or level not in found.levels:
            return ""
        self._count(number, found, level)
        shown = found.levels[level]
        if shown.form in {"bullet", "none"}:
            return ""
        counts = self._counts[found.counter]

        def of_level(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            at = found.levels.get(place, _Level())
            form = "decimal" if shown.legal else at.form
            return numeral(counts.get(place, at.start), form)

        return _PLACE.sub(of_level, shown.text).strip()

    def _place(self, properties: ET.Element | None) -> tuple[str, int]:
        """The list that a paragraph belongs to, by itself or by its style, and its level."""
        style = None if properties is None else child(properties, "pStyle")
        style_id = "" if style is None else attribute(style, "val") or ""
        number, level = self._styles.get(style_id, ("", 0))
        own = None if properties is None else child(properties, "numPr")
        if own is None:
            return number, level
        stated = child(own, "numId")
        if stated is not None:
            number = attribute(stated, "val") or ""
        return number, _integer(child(own, "ilvl"), level)

    def _count(self, number: str, found: _List, level: int) -> None:
        counts = self._counts.setdefault(found.counter, {})
        if level in found.restarts and (number, level) not in self._restarted:
            self._restarted.add((number, level))
            counts[level] = found.restarts[level]
        elif level in counts:
            counts[level] += 1
        else:
            counts[level] = found.levels[level].start
        for above in range(level):
            counts.setdefault(above, found.levels.get(above, _Level()).start)
        for below in [key for key in counts if key > level]:
            after = found.levels.get(below, _Level()).restarts_after
            if after is None or level < after:
                del counts[below]


def read_numbering(package: Package, main: str) -> Numbering:
    """The lists of a document and the styles that belong to them."""
    lists: dict[str, _List] = {}
    for part in package.related(main, "numbering"):
        lists |= _lists(package.tree(part))
    styles: dict[str, tuple[str, int]] = {}
    for part in package.related(main, "styles"):
        styles |= dict(_numbered_styles(package.tree(part), lists))
    return Numbering(lists, styles)


def _lists(tree: ET.Element) -> dict[str, _List]:
    abstract: dict[str, dict[int, _Level]] = {}
    named: dict[str, str] = {}
    links: dict[str, str] = {}
    for each in children(tree, "abstractNum"):
        key = attribute(each, "abstractNumId") or ""
        abstract[key] = dict(map(_level, children(each, "lvl")))
        if (name := child(each, "styleLink")) is not None:
            named[attribute(name, "val") or ""] = key
        if (link := child(each, "numStyleLink")) is not None:
            links[key] = attribute(link, "val") or ""
    found: dict[str, _List] = {}
    for each in children(tree, "num"):
        of = child(each, "abstractNumId")
        key = "" if of is None else attribute(of, "val") or ""
        key = named.get(links.get(key, ""), key)
        if key in abstract:
            found[attribute(each, "numId") or ""] = _overridden(each, key, abstract[key])
    return found


def _overridden(num: ET.Element, key: str, levels: Mapping[int, _Level]) -> _List:
    own: dict[int, _Level] = {}
    restarts: dict[int, int] = {}
    for override in children(num, "lvlOverride"):
        stated = attribute(override, "ilvl") or ""
        level = int(stated) if stated.isdecimal() else 0
        if (start := child(override, "startOverride")) is not None:
            restarts[level] = _integer(start, 1)
        own |= dict(map(_level, children(override, "lvl")))
    return _List(counter=key, levels={**levels, **own}, restarts=restarts)


def _level(element: ET.Element) -> tuple[int, _Level]:
    stated = attribute(element, "ilvl") or ""
    level = _Level(start=_integer(child(element, "start"), 0))
    if (restart := child(element, "lvlRestart")) is not None:
        level = replace(level, restarts_after=_integer(restart, _LEVELS))
    legal = child(element, "isLgl")
    return int(stated) if stated.isdecimal() else 0, replace(
        level,
        form=_value(child(element, "numFmt"), "decimal"),
        text=_value(child(element, "lvlText"), ""),
        style=_value(child(element, "pStyle"), ""),
        legal=legal is not None and _value(legal, "1") not in {"0", "false", "off"},
    )


def _numbered_styles(
    tree: ET.Element, lists: Mapping[str, _List]
) -> Iterator[tuple[str, tuple[str, int]]]:
    """Paragraph styles that are numbered, by themselves or by the style they are based on."""
    own: dict[str, tuple[str, int]] = {}
    parents: dict[str, str] = {}
    for style in children(tree, "style"):
        style_id = attribute(style, "styleId") or ""
        if (of := child(style, "pPr", "numPr", "numId")) is not None:
            own[style_id] = _value(of, ""), _integer(child(style, "pPr", "numPr", "ilvl"), 0)
        parents[style_id] = _value(child(style, "basedOn"), "")
    for style_id, ancestor in speaking_ancestors(parents, own):
        number, stated = own[ancestor]
        levels = lists[number].levels if number in lists else dict[int, _Level]()
        linked = {level.style: at for at, level in levels.items() if level.style}
        yield style_id, (number, linked.get(style_id, linked.get(ancestor, stated)))


def speaking_ancestors(
    parents: Mapping[str, str], own: Container[str]
) -> Iterator[tuple[str, str]]:
    """Every style of `parents` with the nearest of itself and what it is based on that is in `own`.

    Those for which there is none are left out; styles may be based on each other in a ring.
    """
    for style_id in parents:
        ancestor, seen = style_id, {""}
        while ancestor not in own and ancestor not in seen:
            seen.add(ancestor)
            ancestor = parents.get(ancestor, "")
        if ancestor in own:
            yield style_id, ancestor


def _value(element: ET.Element | None, otherwise: str) -> str:
    stated = None if element is None else attribute(element, "val")
    return otherwise if stated is None else stated


def _integer(element: ET.Element | None, otherwise: int) -> int:
    return whole_number(_value(element, ""), otherwise)
