"""Reads numbers, their units, years and dates out of text, in the ways they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from privategpt.grounding.lexicon import lowered, words
from privategpt.grounding.units import JOINED, JOINED_WORD, UNITS, unit_and_scale

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * place for place, word in enumerate(_TENS, 2)
}
_VAGUE_WORDS = words("zero one")
"""More often pronouns than counts: they match a number but demand none."""

_MONTH_NAMES = (
    "january jan januar janvier enero janeiro gennaio januari janúar",
    "february feb februar février febrero fevereiro febbraio februari febrúar",
    "march mar märz mars marzo março maart",
    "april apr avril abril aprile apríl",
    "may mai mayo maio maggio mei maí",
    "june jun juni juin junio junho giugno júní",
    "july jul juli juillet julio julho luglio júlí",
    "august aug août agosto augustus ágúst",
    "september sep sept septembre septiembre setembro settembre",
    "october oct oktober octobre octubre outubro ottobre október",
    "november nov novembre noviembre novembro nóvember",
    "december dec dezember décembre diciembre dezembro dicembre desember",
)
_MONTHS = {name: month for month, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}

_NUMBER = re.compile(
    rf"(?:(?<=[{JOINED}])|(?<![\w.,]))"
    r"(?P<currency>[$€£¥])?[ ]?"
    r"(?P<number>\d{1,3}(?:[ \u00a0\u202f']\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)*)"
    r"(?P<suffix>st|nd|rd|th|s)?(?![\d])"
    r"(?:[ \u00a0\u202f-]?(?P<after>%|°[ ]?[CF]"
    rf"|[^\W\d]+\$?(?:(?<=[{JOINED}])|(?![^\W_]))|[$€£¥℃℉]))?"
    r"(?:[ \u00a0](?P<second>%|[^\W\d]+))?"
)
_NUMBER_WORD = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})[- ](?P<ones>{'|'.join(_SMALL[1:10])})"
    rf"|(?P<word>{'|'.join([*_TENS, *_SMALL][::-1])}))\b"
    r"(?:[ -](?P<after>[^\W\d]+))?(?:[ ](?P<second>[^\W\d]+))?",
    re.IGNORECASE,
)
_RANGE = re.compile(r"[ ]?(?:-|–|—|to|and|bis|à|a|und|et|y|e|til)[ ]?\Z")
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,])\d{3})+")
_YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY_MONTH = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|º|er)?\.?[ ]?(?:of |de )?({_MONTH})\b", re.IGNORECASE
)
_MONTH_DAY = re.compile(
    rf"\b({_MONTH})\.?[ ](\d{{1,2}})(?:st|nd|rd|th)?(?![\d.,]\d|\d)", re.IGNORECASE
)
_NUMERIC_DATE = re.compile(
    r"(?<![\d.,/])(0?[1-9]|[12]\d|3[01])([./])(0?[1-9]|[12]\d|3[01])\2(1\d{3}|20\d{2})(?!\d)"
)
_MONTH_OF_YEAR = re.compile(
    rf"\b({_MONTH})\.?,?[ ](?:of |de )?(?:1\d{{3}}|20\d{{2}})\b", re.IGNORECASE
)
_CLOCK = re.compile(
    r"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4])"
    r"(?:[:.](?P<minute>[0-5]\d)(?![\d:])(?:[ ]?(?P<half>[ap])\.?m\b)?"
    r"|[ ]?(?P<only_half>[ap])\.?m\b)",
    re.IGNORECASE,
)
_CLOCK_IN_WORDS = re.compile(
    r"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4])"
    r"(?:[ \u00a0]?h[ \u00a0]?(?P<after_h>[0-5]\d)(?!\d)"
    r"|(?:[:.](?P<before_uhr>[0-5]\d))?[ \u00a0]?uhr\b"
    r"|[时時](?!间|間)(?:(?P<after_shi>[0-5]?\d)分)?"
    r"|[点點](?:(?P<after_dian>[0-5]?\d)分|[钟鐘整]))",
    re.IGNORECASE,
)
CLOCK = "o'clock"
"""The unit of a time of day, in minutes."""

_CJK_DATE = re.compile(r"(\d{1,2})月(\d{1,2})日")
_CJK_YEAR = re.compile(r"(\d{4})年")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit ("" where none is known).

    `values` has every reading of it: "1.000" is one thousand to some and one to others.
    `demanded` is false for words such as "one", which a passage need not repeat. `counted` is the
    word behind a number without a unit ("book" in "12 books").
    """

    values: frozenset[float]
    unit: str = ""
    demanded: bool = True
    counted: str = ""


