"""How a spreadsheet shows the number in a cell: ECMA-376, part 1, 18.8.30 and 18.8.31.

Digits, signs, units and currencies as its format says; dates and times in ISO's form. Groups of
digits are not parted: what a comma or a point means in "1,234" depends on who reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

_BUILTIN: Mapping[int, str] = {
    **{1: "0", 2: "0.00", 3: "0", 4: "0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 48: "##0.0E+0"},
    **dict.fromkeys((5, 6, 41, 42), "0"),
    **dict.fromkeys((7, 8, 43, 44), "0.00"),
    **dict.fromkeys((37, 38), "0;(0)"),
    **dict.fromkeys((39, 40), "0.00;(0.00)"),
    **dict.fromkeys((*range(14, 18), 22, *range(27, 32), *range(50, 59)), "y"),
    **dict.fromkeys((18, 19, 20, 21, 45, 47), "h"),
    46: "[h]",
}
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]")
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]', re.IGNORECASE)
"""What a format says word for word, and colours, conditions, languages and currencies."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<rule>[^\]]*)\]|(?P<digit>[0#?])|(?P<point>\.)|(?P<comma>,)|(?P<exponent>E[+-])"
    r"|(?P<whole>General|@)|(?P<plain>.)",
    re.IGNORECASE | re.DOTALL,
)
_MOST_DIGITS = 30
_LONGEST_CODE = 1_000  # Excel's limit is 255
_FIRST_OF_MARCH_1900 = 61
"""Days before it are counted as if 1900 had been a leap year, as Lotus 1-2-3 did."""

_FIRST_PLAUSIBLE_DAY = 367  # a time of less is a sum of hours, not one in 1900
_LAST_DAY = 2_958_466  # beyond it is the year 10000


@dataclass(frozen=True, slots=True)
class _Section:
    """A format's part for positive, negative or other numbers. `before` and `behind` the point
    are its digits, `0`, `#` and `?`, and what stands among them word for word.
    """

    before: tuple[str, ...]
    behind: tuple[str, ...]
    shift: int = 0
    exponent_digits: int = 0
    is_whole: bool = False
    quantum: Decimal = Decimal(1)
    around: tuple[str, str] | None = None  # of digits as Python writes them, as most are

    def shown(self, number: Decimal, stated: str) -> str:
        """A number without its sign; `stated` as it is in the file."""
        if self.is_whole:
            return "".join(stated if part == "@" else part[1:] for part in self.before)
        if self.exponent_digits:
            return self._scientific(number)
        shifted = number.scaleb(self.shift) if self.shift else number
        rounded = shifted.quantize(self.quantum, ROUND_HALF_UP)
        if self.around is not None:
            return f"{self.around[0]}{rounded:f}{self.around[1]}"
        digits, _, decimals = f"{rounded:f}".partition(".")
        return _whole(self.before, digits) + _decimals(self.behind, decimals)

    def _scientific(self, number: Decimal) -> str:
        places = sum(part in _DIGITS for part in self.behind)
        mantissa, _, power = f"{number:.{places}E}".partition("E")
        return f"{mantissa}E{power[0]}{power[1:]:0>{self.exponent_digits}}"


_DIGITS = frozenset("0#?")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """Shows numbers; without `sections` as they are stored."""

    kind: str = "number"
    sections: tuple[_Section, ...] = ()

    def shown(self, value: str, epoch: datetime) -> str:
        """The number as it is seen; `value` itself where it is none."""
        try:
            number = float(value)
        except ValueError:
            return value
        if self.kind != "number" and 0 <= number < _LAST_DAY:
            return _moment(number, self.kind, epoch)
        # Stored with 17 digits (0.1 + 0.2 style); shown, as spreadsheets do, with 15.
        plain = value if value.lstrip("-").isdecimal() else f"{number:.15g}"
        return self._formatted(plain) if self.sections else plain

    def _formatted(self, plain: str) -> str:
        try:
            number = Decimal(plain)
            chosen, sign = self._section(number)
            shown = chosen.shown(abs(number), plain.lstrip("-"))
        except InvalidOperation:
            return plain  # infinite, or of more digits than there are
        if sign and not any(digit in shown for digit in "123456789"):
            sign = ""  # it is rounded to nothing
        return sign + shown if shown.strip() else plain

    def _section(self, number: Decimal) -> tuple[_Section, str]:
        """The part for this number, and the sign that it does not write itself."""
        positive, *others = self.sections
        if number < 0 and others:
            return others[0], ""
        if number == 0 and len(others) > 1:
            return others[1], ""
        return positive, "-" if number < 0 else ""


PLAIN = NumberFormat()


def number_format(number: str, codes: Mapping[str | None, str]) -> NumberFormat:
    """The format of that id: a workbook's own, of `codes`, or one that all have."""
    if number in codes:
        return format_of_code(codes[number])
    builtin = int(number) if number.isdecimal() else 0
    return format_of_code(_BUILTIN[builtin]) if builtin in _BUILTIN else PLAIN


