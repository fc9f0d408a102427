"""Numbers as lists count with them: in digits, letters, Roman or Chinese."""

from __future__ import annotations

_MOST = 10_000
_MOST_LETTERS = 26 * 27
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_CHINESE = "〇一二三四五六七八九"
_CHINESE_FORMATS = frozenset(
    (
        *("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting"),
        *("taiwaneseCountingThousand", "ideographDigital", "japaneseDigitalTenThousand"),
    )
)
FORMS = {
    **{"1": "decimal", "a": "lowerLetter", "A": "upperLetter"},
    **{"i": "lowerRoman", "I": "upperRoman"},
}
"""What HTML and OpenDocument call them."""


def numeral(number: int, form: str) -> str:
    """The number as a list of this form has it; forms are named as in Office Open XML."""
    if not 0 < number < _MOST:
        return str(number)
    if form == "decimalZero":
        return f"{number:02}"
    if form in {"upperRoman", "lowerRoman"}:
        letters = _roman(number)
        return letters if form == "upperRoman" else letters.lower()
    if form in {"upperLetter", "lowerLetter"} and number <= _MOST_LETTERS:
        letters = _letter(number)
        return letters.upper() if form == "upperLetter" else letters
    if form in _CHINESE_FORMATS and number < 100:
        return _chinese(number)
    return "" if form in {"none", "bullet"} else str(number)


def _roman(number: int) -> str:
    """I, II, III, IV and so on."""
    shown = ""
    for value, letters in _ROMAN:
        shown += letters * (number // value)
        number %= value
    return shown


def _letter(number: int) -> str:
    """a to z, then aa, bb and so on, as Word counts."""
    return chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)


def _chinese(number: int) -> str:
    tens, ones = divmod(number, 10)
    head = "" if not tens else "十" if tens == 1 else _CHINESE[tens] + "十"
    return head + (_CHINESE[ones] if ones else "")
