"""The deterministic gate: what a sentence states must not contradict the passage it cites.

An embedding finds "rose by 5 %" and "fell by 50 %" alike. So numbers with their units, years,
dates, names, negation and direction ("increases", "reduces") are read out of both and compared.
Everything is by rule and by word list: no model, the same result every time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from privategpt.grounding.lexicon import composed, words
from privategpt.grounding.names import (
    GERMAN,
    WORDS,
    NamePlace,
    initials_of,
    names_in,
    parts_of,
    places_of,
)
from privategpt.grounding.quantities import CLOCK, Date, Figures, Quantity, read_figures

_NEGATIONS = words(
    "not no never none neither nor without cannot nothing nobody nowhere hardly scarcely unable "
    "lack lacks lacked lacking fail fails failed absence absent non unlikely false",
    "nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts",
    "ne n pas jamais aucun aucune sans rien ni",
    "nunca ningún ninguna ninguno sin jamás nada tampoco",
    "não nunca nenhum nenhuma sem nem",
    "nessun nessuno nessuna senza",  # not "mai", which is May to its neighbours
    "niet geen nooit zonder niets",
    "ekki aldrei enginn engin ekkert án né",
    "inte ikke ej aldrig ingen inga",
    "nie bez не нет без ні немає není nejsou değil yok δεν δε χωρίς",
    "नहीं बिना لا ليس ليست لم لن بدون لیس نیست نہیں לא אין בלי",
)
_CONTRACTED = re.compile(r"n['’]t\b", re.IGNORECASE)
_INNER_NEGATIONS = re.compile(r"不|没|沒|無|无|非|未|ない|ません|なかった|ず[、。に]|ไม่|않|없|아니")

_UP = (
    "increas", "rais", "rise", "rose", "rising", "higher", "more", "great", "elevat", "enhanc",
    "upregulat", "up-regulat", "promot", "activat", "improv", "gain", "grew", "expand",
    "strengthen", "accelerat", "stimulat", "induc", "augment", "boost", "facilitat", "exceed",
    "longer", "larger", "faster", "above",
)  # fmt: skip
_DOWN = (
    "decreas", "reduc", "fall", "fell", "lower", "less", "fewer", "declin", "diminish", "impair",
    "downregulat", "down-regulat", "inhibit", "suppress", "worsen", "loss", "lose", "lost",
    "shrink", "weaken", "slow", "attenuat", "prevent", "block", "repress", "abolish", "drop",
    "shorter", "smaller", "below", "deplet", "protect", "limit", "abrogat", "delay",
)  # fmt: skip
_DIRECTIONS = (
    (_UP, _DOWN),
    (("positive",), ("negative",)),
    (("before", "earlier"), ("after", "later")),
    (("resist",), ("sensitiv", "susceptib")),
    (("best", "highest", "largest", "maximum"), ("worst", "lowest", "smallest", "minimum")),
    (("north",), ("south",)),
    (("east",), ("west",)),
    (("win", "won", "victor"), ("defeat",)),
    (("accept", "approv"), ("reject", "refus", "den")),
    (("beneficial", "benefit", "effective"), ("harm", "ineffective", "detriment")),
    (("common",), ("rare", "uncommon")),
    (("dependent",), ("independent",)),
    (("gain-of",), ("loss-of",)),
    (("male",), ("female",)),
    (("pro-",), ("anti-",)),
    (("hyper",), ("hypo",)),
    (("hot", "warm"), ("cold", "cool")),
    (("open",), ("clos",)),
    (("weekday", "werktag"), ("weekend", "wochenend")),
    (("allow", "permit"), ("forbid", "forbad", "prohibit", "banned")),
    (("includ",), ("exclud",)),
    (("mandator", "compulsor", "obligat"), ("optional", "voluntar")),
    (("indoor",), ("outdoor",)),
)  # fmt: skip

_ASKS = re.compile(
    r"\b(?:whether|objectives?|aim(?:s|ed)?|purpose|hypothesi[sz]ed?|unclear|unknown|remains?|poorly"
    r"|little is known|design|methods?|setting|participants"
    r"|to (?:determine|investigate|assess|examine|evaluate|compare|test|explore|identify|study)"
    r"|we (?:investigated|examined|assessed|evaluated|studied|sought|tested|compared))\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:show(?:s|ed|n)?|demonstrat\w+|find(?:s|ings?)?|found|conclu\w+|suggest\w*|indicat\w+"
    r"|results?|reveal\w*|thus|therefore|here we|provide|significant\w*|associated|observed"
    r"|identified|report)\b",
    re.IGNORECASE,
)


class Ground(StrEnum):
    """What a contradiction is about."""

    NUMBER = "number"
    UNIT = "unit"
    YEAR = "year"
    DATE = "date"
    NEGATION = "negation"
    DIRECTION = "direction"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing that the sentence says and the passage denies."""

    ground: Ground
    detail: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence or passage states, as far as rules can read it.

    `names` are casefolded; `vocabulary` has all its words, casefolded; `directions` holds
    (axis, side) pairs. A sentence that `asks` says what is to be found out, one that `reports`
    what was.
    """

    figures: Figures
    names: frozenset[str]
    places: frozenset[NamePlace]
    vocabulary: frozenset[str]
    initials: frozenset[str]
    negated: bool
    directions: frozenset[tuple[int, int]]
    asks: bool = False
    reports: bool = False

    def __add__(self, other: Statement) -> Statement:
        return Statement(
            figures=self.figures + other.figures,
            names=self.names | other.names,
            places=self.places | other.places,
            vocabulary=self.vocabulary | other.vocabulary,
            initials=self.initials | other.initials,
            negated=self.negated or other.negated,
            directions=self.directions | other.directions,
            asks=self.asks and other.asks,
            reports=self.reports or other.reports,
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a sentence's statements fare in a passage: how many there are, how many are found, and
    which are denied.
    """

    numbers: int
    numbers_found: int
    names: int
    names_found: int
    contradictions: tuple[Contradiction, ...]

    def denies(self, *grounds: Ground) -> bool:
        """Whether the passage denies something on one of these grounds."""
        return any(found.ground in grounds for found in self.contradictions)


