"""Pages in columns are read one column after the other, however they were drawn."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from privategpt.backends.parsers import pdfium
from privategpt.backends.parsers.pdf_columns import Box, Char, placed
from tests.fakes.parser_files import read_one

Drawn: TypeAlias = tuple[float, float, str]
"""Where a text begins, from the left and from the top, in points."""

LEADING = 13.0
OTTERS = (
    "The otter builds its holt near the water and sleeps there through the day. At dusk it "
    "hunts along the bank, where eels and small fish hide between stones, and it returns before "
    "the light does. In winter the river freezes at its edges, and the animal keeps holes open in "
    "the ice by using them every night. Young otters stay with their mother for a year, learning "
    "to swim, to hunt and to be silent."
)
HERONS = (
    "A heron stands in the reeds for hours and waits until something moves. It strikes with its "
    "whole neck, faster than the eye follows, and swallows what it has caught head first. Where "
    "many of them nest, the trees beneath turn white, and farmers call such a place a city of "
    "birds. When the ponds are frozen they fly to the coast, for the tide keeps the mud soft and "
    "what lives in it within reach of a bill."
)
VOLES = (
    "Voles dig their tunnels just below the grass and line the nests with moss that they have "
    "chewed. They eat what grows above them, by day and by night, and store roots for the months "
    "in which nothing does. An owl can hear them under a hand of snow, which is why they keep to "
    "the old ways between the stems and seldom cross a path that is open to the sky."
)
TITLE = "Animals of the river: what is known of them, what is told and what is not"
NOTE = "This page was set by hand, and nobody has counted how many letters there are on it."


def page(drawn: Iterable[Drawn]) -> bytes:
    """A PDF of one page, its texts drawn in this order."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(600, 800))
    canvas.setFont("Times-Roman", 10)
    for x, y, text in drawn:
        canvas.drawString(x, 800 - y, text)
    canvas.save()
    return buffer.getvalue()


def across(
    *columns: Sequence[str], xs: Sequence[float] = (50, 310), top: float = 100
) -> Iterator[Drawn]:
    """Line by line, over all columns."""
    for number, row in enumerate(zip_longest(*columns)):
        for x, text in zip(xs, row, strict=True):
            if text is not None:
                yield x, top + number * LEADING, text


def down(lines: Sequence[str], *, x: float, top: float = 100) -> Iterator[Drawn]:
    """A column by itself."""
    return ((x, top + number * LEADING, text) for number, text in enumerate(lines))


def text_of(drawn: Iterable[Drawn], folder: Path) -> str:
    return read_one(folder, "a.pdf", page(drawn))


def test_two_columns_drawn_across_are_read_one_after_the_other(tmp_path: Path) -> None:
    otters, herons = wrap(OTTERS, 40), wrap(HERONS, 40)
    drawn = [(50, 50, TITLE), *across(otters, herons), (50, 400, NOTE)]
    assert text_of(drawn, tmp_path) == "\n".join([TITLE, *otters, *herons, NOTE])


def test_words_drawn_each_by_itself_make_columns_too(tmp_path: Path) -> None:
    otters, herons = wrap(OTTERS, 30), wrap(HERONS, 30)
    drawn = [
        (x + 6.0 * start, y, word)
        for x, y, line in across(otters, herons, xs=(20, 310))
        for start, word in _words(line)
    ]
    assert " ".join(text_of(drawn, tmp_path).split()) == f"{OTTERS} {HERONS}"


def _words(line: str) -> Iterator[tuple[int, str]]:
    start = 0
    for word in line.split(" "):
        yield start, word
        start += len(word) + 1


def test_three_columns_are_two_beside_a_third(tmp_path: Path) -> None:
    columns = [wrap(text, 26) for text in (OTTERS, HERONS, VOLES)]
    drawn = across(*columns, xs=(40, 220, 400))
    assert text_of(drawn, tmp_path) == "\n".join(line for column in columns for line in column)


def test_a_full_line_between_two_bands_of_columns_stays_between_them(tmp_path: Path) -> None:
    first, second = (wrap(OTTERS, 40), wrap(HERONS, 40)), (wrap(VOLES, 40), wrap(OTTERS, 40))
    drawn = [*across(*first), (50, 290, TITLE), *across(*second, top=310)]
    expected = [*first[0], *first[1], TITLE, *second[0], *second[1]]
    assert text_of(drawn, tmp_path) == "\n".join(expected)


def test_a_word_broken_at_the_end_of_a_columns_line_is_whole(tmp_path: Path) -> None:
    otters = wrap(OTTERS.replace("hunts along the bank", "hunts along the river-"), 40)
    otters = ["The otter swims against the cur-", "rent and rests", *otters]
    text = text_of(across(otters, wrap(HERONS, 40)), tmp_path)
    assert text.startswith("The otter swims against the current and rests\nThe otter builds")


