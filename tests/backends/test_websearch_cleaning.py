"""What a search engine found becomes plain, bounded and safe to show."""

from __future__ import annotations

import unicodedata
from datetime import date
from html import escape
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.websearch.cleaning import (
    MAX_ROWS,
    MAX_TEXT_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    MAX_URL_CHARACTERS,
    RawResult,
    clean_date,
    clean_results,
    clean_url,
    page_of,
    plain_text,
    rows_of,
)
from privategpt.domain.websearch import WebResult

LONG = 10_000

TAGS = ["b", "strong", "em", "span class='x'", "a href=\"javascript:alert('x')\"", "font/", "i\n"]


def squeezed(text: str) -> str:
    return " ".join(text.split())


# Text

VISIBLE = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn"]), max_size=200
).map(squeezed)
MARKUP = st.lists(
    st.one_of(
        st.text(max_size=10),
        st.sampled_from(
            ["<", ">", "<b>", "</", "<!--", "-->", "<script>", "</script>", "<![CDATA[", "<![x["],
        ),
        st.sampled_from(
            ["&", "&lt;", "&#x", "&#0;", "&#xD800;", "<p", "<?", "\x00", "\u202e", "\ud800"]
        ),
    ),
    max_size=30,
).map("".join)


@given(VISIBLE)
def test_escaped_text_is_decoded_once_and_exactly(text: str) -> None:
    assert plain_text(escape(text), longest=LONG) == text


@given(st.lists(st.tuples(st.sampled_from(TAGS), VISIBLE), max_size=5))
def test_tags_around_words_leave_the_words(pieces: list[tuple[str, str]]) -> None:
    markup = "".join(f"<{tag}>{escape(text)}</{tag[:1]}>" for tag, text in pieces)
    assert plain_text(markup, longest=LONG) == squeezed("".join(text for _, text in pieces))


@given(MARKUP, st.integers(1, 50))
def test_whatever_comes_in_one_bounded_printable_line_goes_out(markup: str, longest: int) -> None:
    line = plain_text(markup, longest=longest)
    assert len(line) <= longest
    assert line == squeezed(line)
    hidden = {c for c in line if unicodedata.category(c)[0] == "C"}
    assert hidden <= {"\u200c", "\u200d"}


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("Lisbon <b>weather</b>s", "Lisbon weathers"),
        ("one<br>two<br/>three", "one two three"),
        ("<ul><li>one</li><li>two</li></ul>", "one two"),
        ("a &amp;lt;b&amp;gt; c", "a &lt;b&gt; c"),
        ("AT&T &amp; R&#38;D&nbsp;2", "AT&T & R&D 2"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("x<script>alert('1')</script >y<style>b{}</style>z", "x y z"),
        ("x<script>never closed", "x"),
        ("x<!-- note -->y<!-- never closed", "xy"),
        ("<!DOCTYPE html><?php x ?>text", "text"),
        ("<![CDATA[x", "<![CDATA[x"),
        ('<img src=x onerror="alert(1)">after', "after"),
        ("<my-widget a='1'>in</my-widget>", "in"),
        ("line one\r\nline\u2028two\ttab", "line one line two tab"),
        ("in\x00vis\u200bible\u202etxt\U000e0041\ufeff", "invisibletxt"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ud800lone", "lone"),
        ("", ""),
        (None, ""),
        (17, ""),
        (["a"], ""),
    ],
)
def test_markup_becomes_text(markup: object, text: str) -> None:
    assert plain_text(markup, longest=LONG) == text


def test_what_is_cut_off_says_so() -> None:
    assert plain_text("word " * 10, longest=12) == "word word w…"


# Addresses


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://weather.example/lisbon?q=1#top", "https://weather.example/lisbon?q=1#top"),
        ("HTTP://Example.COM/A", "HTTP://Example.COM/A"),
        ("  https://a.example/  ", "https://a.example/"),
        ("https://a.example:8443/", "https://a.example:8443/"),
        ("https://[2001:db8::1]/", "https://[2001:db8::1]/"),
        ("https://münchen.example/straße", "https://münchen.example/straße"),
        ('https://a.example/"><script>', "https://a.example/%22%3E%3Cscript%3E"),
        ("https://a.example/`{x}|^", "https://a.example/%60%7Bx%7D%7C%5E"),
        ("https://a.example/a%20b", "https://a.example/a%20b"),
        ("javascript:alert(1)", None),
        ("java\nscript:alert(1)", None),
        ("data:text/html,x", None),
        ("ftp://a.example/", None),
        ("//a.example/", None),
        ("a.example", None),
        ("https://", None),
        ("https:///path", None),
        ("https://./", None),
        ("https://good.example@evil.example/", None),
        ("https://user:secret@evil.example/", None),
        ("https://good.example\\@evil.example/", None),
        ("https://good.example /x", None),
        ("https://a.example/\u202egnp.exe", None),
        ("https://a.example/\r\nSet-Cookie: x", None),
        ("https://a.example:99999/", None),
        ("https://a.example:0/", None),
        ("https://[::1/", None),
        ("https://ex%61mple/", None),
        ("https://a.example／evil.example/", None),
        ("https://a.example/" + "x" * MAX_URL_CHARACTERS, None),
        (None, None),
        (7, None),
    ],
)
def test_only_addresses_of_web_pages_pass(address: object, url: str | None) -> None:
    assert clean_url(address) == url


