"""Equations of Office documents (OMML) on one line: fractions with a stroke, powers raised.

Its letters alone, one after the other, would say something else: a half would be twelve.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.cleaning import raised
from privategpt.backends.parsers.packages import attribute, child, children, local

_DEFAULT_OPERATOR = "∫"


def equation_text(element: ET.Element) -> str:
    """The text of an `oMath` or of whatever is inside one."""
    name = local(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    if shape := _SHAPES.get(name):
        return shape(element)
    return "".join(map(equation_text, element))


def _fraction(element: ET.Element) -> str:
    return f"{_grouped(element, 'num')}/{_grouped(element, 'den')}"


def _script(element: ET.Element) -> str:
    return _part(element, "e") + _lowered(element) + _power(element)


def _nary(element: ET.Element) -> str:
    """A sum, an integral and their like."""
    sign = _property(element, "naryPr", "chr", _DEFAULT_OPERATOR)
    return f"{sign}{_lowered(element)}{_power(element)} {_part(element, 'e')}"


def _matrix(element: ET.Element) -> str:
    rows = children(element, "mr")
    return "; ".join(", ".join(map(equation_text, children(row, "e"))) for row in rows)


def _lines(element: ET.Element) -> str:
    return "; ".join(map(equation_text, children(element, "e")))


def _function(element: ET.Element) -> str:
    return f"{_part(element, 'fName')} {_part(element, 'e')}"


def _part(element: ET.Element, name: str) -> str:
    found = child(element, name)
    return "" if found is None else equation_text(found).strip()


def _grouped(element: ET.Element, name: str) -> str:
    return _in_brackets(_part(element, name))


def _in_brackets(text: str) -> str:
    return text if text.isalnum() or len(text) < 2 else f"({text})"


# Every part is read once: what is nested would be read twice as often at every depth.
def _lowered(element: ET.Element) -> str:
    text = _part(element, "sub")
    return f"_{_in_brackets(text)}" if text else ""


def _power(element: ET.Element) -> str:
    text = _part(element, "sup")
    power = raised(text)
    return f"^{_in_brackets(text)}" if text and power == text else power


def _root(element: ET.Element) -> str:
    return f"{raised(_part(element, 'deg'))}√{_grouped(element, 'e')}"


def _delimited(element: ET.Element) -> str:
    begin = _property(element, "dPr", "begChr", "(")
    end = _property(element, "dPr", "endChr", ")")
    between = _property(element, "dPr", "sepChr", "|")
    return begin + between.join(map(equation_text, children(element, "e"))) + end


def _property(element: ET.Element, group: str, name: str, otherwise: str) -> str:
    stated = child(element, group, name)
    value = None if stated is None else attribute(stated, "val")
    return otherwise if value is None else value


_SHAPES: dict[str, Callable[[ET.Element], str]] = {
    "f": _fraction,
    **dict.fromkeys(("sSup", "sSub", "sSubSup"), _script),
    "rad": _root,
    "d": _delimited,
    "nary": _nary,
    "m": _matrix,
    "eqArr": _lines,
    "func": _function,
}
