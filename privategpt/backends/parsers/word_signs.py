"""Signs in Word documents that are no characters of the text: symbols of a font, ticked boxes."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from privategpt.backends.parsers.packages import attribute, child, children

_TICKED, _EMPTY = "☒", "☐"
_OFF = frozenset(("0", "false", "off"))
_PRIVATE = range(0xF000, 0xF100)
"""Where Word puts the characters of fonts that are no text fonts, by their place in the font."""

_SYMBOL = {
    **dict(enumerate("ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", start=0x41)),
    **dict(enumerate("αβχδεφγηιϕκλμνοπθρστυϖωξψζ", start=0x61)),
    **{0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAE: "→", 0xB0: "°", 0xB1: "±", 0xB3: "≥"},
    **{0xB4: "×", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xC5: "⊕"},
    **{0xCE: "∈", 0xD1: "∇", 0xD2: "®", 0xD3: "©", 0xD4: "™", 0xD5: "∏", 0xD6: "√", 0xD7: "⋅"},
    **{0xDE: "⇒", 0xE5: "∑", 0xF2: "∫", 0x22: "∀", 0x24: "∃", 0x2D: "−"},
}
_WINGDINGS = {
    **{0x6F: _EMPTY, 0x71: _EMPTY, 0x72: _EMPTY, 0xA8: _EMPTY, 0x78: _TICKED, 0xFD: _TICKED},
    **{0xFE: "☑", 0xFC: "✓", 0xFB: "✗", 0xE0: "→", 0xDF: "←", 0xE8: "➔", 0xF0: "⇨"},
}
_WINGDINGS_2 = {0xA3: _EMPTY, 0x52: "☑", 0x53: _TICKED, 0x54: _TICKED, 0x50: "✓", 0x4F: "✗"}
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}


def symbol(sign: ET.Element) -> str:
    """The character that a `sym` shows, "" where it is a mere ornament."""
    try:
        place = int(attribute(sign, "char") or "", 16)
    except ValueError:
        return ""
    shown = _FONTS.get((attribute(sign, "font") or "").lower())
    if shown is not None:
        return shown.get(place - _PRIVATE.start if place in _PRIVATE else place, "")
    return chr(place) if 0 < place < _PRIVATE.start else ""


def field_sign(data: ET.Element) -> str:
    """What a box of a form shows that has no text of its own: a tick, or what was chosen."""
    if (box := child(data, "checkBox")) is not None:
        stated = child(box, "checked")
        stated = child(box, "default") if stated is None else stated
        value = _OFF if stated is None else {attribute(stated, "val") or "1"}
        return _EMPTY if value & _OFF else _TICKED
    if (choice := child(data, "ddList")) is not None:
        stated = child(choice, "result")
        stated = child(choice, "default") if stated is None else stated
        number = "0" if stated is None else attribute(stated, "val") or "0"
        entries = [attribute(entry, "val") or "" for entry in children(choice, "listEntry")]
        return entries[int(number)] if number.isdecimal() and int(number) < len(entries) else ""
    return ""