@given(
    st.one_of(
        st.text(),
        st.text().map(lambda rest: f"https://{rest}"),
        st.text().map(lambda rest: f"https://a.example/{rest}"),
    )
)
def test_an_address_that_passes_can_be_shown_anywhere(address: str) -> None:
    url = clean_url(address)
    if url is not None:
        assert urlsplit(url).scheme in {"http", "https"}
        assert urlsplit(url).hostname
        assert urlsplit(url).username is None
        assert not set(url) & set(" \t\r\n\"'<>`\\{}|^") - {"'"}
        assert url.isprintable()
        assert clean_url(url) == url


@pytest.mark.parametrize(
    "other",
    [
        "http://a.example/x/?b=1&a=2",
        "https://A.example:443/x?b=1&a=2#part",
        "https://a.example./x?utm_source=y&b=1&gclid=3&a=2",
        "https://a.example/%78?b=1&a=2",
    ],
)
def test_addresses_of_one_page_are_known_as_such(other: str) -> None:
    assert page_of(other) == page_of("https://a.example/x?b=1&a=2")


@pytest.mark.parametrize(
    "other",
    [
        "https://a.example/x?b=1&a=3",
        "https://a.example/X?b=1&a=2",
        "https://a.example:8443/x?b=1&a=2",
        "https://b.example/x?b=1&a=2",
    ],
)
def test_addresses_of_other_pages_are_others(other: str) -> None:
    assert page_of(other) != page_of("https://a.example/x?b=1&a=2")


# Dates


@pytest.mark.parametrize(
    ("stated", "day"),
    [
        ("2026-03-30", date(2026, 3, 30)),
        ("2026-03-30T10:00:00", date(2026, 3, 30)),
        ("2026-03-30 10:00:00+0000", date(2026, 3, 30)),
        ("2026-03-30T10:00:00Z", date(2026, 3, 30)),
        ("Mon, 30 Mar 2026 10:00:00 GMT", date(2026, 3, 30)),
        ("2 hours ago", None),
        ("", None),
        ("Mon, 99 Mar 2026 10:00:00 GMT", None),
        (1774864800, None),
        (None, None),
    ],
)
def test_a_date_is_read_where_it_is_one(stated: object, day: date | None) -> None:
    assert clean_date(stated) == day


@given(st.text(max_size=80))
def test_no_date_is_an_error(stated: str) -> None:
    assert clean_date(stated) is None or isinstance(clean_date(stated), date)


# Results


def raw(url: object, text: object = "Text", title: object = "Title") -> RawResult:
    return RawResult(title=title, url=url, text=text)


def test_what_has_no_text_or_no_address_is_dropped() -> None:
    found = [raw("https://a.example", "<b></b>"), raw("javascript:x"), raw("https://b.example")]
    assert clean_results(found, limit=5) == [WebResult("Title", "https://b.example", "Text")]


def test_a_page_without_a_title_is_named_by_its_host() -> None:
    found = [raw("https://a.example/x", title=None)]
    assert clean_results(found, limit=5) == [WebResult("a.example", "https://a.example/x", "Text")]


def test_a_page_found_twice_is_one_result_with_the_longer_text() -> None:
    found = [
        raw("https://a.example/x", "short", "First"),
        raw("https://b.example", "other", "Second"),
        raw("http://a.example/x/?utm_source=y", "rather longer", "Third"),
        raw("https://a.example/x#part", "tiny", "Fourth"),
    ]
    assert clean_results(found, limit=5) == [
        WebResult("First", "https://a.example/x", "rather longer"),
        WebResult("Second", "https://b.example", "other"),
    ]


def test_no_more_results_than_wanted_and_no_longer_than_allowed() -> None:
    found = [raw(f"https://a.example/{n}", "x" * 50_000, "t" * 5_000) for n in range(500)]
    results = clean_results(found, limit=3)
    assert [result.url for result in results] == [f"https://a.example/{n}" for n in range(3)]
    assert {len(result.text) for result in results} == {MAX_TEXT_CHARACTERS}
    assert {len(result.title) for result in results} == {MAX_TITLE_CHARACTERS}


def test_only_the_first_rows_are_looked_at() -> None:
    rows = [*[{"n": n} for n in range(MAX_ROWS)], {"n": "beyond"}]
    assert list(rows_of(rows)) == rows[:MAX_ROWS]
    found = [raw("https://a.example")] * MAX_ROWS + [raw("https://b.example")]
    assert len(clean_results(found, limit=5)) == 1


@pytest.mark.parametrize("value", [None, "text", {"a": 1}, 3, [None, "x", [1]]])
def test_what_is_no_list_of_objects_has_no_rows(value: object) -> None:
    assert list(rows_of(value)) == []


JSON_VALUES: st.SearchStrategy[object] = st.one_of(
    st.none(), st.integers(), st.text(), st.just("https://a.example"), st.lists(st.text())
)


@given(st.lists(st.builds(RawResult, JSON_VALUES, JSON_VALUES, JSON_VALUES, JSON_VALUES)))
def test_no_row_however_odd_is_an_error(found: list[RawResult]) -> None:
    results = clean_results(found, limit=5)
    assert len(results) <= 5
    assert all(result.text and result.title and result.url for result in results)
