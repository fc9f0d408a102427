"""Web pages: numbers, equations and readings as a browser shows them, and what only styles part."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.domain.documents import Heading
from tests.fakes.parser_files import read, read_one


def _text(folder: Path, body: str) -> str:
    return read_one(folder, "a.html", f"<html><body>{body}</body></html>")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<ol start=3><li>a</li><li value=9>b</li><li>c</li></ol>", "3. a\n9. b\n10. c"),
        ("<ol type=a><li>x</li></ol><ol type=I start=4><li>y</li></ol>", "a. x\nIV. y"),
        ("<ol start=x><li><p>a</p><p>b</p></li></ol>", "1. a\n\nb"),
        ("<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>", "1. a\nb\n2. c"),
        ("<ol><li></li></ol><p>text</p>", "text"),
        ("<ol style='list-style: none'><li>a</li></ol>", "a"),
        ("<nav><ol><li>Home</ol></nav></nav><ol><li>a</ol>", "Home\n1. a"),
        ("<li>a</li></ol></ul>", "a"),
        ("<table><tr><td><ol><li>a</li><li>b</li></ol></td><td>c</td></tr></table>",
         "1. a 2. b | c"),
    ],
)  # fmt: skip
def test_items_of_a_list_have_their_numbers(body: str, shown: str, tmp_path: Path) -> None:
    assert _text(tmp_path, body) == shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("10<sup>6</sup> m<sup>2</sup>, the 1<sup>st</sup>", "10⁶ m², the 1st"),
        ("as said<sup><a href=#n1>1</a></sup>.", "as said¹."),
        ("x<sup>2<p>y", "x2\n\ny"),
        ("<ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>です", "東京です"),
        ("<ruby>東<rt>とう<rb>京<rt>きょう</ruby>です", "東京です"),
        ("東<rt>とう<p>京", "東\n\n京"),
        ("<p>Name<input><select><option>A</select>B", "Name\n\nA B"),
        ("a</sup></math></rt>b", "ab"),
    ],
)
def test_what_stands_above_the_line_is_no_part_of_what_stands_on_it(
    body: str, shown: str, tmp_path: Path
) -> None:
    assert _text(tmp_path, body) == shown


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", "1/2"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>", "(a+b)/2"),
        ("<msup><mi>x</mi><mn>2</mn></msup>", "x^2"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x_1^2"),
        ("<msqrt><mn>16</mn></msqrt><mo>=</mo><mn>4</mn>", "√(16)=4"),
        ("<mtable><mtr><mtd>1</mtd><mtd>0</mtd></mtr><mtr><mtd>2</mtd></mtr></mtable>", "1, 0; 2"),
        ("<semantics><mn>1</mn><annotation>\\frac12</annotation></semantics>", "1"),
        ("</mfrac><mn>1</mn>", "1"),
        ("<mrow>" * 300 + "x", "x"),
    ],
)
def test_equations_keep_what_their_shape_says(inner: str, shown: str, tmp_path: Path) -> None:
    assert _text(tmp_path, f"<math>{inner}</math>") == shown


def test_an_equation_that_katex_shows_is_there_once(tmp_path: Path) -> None:
    body = (
        '<span class="katex"><span class="katex-mathml"><math><mi>x</mi></math></span>'
        '<span class="katex-html" aria-hidden="true"><span>x</span></span></span> is known'
    )
    assert _text(tmp_path, body) == "x is known"


def test_a_heading_may_have_blocks_in_it(tmp_path: Path) -> None:
    page = "<h1><div>Title</div></h1><p>Text</p><h2> <p>Part</p><p>more</p></h2><h3></h3><p>End"
    (document,) = read(tmp_path, "a.html", page).documents
    assert document.text == "Title\n\nText\n\nPart\n\nmore\n\nEnd"
    assert document.headings == (Heading(0, 1, "Title"), Heading(13, 2, "Part"))


def test_a_table_that_is_said_to_be_layout_is_none(tmp_path: Path) -> None:
    page = (
        '<table role="presentation"><tr><td><h1>News</h1><p>One.</p></td><td>Two.</td></tr>'
        "<tr><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>"
    )
    (document,) = read(tmp_path, "a.html", page).documents
    assert document.text == "News\n\nOne.\n\nTwo.\n\na | b"
    assert [heading.title for heading in document.headings] == ["News"]