def format_of_code(code: str) -> NumberFormat:
    """The format that is written so."""
    if len(code) > _LONGEST_CODE:
        return PLAIN
    parts = list(_sections(code))
    bare = _LITERAL.sub("", "".join(token[0] for token in parts[0])).lower()
    if re.search(r"[yd]", bare.replace("general", "")):
        return NumberFormat("date")
    if _ELAPSED.search(bare):
        return NumberFormat("elapsed")
    if re.search(r"[hs]", bare):
        return NumberFormat("time")
    if re.search(r"m", bare):
        return NumberFormat("date")
    found = [_section(part) for part in parts]
    sections = tuple(section for section in found if section is not None)
    return NumberFormat(sections=sections if len(sections) == len(found) else ())


def _sections(code: str) -> Iterator[list[re.Match[str]]]:
    part: list[re.Match[str]] = []
    for match in _TOKEN.finditer(code):
        if match["plain"] == ";":
            yield part
            part = []
        else:
            part.append(match)
    yield part


def _section(tokens: Sequence[re.Match[str]]) -> _Section | None:
    """None for what is shown as it is stored: by conditions, as a fraction, in general."""
    before: list[str] = []
    behind: list[str] = []
    side, shift, exponent, exponent_digits = before, 0, False, 0
    for token in tokens:
        if token["rule"] and re.search(r"[<>=]", token["rule"]):
            return None
        if token["digit"]:
            exponent_digits += exponent
            shift = shift if shift >= 0 or exponent else 0  # no: a comma between digits
            side += [] if exponent else [token["digit"]]
        elif token["point"]:
            side = behind
        elif token["comma"]:
            shift -= 3
        elif token["exponent"]:
            exponent = True
        elif token["whole"]:
            side.append("@")
        else:
            literal = token["quoted"] or token["escaped"] or token["currency"] or token["plain"]
            side.append(f"={literal}" if literal else "=")
    return _checked(before, behind, shift, exponent_digits)


def _checked(
    before: list[str], behind: list[str], shift: int, exponent_digits: int
) -> _Section | None:
    parts = [*before, *behind]
    digits = sum(part in _DIGITS for part in parts)
    if ("=/" in parts and digits) or digits > _MOST_DIGITS:
        return None
    return _Section(
        before=tuple(before),
        behind=tuple(behind),
        shift=shift + 2 * parts.count("=%"),
        exponent_digits=exponent_digits,
        is_whole="@" in parts or not digits,
        quantum=Decimal(1).scaleb(-sum(part in _DIGITS for part in behind)),
        around=_around(before, behind),
    )


def _around(before: Sequence[str], behind: Sequence[str]) -> tuple[str, str] | None:
    """What stands before and behind digits with one at least before the point, and all after it;
    None where they are written in any other way.
    """
    places = [n for n, part in enumerate(before) if part in _DIGITS]
    if not places or places[-1] - places[0] != len(places) - 1 or before[places[-1]] != "0":
        return None
    if "0" in (before[n] for n in places[:-1]):
        return None
    decimals = [part for part in behind if part in _DIGITS]
    last, tail = before[: places[-1] + 1], before[places[-1] + 1 :]
    if set(decimals) - {"0"} or (tail and decimals) or list(behind[: len(decimals)]) != decimals:
        return None
    literals = "".join(part[1:] for part in (*tail, *behind[len(decimals) :]))
    return "".join(part[1:] for part in last[: places[0]]), literals


def _whole(pattern: Sequence[str], digits: str) -> str:
    """The digits before the point, the last of them in the last place, the rest in the first."""
    places = [part for part in pattern if part in _DIGITS]
    least = len(places) - places.index("0") if "0" in places else 0
    digits = digits.lstrip("0").rjust(least, "0")
    out: list[str] = []
    for part in reversed(pattern):
        if part not in _DIGITS:
            out.append(part[1:])
            continue
        places.pop()
        kept = digits if not places else digits[-1:]
        digits = digits[: len(digits) - len(kept)]
        out.append(kept)
    return "".join(reversed(out))


def _decimals(pattern: Sequence[str], digits: str) -> str:
    """The point and what is behind it; places that need not be filled only as far as they are."""
    places = [part for part in pattern if part in _DIGITS]
    kept = digits.rstrip("0").ljust(
        max((n for n, place in enumerate(places, start=1) if place == "0"), default=0), "0"
    )
    literals = "".join(part[1:] for part in pattern if part not in _DIGITS)
    return (f".{kept}" if kept else "") + literals


def _moment(days: float, kind: str, epoch: datetime) -> str:
    seconds = round(days * 86_400)
    if kind == "elapsed":
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    moment = epoch + timedelta(seconds=seconds)
    if kind == "time" and days < _FIRST_PLAUSIBLE_DAY:
        return f"{moment:%H:%M:%S}"
    if epoch.year == 1899 and days < _FIRST_OF_MARCH_1900:
        moment += timedelta(days=1)
    return f"{moment:%Y-%m-%d}" if days == int(days) else f"{moment:%Y-%m-%d %H:%M:%S}"