class Date(NamedTuple):
    """A day of the year, or with 0 the whole month."""

    month: int
    day: int

    def covers(self, other: Date) -> bool:
        """Whether `other` is this day, or in this month."""
        return self.month == other.month and self.day in (0, other.day)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a text states in numbers."""

    quantities: tuple[Quantity, ...] = ()
    years: frozenset[int] = frozenset()
    dates: frozenset[Date] = frozenset()

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            quantities=self.quantities + other.quantities,
            years=self.years | other.years,
            dates=self.dates | other.dates,
        )


def read_figures(text: str) -> Figures:
    """All numbers, years and dates of `text`."""
    years, dates, rest = _read_dates(text)
    quantities, rest = _read_clock(rest)
    before_end = 0
    for found in _NUMBER.finditer(rest):
        number = found["number"]
        unit, scale = unit_and_scale(found["after"], found["second"])
        unit = found["currency"] or unit
        if _YEAR.fullmatch(number) and not unit and scale == 1 and found["suffix"] in (None, "s"):
            years.add(int(number))
            before_end = found.end("number")
            continue
        if unit and quantities and _RANGE.fullmatch(rest[before_end : found.start()]):
            quantities[-1] = _with_unit(quantities[-1], unit)
        values = frozenset(value * scale for value in _readings(number))
        counted = "" if unit else _counted(found["after"] if scale == 1 else found["second"])
        quantities.append(Quantity(values, unit, counted=counted))
        before_end = found.end("number")
    quantities += _number_words(rest)
    return Figures(tuple(quantities), frozenset(years), frozenset(dates))


def _with_unit(quantity: Quantity, unit: str) -> Quantity:
    return quantity if quantity.unit else replace(quantity, unit=unit)


def _read_dates(text: str) -> tuple[set[int], set[Date], str]:
    """Years and dates, and the text with the dates blanked out so that they are read once."""
    years: set[int] = set()
    dates: set[Date] = set()

    def iso(found: re.Match[str]) -> str:
        years.add(int(found[1]))
        dates.add(Date(int(found[2]), int(found[3])))
        return " " * len(found[0])

    def day_month(found: re.Match[str]) -> str:
        dates.add(Date(_MONTHS[lowered(found[2])], int(found[1])))
        return " " * len(found[0])

    def month_day(found: re.Match[str]) -> str:
        dates.add(Date(_MONTHS[lowered(found[1])], int(found[2])))
        return " " * len(found[0])

    def cjk_date(found: re.Match[str]) -> str:
        dates.add(Date(int(found[1]), int(found[2])))
        return " " * len(found[0])

    def cjk_year(found: re.Match[str]) -> str:
        years.add(int(found[1]))
        return " " * len(found[0])

    def numeric(found: re.Match[str]) -> str:
        years.add(int(found[4]))
        first, second = int(found[1]), int(found[3])
        if found[2] == "." or first > 12 or first == second:  # 3/4 is read both ways
            dates.add(Date(second, first))
        elif second > 12:
            dates.add(Date(first, second))
        return " " * len(found[0])

    def month_of_year(found: re.Match[str]) -> str:
        dates.add(Date(_MONTHS[lowered(found[1])], 0))
        return found[0]

    for pattern, read in (
        (_ISO_DATE, iso),
        (_NUMERIC_DATE, numeric),
        (_CJK_YEAR, cjk_year),
        (_CJK_DATE, cjk_date),
        (_DAY_MONTH, day_month),
        (_MONTH_DAY, month_day),
        (_MONTH_OF_YEAR, month_of_year),
    ):
        text = pattern.sub(read, text)
    return years, dates, text


def _read_clock(text: str) -> tuple[list[Quantity], str]:
    """Times of day as minutes, and the text with them blanked out.

    A time without "am" or "pm" and without a colon may be a decimal number, and is left.
    """
    times: list[Quantity] = []

    def clock(found: re.Match[str]) -> str:
        half = (found["half"] or found["only_half"] or "").lower()
        if not half and found[0][len(found["hour"])] == ".":
            return found[0]
        minute = int(found["minute"] or 0)
        times.append(_time_of_day(int(found["hour"]), minute, half=half))
        return " " * len(found[0])

    def in_words(found: re.Match[str]) -> str:
        minute = next(filter(None, found.groups()[1:]), "0")
        times.append(_time_of_day(int(found["hour"]), int(minute)))
        return " " * len(found[0])

    text = _CLOCK_IN_WORDS.sub(in_words, text)
    return times, _CLOCK.sub(clock, text)


def _time_of_day(hour: int, minute: int, *, half: str = "") -> Quantity:
    """As minutes; without its half of the day "9:00" is said of mornings and evenings."""
    minutes = hour % 12 * 60 + minute
    if half:
        values = {minutes + 720 * (half == "p")}
    elif hour > 12:
        values = {minutes + 720}
    else:
        values = {minutes, minutes + 720}
    return Quantity(frozenset(map(float, values)), CLOCK)


def _readings(number: str) -> frozenset[float]:
    """Every value that the digits can mean."""
    digits = re.sub(r"[ \u00a0\u202f']", "", number)
    marks = [char for char in digits if char in ".,"]
    if not marks:
        return frozenset({float(digits)})
    if len(set(marks)) == 2:  # the last mark is the decimal one
        whole, mark, fraction = digits.rpartition(marks[-1])
        return frozenset({float(re.sub("[.,]", "", whole) + "." + fraction)} if mark else ())
    plain = digits.replace(marks[0], "")
    if len(marks) > 1:
        return frozenset({float(plain)})
    decimal = float(digits.replace(",", "."))
    if _THOUSANDS.fullmatch(digits):
        # "1,000" is a thousand in English and one in German; zero leads no thousands.
        return frozenset({decimal} if digits.startswith("0") else {decimal, float(plain)})
    return frozenset({decimal})


def _counted(word: str | None) -> str:
    folded = (word or "").casefold()
    if JOINED_WORD.match(folded):
        return folded[0]
    return folded.removesuffix("s") if len(folded) > 3 else ""


def _number_words(text: str) -> list[Quantity]:
    found: list[Quantity] = []
    for match in _NUMBER_WORD.finditer(text):
        word = lowered(match["word"] or "")
        value = float(
            _NUMBER_WORDS[word]
            if word
            else _NUMBER_WORDS[lowered(match["tens"])] + _NUMBER_WORDS[lowered(match["ones"])]
        )
        after = (match["after"] or "").lower()
        if after == "hundred":
            unit, value, scale = UNITS.get((match["second"] or "").lower(), ""), value * 100, 1.0
        else:
            unit, scale = unit_and_scale(match["after"], match["second"])
        found.append(
            Quantity(
                frozenset({value * scale}),
                unit,
                demanded=word not in _VAGUE_WORDS or scale > 1,
                counted="" if unit or scale > 1 else _counted(match["after"]),
            )
        )
    return found
