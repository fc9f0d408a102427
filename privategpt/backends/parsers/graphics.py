"""What charts and diagrams of Office documents say: their titles, categories, values, points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.cleaning import raised, table_text
from privategpt.backends.parsers.equations import equation_text
from privategpt.backends.parsers.packages import Package, attribute, children, descendants, local


def graphic_texts(
    package: Package,
    relations: Mapping[str, tuple[str, str]],
    frame: ET.Element,
    *,
    values: bool = True,
) -> Iterator[str]:
    """One text for each chart or diagram that `frame` shows; `relations` are those of its part.

    Without `values` a chart's titles alone: in a spreadsheet the values are in the cells.
    """
    for reference in (*descendants(frame, "chart"), *descendants(frame, "relIds")):
        for key in ("id", "dm"):
            _, part = relations.get(attribute(reference, key) or "", ("", ""))
            if part in package:
                lines = _graphic_lines(package.tree(part), values=values)
                yield "\n".join(lines)


def _graphic_lines(tree: ET.Element, *, values: bool) -> Iterator[str]:
    for element in tree.iter():
        name = local(element)
        if name == "p":
            if text := paragraph_text(element):
                yield text
        elif name in {"strCache", "numCache"} and values:
            cached = (v.text or "" for v in descendants(element, "v"))
            if line := table_text([list(cached)]):
                yield line


def paragraphs(body: ET.Element, *, fields: bool = True) -> Iterator[str]:
    """The paragraphs with text of a `txBody` (DrawingML)."""
    for paragraph in children(body, "p"):
        if text := paragraph_text(paragraph, fields=fields):
            yield text


def paragraph_text(paragraph: ET.Element, *, fields: bool = True) -> str:
    """The text of one; without `fields` only what was typed."""
    return "".join(_pieces(paragraph, fields=fields)).strip()


def _pieces(element: ET.Element, *, fields: bool) -> Iterator[str]:
    for inner in element:
        name = local(inner)
        if name == "t":
            yield inner.text or ""
        elif name == "br":
            yield "\n"
        elif name == "oMath":
            yield equation_text(inner)
        elif name == "r":
            text = "".join(_pieces(inner, fields=fields))
            yield raised(text) if _is_raised(inner) else text
        elif name not in {"pPr", "rPr", "Fallback"} and (fields or name != "fld"):
            yield from _pieces(inner, fields=fields)


def _is_raised(run: ET.Element) -> bool:
    properties = next(children(run, "rPr"), None)
    baseline = "" if properties is None else properties.get("baseline", "")
    return baseline.removesuffix("%").removesuffix("000").isdecimal() and baseline[:1] != "0"