def read_statement(text: str) -> Statement:
    """Everything that the gate compares."""
    text = composed(text)
    tokens = WORDS.findall(text)
    folded = [token.casefold() for token in tokens]
    names = names_in(text)
    return Statement(
        figures=read_figures(text),
        names=names,
        places=frozenset(places_of(tokens, names)),
        vocabulary=frozenset(part for token in folded for part in (token, *parts_of(token))),
        initials=initials_of(tokens),
        negated=_is_negated(text, folded),
        directions=frozenset(_directions(folded)),
        asks=_ASKS.search(text) is not None,
        reports=_REPORTS.search(text) is not None,
    )


def compare(sentence: Statement, passage: Statement) -> Comparison:
    """Hold what `sentence` states against `passage`."""
    demanded = [quantity for quantity in sentence.figures.quantities if quantity.demanded]
    missing = [quantity for quantity in demanded if not _has(passage.figures, quantity)]
    years = sentence.figures.years - passage.figures.years
    dates = [
        date for date in sentence.figures.dates if not any(map(date.covers, passage.figures.dates))
    ]
    names = [name for name in sentence.names if not _names_it(passage, name)]
    numbers = len(demanded) + len(sentence.figures.years) + len(sentence.figures.dates)
    return Comparison(
        numbers=numbers,
        numbers_found=numbers - len(missing) - len(years) - len(dates),
        names=len(sentence.names),
        names_found=len(sentence.names) - len(names),
        contradictions=(
            *_denied_quantities(missing, passage.figures.quantities),
            *_denied_years(years, passage.figures.years),
            *_denied_dates(dates, passage.figures.dates),
            *_denied_sense(sentence, passage),
        ),
    )


def contradictions(sentence: str, passage: str) -> tuple[Contradiction, ...]:
    """What `passage` denies of `sentence`."""
    return compare(read_statement(sentence), read_statement(passage)).contradictions


def replaced_names(sentence: Statement, *, place: Statement, passage: Statement) -> frozenset[str]:
    """The names in `sentence` that are nowhere in `passage`, and for which `place` has another
    between the same words.

    Elsewhere a name that is not there may be what a "he" stands for, and in German any noun.
    """
    if len(GERMAN & (passage.vocabulary | sentence.vocabulary)) > 1:
        return frozenset()
    return frozenset(
        name
        for here in sentence.places
        for there in place.places
        if (here.before, here.after) == (there.before, there.after)
        and not all(other in sentence.vocabulary for other in there.names)
        for name in here.names
        if not _names_it(passage, name)
    )