def test_a_short_last_column_and_a_page_number_stay_where_they_belong(tmp_path: Path) -> None:
    otters, herons = wrap(OTTERS, 40), wrap(HERONS, 40)[:7]
    drawn = [*across(otters, herons), (50, 700, "17")]
    assert text_of(drawn, tmp_path) == "\n".join([*otters, *herons, "17"])


def test_columns_that_were_drawn_one_after_the_other_are_left_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unasked(_chars: object) -> None:
        raise AssertionError("the page was taken apart")

    monkeypatch.setattr(pdfium, "placed", unasked)
    otters, herons = wrap(OTTERS, 40), wrap(HERONS, 40)
    drawn = [*down(otters, x=50), *down(herons, x=310)]
    assert text_of(drawn, tmp_path) == "\n".join([*otters, *herons])


TABLES: dict[str, list[list[str]]] = {
    "numbers": [
        ["Region", "First quarter of the year", "Second"],
        *([f"Region {n}", f"{n * 37}.50 of a million", f"{n * 41}"] for n in range(12)),
    ],
    "sentences": [
        [f"{animal} live in the water for most of the year", f"Nobody has counted all {animal}"]
        for animal in ("Otters", "Herons", "Voles", "Eels", "Frogs", "Newts", "Carps", "Pikes")
    ],
    "packages": [
        [f"{name} V:{n * 147}, I:{n * 574}", "does what its name says for whoever asks it to"]
        for n, name in enumerate(("make", "gcc", "awk", "sed", "grep", "tar", "vim", "less"))
    ],
    "terms": [
        [term, "what it means is told here in a line of some length"]
        for term in ("bank", "holt", "marsh", "pond", "reed", "river", "stone", "weir")
    ],
}


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_of_a_table_without_lines_are_not_torn_apart(name: str, tmp_path: Path) -> None:
    rows = TABLES[name]
    columns = list(zip(*rows, strict=True))
    drawn = across(*columns, xs=(50, 310, 500)[: len(columns)])
    assert text_of(drawn, tmp_path).split("\n") == [" ".join(row) for row in rows]


def test_cells_of_a_single_letter_stand_apart_on_their_row(tmp_path: Path) -> None:
    rows = [["Team", "W", "D", "L"], ["Leafs", "3", "5", "7"], ["Maple", "12", "5", "x"]]
    drawn = across(*zip(*rows, strict=True), xs=(50, 80, 100, 500))
    assert text_of(drawn, tmp_path) == "Team W D L\nLeafs 3 5 7\nMaple 12 5 x"


def test_a_table_of_long_cells_keeps_its_rows(tmp_path: Path) -> None:
    """Cells of prose, drawn line by line: only the gaps between the rows tell."""
    cells = [(wrap(OTTERS[:120], 40), wrap(HERONS[:110], 40)), (wrap(VOLES[:130], 40), ["Few."])]
    drawn: list[Drawn] = []
    top = 100.0
    for left, right in cells * 3:
        drawn += across(left, right, top=top)
        top += LEADING * (max(len(left), len(right)) + 1)
    text = text_of(drawn, tmp_path)
    first = cells[0]
    assert text.startswith(f"{first[0][0]} {first[1][0]}\n{first[0][1]} {first[1][1]}\n")


def test_a_page_of_too_many_letters_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    otters, herons = wrap(OTTERS, 40), wrap(HERONS, 40)
    as_drawn = f"{otters[0]} {herons[0]}\n{otters[1]} {herons[1]}\n"
    for bound in ("_MAX_RUNS", "_MAX_CHARS_PLACED"):
        with monkeypatch.context() as patched:
            patched.setattr(pdfium, bound, 10)
            assert text_of(across(otters, herons), tmp_path).startswith(as_drawn)


def box_at(x: float, y: float, width: float, height: float) -> Box:
    return x, y, x + width, y + height


PLACES = st.floats(-50, 850)
BOXES = st.builds(box_at, PLACES, PLACES, st.floats(0, 60), st.floats(0, 30))
CHARS = st.builds(Char, st.characters(), st.none() | BOXES)


@given(
    st.lists(CHARS, max_size=60),
    st.integers(0, 30),
    st.sampled_from([LEADING, 0.0, -LEADING]),
)
def test_no_letter_is_lost_or_doubled(chars: list[Char], rows: int, leading: float) -> None:
    columns = [
        Char(letter, (x + 5 * n, y, x + 5 * n + 5, y + 10))
        for row in range(rows)
        for x, line in ((50, "for a while"), (150, "it rained on"))
        for y in [700 - row * leading]
        for n, letter in enumerate(line)
    ]
    chars = columns + chars
    drawn = any(char.box for char in chars)
    letters = Counter(char.text for char in chars if drawn and not char.text.isspace())
    assert Counter(letter for letter in placed(chars) if not letter.isspace()) == letters
