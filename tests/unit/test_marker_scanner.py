"""The table of marker forms, and what must hold for every text and every cut."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privategpt.grounding.markers import MAX_MARKER_LENGTH, Marker, MarkerScanner


class Case(NamedTuple):
    name: str
    text: str
    expected: str
    removed: int = 0
    sources: int = 3


# fmt: off
CASES = [
    # what models write
    Case("plain", "Water boils [1].", "Water boils [1]."),
    Case("two in a row", "x [1][2].", "x [1][2]."),
    Case("two with a space", "x [1] [2].", "x [1] [2]."),
    Case("list", "x [1, 2].", "x [1][2]."),
    Case("list without a space", "x [1,2].", "x [1][2]."),
    Case("list of three", "x [1, 2, 3].", "x [1][2][3]."),
    Case("list in another order", "x [3, 1].", "x [3][1]."),
    Case("list with a semicolon", "x [1; 2].", "x [1][2]."),
    Case("list with and", "x [1 and 2].", "x [1][2]."),
    Case("list with an ampersand", "x [1 & 2].", "x [1][2]."),
    Case("list with a German and", "x [1 und 3].", "x [1][3]."),
    Case("list with an ideographic comma", "x [1、2]", "x [1][2]"),
    Case("list with a full-width comma", "x [1，2]", "x [1][2]"),
    Case("the same number twice in one list", "x [1, 1].", "x [1]."),
    Case("range", "x [1-3].", "x [1][2][3]."),
    Case("range with an en dash", "x [1–3].", "x [1][2][3]."),
    Case("range with an em dash", "x [1—2].", "x [1][2]."),
    Case("range with a non-breaking hyphen", "x [1‑2].", "x [1][2]."),
    Case("range with spaces", "x [1 - 3].", "x [1][2][3]."),
    Case("range in words", "x [1 to 3].", "x [1][2][3]."),
    Case("range backwards", "x [3-1].", "x [1][2][3]."),
    Case("range and number", "x [1-2, 3].", "x [1][2][3]."),
    Case("doubled", "x [[1]].", "x [1]."),
    Case("doubled with a list", "x [[1, 2]].", "x [1][2]."),
    Case("doubled around two", "x [[1], [2]].", "x [1][2]."),
    Case("doubled around two without a comma", "x [[1][2]].", "x [1][2]."),
    Case("lenticular", "x 【1】。", "x [1]。"),
    Case("lenticular with a dagger", "x【1†source】.", "x[1]."),
    Case("lenticular with lines", "x 【2†L5-L10】.", "x [2]."),
    Case("dagger and a title", "x [1†The Title, 2nd ed.].", "x [1]."),
    Case("double dagger", "x [1‡a].", "x [1]."),
    Case("full-width brackets", "x ［1］。", "x [1]。"),
    Case("full-width digit", "x ［１］。", "x [1]。"),
    Case("Arabic-Indic digit", "x [٢].", "x [2]."),
    Case("footnote", "x [^1].", "x [1]."),
    Case("footnotes", "x [^1][^2].", "x [1][2]."),
    Case("Source", "x [Source 1].", "x [1]."),
    Case("Sources and a list", "x [Sources 1, 2].", "x [1][2]."),
    Case("source with a colon", "x [source: 1].", "x [1]."),
    Case("source with an underscore", "x [source_1].", "x [1]."),
    Case("source with a number sign", "x [Source #2].", "x [2]."),
    Case("each with its word", "x [Source 1, Source 2].", "x [1][2]."),
    Case("Document", "x [Document 2].", "x [2]."),
    Case("doc in upper case", "x [DOC 2].", "x [2]."),
    Case("citation", "x [citation:1]", "x [1]"),
    Case("reference document", "x [Source: Document 1].", "x [1]."),
    Case("Quelle", "x [Quelle 1].", "x [1]."),
    Case("Fuente", "x [Fuente 1].", "x [1]."),
    Case("heimild", "x [heimild 1].", "x [1]."),
    Case("来源", "x [来源1]。", "x [1]。"),
    Case("with a page", "x [1, p. 12].", "x [1]."),
    Case("with pages", "x [2, pp. 12-14].", "x [2]."),
    Case("spaces inside", "x [ 1 ].", "x [1]."),
    Case("leading zero", "x [01].", "x [1]."),
    Case("mixed brackets", "x 【1].", "x [1]."),
    # where it stands
    Case("alone", "[1]", "[1]"),
    Case("at the start of a line", "[1] says so", "[1] says so"),
    Case("glued to a word", "Water[1] boils.", "Water[1] boils."),
    Case("glued to a unit", "24 °C[1].", "24 °C[1]."),
    Case("glued to a word in Japanese", "東京[1]。", "東京[1]。"),
    Case("glued to a word with an accent", "café[1].", "café[1]."),
    Case("behind the full stop", "It boils.[1] Then", "It boils.[1] Then"),
    Case("behind a year", "in 1998[1].", "in 1998[1]."),
    Case("behind an exclamation mark", "Wow![1] Then", "Wow![1] Then"),
    Case("in parentheses", "x ([1]).", "x ([1])."),
    Case("behind closing parentheses", "water (H2O)[1].", "water (H2O)[1]."),
    Case("in a table", "| a | [1] |\n", "| a | [1] |\n"),
    Case("behind emphasis", "_x_[1, 2] and ^[1]", "_x_[1][2] and ^[1]"),
    Case("in bold", "**x [1]**", "**x [1]**"),
    Case("in a task list", "- [x] done [1]", "- [x] done [1]"),
    Case("before a colon in a sentence", "As said [1]: yes", "As said [1]: yes"),
    Case("before a spaced parenthesis", "x [1] (2019)", "x [1] (2019)"),
    Case("behind inline code", "`f`[1]", "`f`[1]"),
    Case("behind an unclosed span", "a ` b\n[1, 2]", "a ` b\n[1][2]"),
    Case("indented", "    x [1, 2]", "    x [1][2]"),
    # what is no marker
    Case("fence", "```\nx [9]\n```\ny [1, 2]", "```\nx [9]\n```\ny [1][2]"),
    Case("fence with a language", "```py\na [9]\n```", "```py\na [9]\n```"),
    Case("fence of tildes", "~~~\n[9]\n~~~\n[1, 2]", "~~~\n[9]\n~~~\n[1][2]"),
    Case("fence that is not closed", "```\n[9]\n[1, 2]", "```\n[9]\n[1, 2]"),
    Case("tildes that are not closed", "~~~\n[9]", "~~~\n[9]"),
    Case("longer fence", "````\n```\n[9]\n````\n[1, 2]", "````\n```\n[9]\n````\n[1][2]"),
    Case("other fence inside", "```\n~~~\n[9]\n```\n[1, 2]", "```\n~~~\n[9]\n```\n[1][2]"),
    Case("fence in a list", "- ```\n  [9]\n  ```\n[1, 2]", "- ```\n  [9]\n  ```\n[1][2]"),
    Case("fence in a quote", "> ```\n> [9]\n> ```\n[1, 2]", "> ```\n> [9]\n> ```\n[1][2]"),
    Case("fence with text behind it stays open", "```\n``` x\n[9]", "```\n``` x\n[9]"),
    Case("span", "`x [9]` [1, 2]", "`x [9]` [1][2]"),
    Case("span of two ticks", "``x ` [9]`` [1, 2]", "``x ` [9]`` [1][2]"),
    Case("span of three ticks", "x ```[9]``` [1, 2]", "x ```[9]``` [1][2]"),
    Case("span that looks like a fence", "```[9]``` [1, 2]", "```[9]``` [1][2]"),
    Case("escaped tick", "\\`[1, 2]\\`", "\\`[1][2]\\`"),
    Case("escaped backslash before a span", "\\\\`[9]`", "\\\\`[9]`"),
    Case("two tildes", "~~[1, 2]~~", "~~[1][2]~~"),
    Case("index of a letter", "a[1] and a[9]", "a[1] and a[9]"),
    Case("index of an identifier", "my_list[2]", "my_list[2]"),
    Case("index of an attribute", "self.items[2]", "self.items[2]"),
    Case("index in camel case", "userIds[2]", "userIds[2]"),
    Case("index of a usual name", "args[1] and vals[9]", "args[1] and vals[9]"),
    Case("index zero of any word", "items[0] and [0]", "items[0] and", 1),
    Case("index of a call", "f(x)[1]", "f(x)[1]"),
    Case("two indices", "m[1][2]", "m[1][2]"),
    Case("slice", "a [1:2]", "a [1:2]"),
    Case("in a URL", "https://x.example/list[1]", "https://x.example/list[1]"),
    Case("assigned", "x = [1, 2]", "x = [1, 2]"),
    Case("year", "In [2024] it", "In [2024] it"),
    Case("years", "In [1990-1995] it", "In [1990-1995] it"),
    Case("year in a list", "x [1, 2024]", "x [1, 2024]"),
    Case("long number", "x [12345]", "x [12345]"),
    Case("number too long for a number", "x [1234567890123]", "x [1234567890123]"),
    Case("link", "[1](https://x.example)", "[1](https://x.example)"),
    Case("link with double brackets", "[[1]](https://x.example)", "[[1]](https://x.example)"),
    Case("image", "![1](x.png)", "![1](x.png)"),
    Case("link with words", "[see 1](https://x.example)", "[see 1](https://x.example)"),
    Case("definition", "[1]: https://x.example", "[1]: https://x.example"),
    Case("definition in a quote", "> [9]: https://x.example", "> [9]: https://x.example"),
    Case("footnote definition", "x\n[^9]: A note", "x\n[^9]: A note"),
    Case("open task", "- [ ] do", "- [ ] do"),
    Case("done task", "- [x] done", "- [x] done"),
    Case("empty brackets", "x []", "x []"),
    Case("decimal", "x [1.5]", "x [1.5]"),
    Case("mathematics", "x [1, 2, 3.5]", "x [1, 2, 3.5]"),
    Case("negative", "x [-1]", "x [-1]"),
    Case("interval from zero", "x in [0, 1]", "x in [0, 1]"),
    Case("sum", "x [1+2]", "x [1+2]"),
    Case("figure", "x [Figure 1]", "x [Figure 1]"),
    Case("words", "x [see below]", "x [see below]"),
    Case("author and year", "x [Smith, 2024]", "x [Smith, 2024]"),
    Case("ellipsis", "x [...]", "x [...]"),
    Case("escaped", "\\[1\\]", "\\[1\\]"),
    Case("escaped at its start only", "\\[9]", "\\[9]"),
    Case("not closed before more text", "x [1 y", "x [1 y"),
    Case("not closed at a dagger", "x [1†sour", "x [1†sour"),
    Case("closed on the next line", "x [1\n]", "x [1\n]"),
    Case("dagger over a line", "x [1†a\nb]", "x [1†a\nb]"),
    Case("longer than a marker", f"x [1†{'a' * 90}]", f"x [1†{'a' * 90}]"),
    Case("only opening brackets", "[[[[", "[[[["),
    Case("three brackets", "[[[1]]]", "[[1]]"),
    Case("in set notation", "x ∈ [1, 3].", "x ∈ [1, 3]."),
    Case("in TeX", "$x \\in [1, 3]$", "$x \\in [1, 3]$"),
    Case("in a subscript", "$x_{[1]}$ and $x^{[9]}$", "$x_{[1]}$ and $x^{[9]}$"),
    Case("interval in words", "the interval [1, 3] holds", "the interval [1, 3] holds"),
    Case("behind the word interval", "at an interval [1].", "at an interval [1]."),
    # cut short by the end of the answer
    Case("cut at its bracket", "It boils [", "It boils"),
    Case("cut behind its number", "It boils [1", "It boils"),
    Case("cut in a list", "It boils [1, 2", "It boils"),
    Case("cut behind a known one", "It boils [1][", "It boils [1]"),
    Case("cut behind its word", "It boils [Source", "It boils"),
    Case("cut index", "a[1", "a[1"),
    Case("cut list that is assigned", "x = [1, 2", "x = [1, 2"),
    Case("cut and escaped", "\\[1", "\\[1"),
    # unknown numbers
    Case("unknown", "x [7].", "x.", 1),
    Case("unknown without a space", "x[7].", "x[7]."),
    Case("unknown glued to a word", "Water[7] boils.", "Water boils.", 1),
    Case("unknown of three digits", "x [999].", "x.", 1),
    Case("zero", "x [0].", "x.", 1),
    Case("unknown in a list", "x [1, 7].", "x [1].", 1),
    Case("two unknown in a list", "x [7, 8].", "x.", 2),
    Case("range that ends unknown", "x [2-9].", "x [2][3].", 1),
    Case("range all unknown", "x [7-9].", "x.", 1),
    Case("unknown after a known one", "x [1] [7].", "x [1].", 1),
    Case("unknown before a known one", "x [7] [1].", "x [1].", 1),
    Case("two unknown", "x [7] [8] y", "x y", 2),
    Case("unknown at the start", "[7] Water", "Water", 1),
    Case("unknown at the start of a line", "a\n[7] Water", "a\nWater", 1),
    Case("unknown at the end", "x [7]", "x", 1),
    Case("unknown before a line's end", "x [7]\ny", "x\ny", 1),
    Case("unknown between two spaces", "x  [7] y", "x  y", 1),
    Case("unknown doubled", "x [[7]].", "x.", 1),
    Case("unknown lenticular", "x 【7†source】.", "x.", 1),
    Case("file index", "x 【4:0†source】.", "x.", 1),
    Case("unknown footnote", "x [^7].", "x.", 1),
    Case("unknown Source", "x [Source 7].", "x.", 1),
    Case("unknown before code", "x [7]`y`", "x`y`", 1),
    Case("code behind an unknown one at the start", "[7]` y`", "` y`", 1),
    Case("no sources at all", "x [1].", "x.", 1, sources=0),
    Case("more than nine sources", "x [10, 12].", "x [10].", 1, sources=11),
    # positions are code points
    Case("behind sign, emoji, accent", "24 °C 😀 e\u0301 [1, 2]", "24 °C 😀 e\u0301 [1][2]"),
]
# fmt: on


class Scanned(NamedTuple):
    text: str
    markers: list[Marker]
    removed: int


def scan(*parts: str, sources: int = 3) -> Scanned:
    scanner = MarkerScanner(sources=sources)
    scans = [*(scanner.feed(part) for part in parts), scanner.finish()]
    return Scanned(
        "".join(one.text for one in scans),
        [marker for one in scans for marker in one.markers],
        sum(one.removed for one in scans),
    )


def test_the_table_has_at_least_a_hundred_cases_each_with_its_own_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 100


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_form_becomes_what_the_table_says(case: Case) -> None:
    scanned = scan(case.text, sources=case.sources)
    assert (scanned.text, scanned.removed) == (case.expected, case.removed)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_form_comes_out_alike_at_every_cut(case: Case) -> None:
    whole = scan(case.text, sources=case.sources)
    for cut in range(len(case.text) + 1):
        assert scan(case.text[:cut], case.text[cut:], sources=case.sources) == whole
    assert scan(*case.text, sources=case.sources) == whole


def test_reported_positions_are_code_points_of_the_released_text() -> None:
    scanned = scan("24 °C 😀 e\u0301 [1, 2] and [7] then 【3】.")
    assert scanned.text == "24 °C 😀 e\u0301 [1][2] and then [3]."
    assert scanned.markers == [Marker(1, 11, 14), Marker(2, 14, 17), Marker(3, 27, 30)]


FRAGMENTS = st.sampled_from(
    [
        "[1]", "[2", "[", "]", "【", "】", "［", "］", "`", "```", "~~~", "~", "\n", " ", "  ",
        "\\", "(", ":", "1", "7", "0", ", ", "-", "–", "†", "^", "Source ", "Sour", "a", "water",
        "°", "😀", "\n\n", "> ", "- ", "=", ".", "[7]", "[[1]]", " [9]", "2024", "http://x", "![",
        "](", "and ", "p. 3", "[1†", "\r\n", "東", "!", "4:0†", "[ſource 1]", "[CİTATION 1]",
    ]
)  # fmt: skip
TEXTS = st.lists(FRAGMENTS, max_size=24).map("".join)


@given(text=TEXTS, data=st.data())
@settings(max_examples=300, deadline=None)
def test_the_output_does_not_depend_on_the_cuts(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    bounds = [0, *cuts, len(text)]
    parts = [text[a:b] for a, b in pairwise(bounds)]
    assert scan(*parts) == scan(text) == scan(*text)


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_every_reported_marker_is_in_the_text_and_names_a_source(text: str) -> None:
    scanned = scan(text)
    for marker in scanned.markers:
        assert scanned.text[marker.start : marker.end] == f"[{marker.number}]"
        assert 1 <= marker.number <= 3


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_no_more_than_a_marker_is_held_back(text: str) -> None:
    scanner = MarkerScanner(sources=3)
    released = sum(len(scanner.feed(char).text) for char in text)
    assert len(scanner.finish().text) <= MAX_MARKER_LENGTH + 3
    assert released <= 3 * len(text)


@given(text=st.text(alphabet=st.characters(exclude_characters="[【［"), max_size=200))
def test_text_without_brackets_is_never_changed(text: str) -> None:
    assert scan(*text) == Scanned(text, [], 0)


def test_plain_text_is_released_at_once() -> None:
    scanner = MarkerScanner(sources=3)
    assert scanner.feed("Water boils at 100").text == "Water boils at 100"
    assert scanner.feed(" degrees [see").text == " degrees [see"


@pytest.mark.parametrize(
    "text",
    ["[", "【", "［", "`", "~", "\\", "[[1]", "[1,", "[^", "`[", "[a", "【1†", "[1] ", "[9] ", " "],
)
def test_the_work_grows_in_proportion_to_the_text(text: str) -> None:
    def seconds(length: int) -> float:
        started = time.process_time()
        scan((text * length)[:length])
        return time.process_time() - started

    seconds(1000)
    small = min(seconds(4_000) for _ in range(3))
    large = min(seconds(16_000) for _ in range(3))
    assert large < 0.01 or large < 10 * small


def test_fifty_thousand_opening_brackets_take_under_a_tenth_of_a_second() -> None:
    def seconds() -> float:
        started = time.process_time()
        assert scan("[" * 50_000).text == "[" * 50_000
        return time.process_time() - started

    assert min(seconds() for _ in range(3)) < 0.1


def test_unknown_markers_can_be_kept_as_markers_for_the_caller_to_remove() -> None:
    scanner = MarkerScanner(sources=2, keep_unknown=True)
    scanned = [*scanner.feed("x [1, 7] y [2-9] 【4:0†z】").pieces, *scanner.finish().pieces]
    assert [piece.number for piece in scanned if piece.number is not None] == [1, 7, 2, 9, 0]
    assert "".join(piece.text for piece in scanned) == "x [1][7] y [2][9] [0]"


@given(numbers=st.lists(st.integers(1, 99), min_size=1, max_size=5), sources=st.integers(0, 20))
def test_of_a_list_exactly_the_known_numbers_are_left(numbers: list[int], sources: int) -> None:
    scanned = scan(f"x [{', '.join(map(str, numbers))}].", sources=sources)
    known = dict.fromkeys(number for number in numbers if number <= sources)
    assert [int(number) for number in re.findall(r"\[(\d+)\]", scanned.text)] == list(known)
    assert scanned.removed == sum(number > sources for number in numbers)