def _has(figures: Figures, wanted: Quantity) -> bool:
    if any(_agree(wanted, quantity) for quantity in figures.quantities):
        return True
    return not wanted.unit and any(float(year) in wanted.values for year in figures.years)


def _agree(wanted: Quantity, given: Quantity) -> bool:
    if (hours := _as_hours(wanted, given)) is not None:
        wanted, given = hours
    if wanted.unit and given.unit and wanted.unit != given.unit:
        return False
    return any(_same(a, b) for a in wanted.values for b in given.values)


def _same(wanted: float, given: float) -> bool:
    """Equal, or the rounded form of what is given ("24" for 23.8)."""
    if wanted == given:
        return True
    if math.isinf(wanted) or math.isinf(given):  # hundreds of digits in a row
        return False
    return wanted == round(wanted) and given != round(given) and wanted == float(round(given))


def _denied_quantities(
    missing: Iterable[Quantity], given: tuple[Quantity, ...]
) -> Iterable[Contradiction]:
    for quantity in missing:
        shown = f"{max(quantity.values):g} {quantity.unit}".strip()
        if any(_is_of_one_kind(quantity, other) for other in given):
            yield Contradiction(Ground.NUMBER, f"the passage has other numbers than {shown}")
        elif any(quantity.values & other.values for other in given):
            yield Contradiction(Ground.UNIT, f"the passage has another unit than {shown}")


def _is_of_one_kind(wanted: Quantity, given: Quantity) -> bool:
    if _as_hours(wanted, given) is not None:
        return True
    if wanted.unit or given.unit:
        return wanted.unit == given.unit
    return wanted.counted == given.counted


def _as_hours(one: Quantity, other: Quantity) -> tuple[Quantity, Quantity] | None:
    """Both as hours, where one is a time of day and the other can be: "from 10 to 14"."""
    read = [_hours(quantity) for quantity in (one, other)]
    if {one.unit, other.unit} != {CLOCK, ""} or not all(read):
        return None
    return replace(one, values=read[0], unit=""), replace(other, values=read[1], unit="")


def _hours(quantity: Quantity) -> frozenset[float]:
    if quantity.unit == CLOCK:
        return frozenset(minutes / 60 for minutes in quantity.values)
    if quantity.counted:
        return frozenset()
    said = {value for value in quantity.values if value in range(25)}
    # "At 6" is said of mornings and evenings.
    return frozenset(said | {value + 12 for value in said if value <= 12})


def _denied_years(missing: Iterable[int], given: frozenset[int]) -> Iterable[Contradiction]:
    if given:
        for year in sorted(missing):
            yield Contradiction(Ground.YEAR, f"the passage has other years than {year}")


def _denied_dates(missing: Iterable[Date], given: frozenset[Date]) -> Iterable[Contradiction]:
    for date in sorted(missing):
        if given and not any(other.covers(date) for other in given):
            yield Contradiction(
                Ground.DATE, f"the passage has other dates than {date.month}/{date.day or '?'}"
            )


def _denied_sense(sentence: Statement, passage: Statement) -> Iterable[Contradiction]:
    if sentence.negated != passage.negated:
        which = "sentence" if sentence.negated else "passage"
        yield Contradiction(Ground.NEGATION, f"only the {which} is negated")
    for axis, side in sorted(sentence.directions):
        opposite = (axis, 1 - side)
        if (
            opposite in passage.directions
            and opposite not in sentence.directions
            and (axis, side) not in passage.directions
        ):
            yield Contradiction(Ground.DIRECTION, f"{_DIRECTIONS[axis][side][0]!r} is reversed")


def _names_it(passage: Statement, name: str) -> bool:
    return (
        name in passage.vocabulary
        or name in passage.initials
        or any(part in passage.vocabulary for part in parts_of(name))
    )


def _is_negated(text: str, folded: list[str]) -> bool:
    return bool(
        not _NEGATIONS.isdisjoint(folded)
        or _CONTRACTED.search(text)
        or _INNER_NEGATIONS.search(text)
    )


_STEMS = {
    stem: (axis, side)
    for axis, sides in enumerate(_DIRECTIONS)
    for side, stems in enumerate(sides)
    for stem in stems
}
_STEM = re.compile("|".join(map(re.escape, sorted(_STEMS, key=len, reverse=True))))


def _directions(folded: list[str]) -> Iterable[tuple[int, int]]:
    for token in folded:
        if found := _STEM.match(token):
            yield _STEMS[found[0]]
