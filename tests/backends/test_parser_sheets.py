"""Spreadsheets as people have them: numbers as formats show them, and what lies on a sheet."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.parsers.number_formats import PLAIN, format_of_code, number_format
from tests.fakes.parser_files import read_one, relations, xlsx

_EPOCH = datetime(1899, 12, 30)
_ACCOUNTING = '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)'


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("[$CHF-807] #,##0.00", "1234.5", "CHF 1234.50"),
        ("#,##0.00 [$€-407]", "1234.5", "1234.50 €"),
        ("[$USD] 0.00", "12.25", "USD 12.25"),
        ("$0.00", "-5", "-$5.00"),
        ("[White]0.0", "0.5", "0.5"),
        ("_-* #,##0.00_-", "7.5", "7.50"),
        ("*d0.0", "7.5", "7.5"),
        (_ACCOUNTING, "99.5", "$99.50"),
        (_ACCOUNTING, "-99.5", "$(99.50)"),
        (_ACCOUNTING, "0", "$-"),
        ("0", "2.5", "3"),
        ("#,##0", "1234567.8", "1234568"),
        ("0.00", "0.333333333333", "0.33"),
        ("0.00", "-0.001", "0.00"),
        ("0.0#", "1", "1.0"),
        ("#.##", "1", "1"),
        ("#", "0", "0"),
        ("00000", "1234", "01234"),
        ("000-00-0000", "123456789", "123-45-6789"),
        ("0.00E+00", "123456789", "1.23E+08"),
        ("0.00E+00", "0.00012", "1.20E-04"),
        ("# ?/?", "0.5", "0.5"),
        ('0.0" kg"', "12.345", "12.3 kg"),
        ('"a;b" 0', "3", "a;b 3"),
        ("0\\ x", "3", "3 x"),
        ("#,##0,", "1234567", "1235"),
        ('0.0,,"M"', "12345678", "12.3M"),
        ("0.0%", "0.1234", "12.3%"),
        ("0%;(0%)", "-0.5", "(50%)"),
        ("+0;-0;0", "5", "+5"),
        ('[>=1000]0,"K";0', "1500", "1500"),
        ("General", "0.30000000000000004", "0.3"),
        ('General" units"', "5", "5 units"),
        ("@", "-7", "-7"),
        (";;;", "7", "7"),
        ("", "7", "7"),
        ("0.00", "1e300", "1e+300"),
        ("0.00", "1e999", "inf"),
        ("0.00", "odd", "odd"),
        ("0" * 40, "7", "7"),
        ("[h]:mm:ss", "1.0625", "25:30:00"),
        ("[Red][hh]:mm", "40", "960:00:00"),
        ("[$-F400]h:mm:ss AM/PM", "0.75", "18:00:00"),
        ("h:mm", "1.25", "06:00:00"),
        ("h:mm", "44197.75", "2021-01-01 18:00:00"),
        ("mmm", "44197", "2021-01-01"),
        ("mm:ss", "0.01", "00:14:24"),
        ('"Mon;d"0;0', "3", "Mon;d3"),
        ("[$-409]d mmm yyyy", "1", "1900-01-01"),
        ("yyyy", "59", "1900-02-28"),
        ("yyyy", "61", "1900-03-01"),
        ("yyyy", "-5", "-5"),
    ],
)
def test_a_number_is_shown_as_its_format_says(code: str, value: str, shown: str) -> None:
    assert format_of_code(code).shown(value, _EPOCH) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [("2", "7.50"), ("10", "750.00%"), ("38", "8"), ("44", "7.50"), ("20", "12:00:00"),
     ("46", "180:00:00"), ("15", "1900-01-07 12:00:00"), ("49", "7.5"), ("x", "7.5")],
)  # fmt: skip
def test_formats_that_every_workbook_has_need_no_code(number: str, shown: str) -> None:
    assert number_format(number, {}).shown("7.5", _EPOCH) == shown


def test_a_workbooks_own_format_goes_before() -> None:
    assert number_format("2", {"2": "0.0"}).shown("7.55", _EPOCH) == "7.6"
    assert number_format("164", {}) is PLAIN


@given(st.text('0#?.,;%E+-"\\_*[]$dmhs@/x ', max_size=12), st.floats(allow_nan=True))
def test_no_format_breaks_on_a_number(code: str, number: float) -> None:
    assert format_of_code(code).shown(repr(number), _EPOCH)


def test_a_formula_that_no_program_has_computed_is_shown_itself(tmp_path: Path) -> None:
    row = (
        '<row><c t="inlineStr"><is><t>Total</t></is></c><c><f>SUM(B1:B3)</f></c>'
        '<c><f>A1*2</f><v>42</v></c><c t="str"><f>IF(A1,"","")</f><v></v></c>'
        '<c><f t="shared" si="0"/></c><c><f>B1</f><v/></c></row>'
    )
    assert read_one(tmp_path, "a.xlsx", xlsx({"S": row})) == "Total | =SUM(B1:B3) | 42 |  |  | =B1"


def test_a_thread_of_comments_is_read_once_and_without_its_notice(tmp_path: Path) -> None:
    notes = (
        "<comments><commentList>"
        '<comment ref="A1"><text><t>[Threaded comment] Your version allows… Hot?</t></text>'
        '</comment><comment ref="B1"><text><t>A note</t></text></comment></commentList></comments>'
    )
    thread = (
        '<ThreadedComments><threadedComment ref="A1"><text>Hot?</text></threadedComment>'
        '<threadedComment ref="A1"><text>No.</text></threadedComment>'
        '<threadedComment ref="A2"/></ThreadedComments>'
    )
    parts = {"n": ("comments", "../notes.xml"), "t": ("threadedComment", "../thread.xml")}
    extra = {
        "xl/worksheets/_rels/s0.xml.rels": relations(parts),
        "xl/notes.xml": notes,
        "xl/thread.xml": thread,
    }
    data = xlsx({"S": "<row><c><v>1</v></c></row>"}, **extra)
    assert read_one(tmp_path, "a.xlsx", data) == "1\n\nA1: Hot?\n\nA1: No.\n\nB1: A note"


def test_what_lies_on_a_sheet_is_read_and_the_values_of_charts_are_not(tmp_path: Path) -> None:
    drawing = (
        '<xdr:wsDr xmlns:xdr="urn:x" xmlns:a="urn:a" xmlns:c="urn:c" xmlns:r="urn:r">'
        "<xdr:sp><xdr:txBody><a:p><a:r><a:t>Draft</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
        '<xdr:graphicFrame><c:chart r:id="c"/></xdr:graphicFrame></xdr:wsDr>'
    )
    chart = (
        '<c:chartSpace xmlns:c="urn:c" xmlns:a="urn:a"><c:title><a:p><a:r><a:t>By year</a:t>'
        "</a:r></a:p></c:title><c:numCache><c:pt><c:v>1</c:v></c:pt></c:numCache></c:chartSpace>"
    )
    extra = {
        "xl/worksheets/_rels/s0.xml.rels": relations({"d": ("drawing", "../drawing.xml")}),
        "xl/drawing.xml": drawing,
        "xl/_rels/drawing.xml.rels": relations({"c": ("chart", "chart.xml")}),
        "xl/chart.xml": chart,
    }
    data = xlsx({"S": "<row><c><v>1</v></c></row>"}, **extra)
    assert read_one(tmp_path, "a.xlsx", data) == "1\n\nDraft\n\nBy year"
