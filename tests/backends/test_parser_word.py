"""Word documents as people have them: numbered, with equations, frames, forms and redlines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privategpt.domain.documents import Heading
from tests.fakes.parser_files import (
    core_properties,
    docx,
    read,
    read_one,
    relations,
    word_paragraph,
    zipped,
)

_NUMBERING = (
    '<w:abstractNum w:abstractNumId="7">'
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:pStyle w:val="H1"/>'
    '<w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>'
    '<w:lvlText w:val="%1.%2)"/></w:lvl>'
    '<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:isLgl/>'
    '<w:lvlText w:val="%1.%2.%3"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/>'
    '<w:lvlText w:val="o"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="9"><w:numStyleLink w:val="Steps"/></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="10"><w:styleLink w:val="Steps"/><w:lvl w:ilvl="0">'
    '<w:start w:val="4"/><w:numFmt w:val="{form}"/><w:lvlText w:val="Step %1:"/></w:lvl>'
    "</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0">'
    '<w:startOverride w:val="1"/></w:lvlOverride></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="8"/></w:num>'
    '<w:num w:numId="4"><w:abstractNumId w:val="9"/></w:num>'
    '<w:num w:numId="5"><w:abstractNumId w:val="404"/></w:num>'
)
_STYLES = (
    '<w:style w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/>'
    "</w:numPr></w:pPr></w:style>"
    '<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="H1"/></w:style>'
    '<w:style w:styleId="Loop"><w:name w:val="x"/><w:basedOn w:val="Loop"/></w:style>'
)


def _item(text: str, number: int, level: int = 0, more: str = "") -> str:
    return (
        f'<w:p><w:pPr>{more}<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
        f"</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
    )


def _numbered(body: str, form: str = "decimal") -> bytes:
    return docx(body, numbering=_NUMBERING.replace("{form}", form), styles=_STYLES)


def test_paragraphs_have_the_numbers_that_word_writes_before_them(tmp_path: Path) -> None:
    body = (
        word_paragraph("Scope", "H1") + _item("first", 1, 1) + word_paragraph("Between")
        + _item("second", 1, 1) + _item("below", 1, 2) + _item("bullet", 3) + _item("unknown", 5)
        + word_paragraph("Terms", "Own") + _item("again", 1, 1) + word_paragraph("x", "Loop")
        + _item("anew", 2) + _item("goes on", 2) + _item("none", 0) + _item("", 2)
        + _item("after one that is empty", 2)
        + f"<w:tbl><w:tr><w:tc>{_item('cell', 4)}</w:tc><w:tc>{word_paragraph('y')}</w:tc></w:tr>"
        + "</w:tbl>"
    )  # fmt: skip
    (document,) = read(tmp_path, "a.docx", _numbered(body)).documents
    assert document.text.split("\n\n") == [
        "1. Scope", "1.a) first", "Between", "1.b) second", "1.2.1 below", "bullet", "unknown",
        "2. Terms", "2.a) again", "x", "1. anew", "2. goes on", "none",
        "4. after one that is empty", "Step 4: cell | y",
    ]  # fmt: skip
    assert document.headings[:1] == (Heading(start=0, level=1, title="1. Scope"),)


@pytest.mark.parametrize(
    ("form", "numerals"),
    [
        ("decimalZero", ("04", "05")),
        ("upperRoman", ("IV", "V")),
        ("lowerRoman", ("iv", "v")),
        ("upperLetter", ("D", "E")),
        ("chineseCountingThousand", ("四", "五")),
        ("cardinalText", ("4", "5")),
        ("none", ()),
    ],
)
def test_numbers_are_written_as_their_list_says(
    form: str, numerals: tuple[str, ...], tmp_path: Path
) -> None:
    text = read_one(tmp_path, "a.docx", _numbered(_item("x", 4) + _item("y", 4), form))
    labels = [f"Step {numeral}: " for numeral in numerals] or ["", ""]
    assert text == f"{labels[0]}x\n\n{labels[1]}y"


def _math(inner: str) -> str:
    return f'<w:p xmlns:m="urn:m"><m:oMath>{inner}</m:oMath></w:p>'


def _run(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        ("<m:f><m:num>«1»</m:num><m:den>«2»</m:den></m:f>", "1/2"),
        ("<m:f><m:fPr/><m:num>«1+2»</m:num><m:den>«2»</m:den></m:f>", "(1+2)/2"),
        ("<m:sSup><m:e>«1»</m:e><m:sup>«2»</m:sup></m:sSup>", "1²"),
        ("<m:sSup><m:e>«1»</m:e><m:sup>«n+2»</m:sup></m:sSup>", "1^(n+2)"),
        ("<m:sSub><m:e>«x»</m:e><m:sub>«1»</m:sub></m:sSub>", "x_1"),
        ("<m:rad><m:deg/><m:e>«1+2»</m:e></m:rad>", "√(1+2)"),
        ("<m:rad><m:deg>«2»</m:deg><m:e>«1»</m:e></m:rad>", "²√1"),
        ("<m:d><m:e>«1+2»</m:e></m:d>", "(1+2)"),
        ('<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val=""/></m:dPr><m:e>«1»</m:e></m:d>', "[1"),
        (
            '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>«i=1»</m:sub><m:sup>«n»</m:sup>'
            "<m:e>«i»</m:e></m:nary>",
            "∑_(i=1)^n i",
        ),
        ("<m:func><m:fName>«sin»</m:fName><m:e>«x»</m:e></m:func>", "sin x"),
        (
            "<m:m><m:mr><m:e>«1»</m:e><m:e>«2»</m:e></m:mr><m:mr><m:e>«x»</m:e></m:mr></m:m>",
            "1, 2; x",
        ),
        ("<m:eqArr><m:e>«1»</m:e><m:e>«2»</m:e></m:eqArr>", "1; 2"),
    ],
)
def test_equations_keep_what_their_shape_says(inner: str, shown: str, tmp_path: Path) -> None:
    equation = re.sub("«(.*?)»", lambda match: _run(match[1]), inner)
    assert read_one(tmp_path, "a.docx", docx(_math(equation))) == shown.strip()


def test_raised_numbers_are_no_digits_of_the_number_before_them(tmp_path: Path) -> None:
    def run(text: str, place: str) -> str:
        properties = f'<w:rPr><w:vertAlign w:val="{place}"/></w:rPr>'
        return f"<w:r>{properties}<w:t>{text}</w:t></w:r>"

    up, down = "superscript", "subscript"
    body = (
        f"<w:p><w:r><w:t>10</w:t></w:r>{run('-6', up)}<w:r><w:t> m</w:t></w:r>{run('2', up)}"
        f"<w:r><w:t>, the 1</w:t></w:r>{run('st', up)}<w:r><w:t> of CO</w:t></w:r>"
        f"{run('2', down)}</w:p>"
    )
    assert read_one(tmp_path, "a.docx", docx(body)) == "10⁻⁶ m², the 1st of CO2"


def test_symbols_and_boxes_of_forms_are_shown(tmp_path: Path) -> None:
    def sign(font: str, code: str) -> str:
        return f'<w:sym w:font="{font}" w:char="{code}"/>'

    def box(inner: str) -> str:
        return f'<w:fldChar w:fldCharType="begin"><w:ffData>{inner}</w:ffData></w:fldChar>'

    signs = (
        sign("Symbol", "F061") + sign("Wingdings", "F0FE") + sign("Wingdings", "00A8")
        + sign("Wingdings 2", "F052") + sign("Segoe UI", "2713") + sign("Webdings", "F041")
        + sign("Symbol", "none")
        + box('<w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>')
        + box('<w:checkBox><w:default w:val="0"/></w:checkBox>')
        + box("<w:checkBox/>")
        + box('<w:ddList><w:result w:val="1"/><w:listEntry w:val="no"/><w:listEntry w:val="yes"/>'
              "</w:ddList>")
        + box('<w:ddList><w:default w:val="9"/></w:ddList>') + box("<w:textInput/>")
    )  # fmt: skip
    text = read_one(tmp_path, "a.docx", docx(f"<w:p><w:r>{signs}</w:r></w:p>"))
    assert text == "α☑☐☑✓☒☐☐yes"


def test_a_paragraph_whose_end_is_deleted_runs_on_into_the_next(tmp_path: Path) -> None:
    gone = "<w:rPr><w:del/></w:rPr>"
    body = (
        f"<w:p><w:pPr>{gone}</w:pPr><w:r><w:t>One </w:t></w:r></w:p>"
        + word_paragraph("sentence.")
        + f"<w:p><w:pPr>{gone}</w:pPr><w:r><w:t>Last</w:t></w:r></w:p>"
    )
    assert read_one(tmp_path, "a.docx", docx(body)) == "One sentence.\n\nLast"


def _cell(*blocks: str) -> str:
    return f"<w:tc>{''.join(blocks)}</w:tc>"


def _table(*rows: str) -> str:
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"


def test_a_table_that_is_a_frame_around_text_is_read_as_text(tmp_path: Path) -> None:
    p = word_paragraph
    frame = _table(_cell(p("Warning", "H1"), p("Do not open.")))
    inner = _table(_cell(p("a" * 9)) + _cell(p("b")), _cell(p("c" * 9)) + _cell(p("d")))
    layout = _table(_cell(p("Left")) + _cell(inner))
    body = frame + p("Between") + layout
    (document,) = read(tmp_path, "a.docx", docx(body, styles=_STYLES)).documents
    assert document.text.split("\n\n") == [
        "Warning", "Do not open.", "Between", "Left", "aaaaaaaaa | b\nccccccccc | d",
    ]  # fmt: skip
    assert [heading.title for heading in document.headings] == ["Warning"]


def test_a_small_table_in_a_cell_does_not_break_the_table_around_it(tmp_path: Path) -> None:
    p = word_paragraph
    inner = _table(_cell(p("1")) + _cell(p("2")))
    body = _table(_cell(p("Sizes of the drill")) + _cell(inner), _cell(p("Weight")) + _cell(p("3")))
    assert read_one(tmp_path, "a.docx", docx(body)) == "Sizes of the drill | 1 2\nWeight | 3"


_GRAPHIC = (
    '<w:p><w:r><w:t>Sales</w:t></w:r><w:r><w:drawing><a:graphic xmlns:a="urn:a">'
    '<a:graphicData><c:chart xmlns:c="urn:c" xmlns:r="urn:r" r:id="ch"/></a:graphicData>'
    "</a:graphic></w:drawing></w:r></w:p>"
)
_CHART = (
    '<c:chartSpace xmlns:c="urn:c" xmlns:a="urn:a"><c:title><a:p><a:r><a:t>By year</a:t></a:r>'
    "</a:p></c:title><c:strCache><c:pt><c:v>2023</c:v></c:pt><c:pt><c:v>2024</c:v></c:pt>"
    "</c:strCache></c:chartSpace>"
)


def _with_parts(body: str, targets: dict[str, tuple[str, str]], **members: str) -> bytes:
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r"'
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r0": ("officeDocument", "word/document.xml")}),
            "word/document.xml": f"<w:document {w}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(targets),
            **{f"word/{name.replace('_', '.')}": text for name, text in members.items()},
        }
    )


def test_a_chart_follows_its_paragraph(tmp_path: Path) -> None:
    data = _with_parts(
        _GRAPHIC + word_paragraph("End"), {"ch": ("chart", "chart.xml")}, chart_xml=_CHART
    )
    assert read_one(tmp_path, "a.docx", data) == "Sales\n\nBy year\n2023 | 2024\n\nEnd"


_PAGE = "<h1>Minutes</h1><p>All agreed.</p>"
_MAIL = (
    "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n"
    f"--b\nContent-Type: text/html; charset=utf-8\n\n{_PAGE}\n--b--\n"
)


@pytest.mark.parametrize(("name", "page"), [("page.html", _PAGE), ("page.mht", _MAIL)])
def test_a_web_page_put_into_a_document_is_its_text(name: str, page: str, tmp_path: Path) -> None:
    body = '<w:altChunk r:id="page"/><w:altChunk r:id="missing"/>' + word_paragraph("Signed")
    data = _with_parts(body, {"page": ("aFChunk", name)}, **{name.replace(".", "_"): page})
    (document,) = read(tmp_path, "a.docx", data).documents
    assert document.text == "Minutes\n\nAll agreed.\n\nSigned"
    assert document.headings == (Heading(start=0, level=1, title="Minutes"),)


@pytest.mark.parametrize(
    ("author", "created", "metadata"),
    [
        ("python-docx", "2013-12-23T23:15:00Z", {}),
        ("An Office", "2013-12-24T08:00:00Z", {"author": "An Office", "year": 2013}),
    ],
)
def test_what_a_library_says_of_its_template_is_not_said_of_the_document(
    author: str, created: str, metadata: dict[str, object], tmp_path: Path
) -> None:
    data = docx(word_paragraph("x"), core=core_properties("", author, created))
    assert read(tmp_path, "a.docx", data).metadata == metadata
