"""Office documents: everything a reader sees, in the order they see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.domain.documents import Heading
from privategpt.domain.errors import CorruptFile, EncryptedFile, FileExceedsBounds
from tests.fakes.parser_files import (
    core_properties,
    docx,
    opendocument,
    read,
    read_one,
    relations,
    word_paragraph,
    xlsx,
    zipped,
)

_TABLE = (
    "<w:tbl><w:tblPr/><w:tr><w:tc><w:p><w:r><w:t>A1</w:t></w:r></w:p></w:tc>"
    "<w:sdt><w:sdtContent><w:tc><w:p><w:r><w:t>B1</w:t></w:r></w:p></w:tc></w:sdtContent></w:sdt>"
    "</w:tr><w:sdt><w:sdtContent><w:tr><w:tc><w:p><w:r><w:t>A2</w:t></w:r></w:p></w:tc><w:tc>"
    "<w:sdt><w:sdtContent><w:p><w:r><w:t>B2</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>inner</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:tc></w:tr>"
    "</w:sdtContent></w:sdt><w:tr><w:trPr><w:del/></w:trPr><w:tc>"
    "<w:p><w:r><w:t>deleted row</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
)


def test_a_table_stands_between_its_paragraphs_cells_and_rows_apart(tmp_path: Path) -> None:
    body = word_paragraph("before") + _TABLE + word_paragraph("after")
    assert read_one(tmp_path, "a.docx", docx(body)) == "before\n\nA1 | B1\nA2 | B2 inner\n\nafter"


def test_a_cell_that_is_merged_to_the_right_has_all_its_columns(tmp_path: Path) -> None:
    def row(*cells: tuple[str, str]) -> str:
        texts = (
            f"<w:tc><w:tcPr>{merged}</w:tcPr>{word_paragraph(text)}</w:tc>"
            for text, merged in cells
        )
        return f"<w:tr>{''.join(texts)}</w:tr>"

    down = "<w:vMerge/>"
    head = row(("Year", down), ("Sold", '<w:gridSpan w:val="2"/>'), ("Left", ""))
    body = row(("", down), ("here", ""), ("there", ""), ("3", ""))
    data = docx(f"<w:tbl>{head}{body}</w:tbl>")
    assert read_one(tmp_path, "a.docx", data) == "Year | Sold |  | Left\n| here | there | 3"


def test_tracked_insertions_count_and_deletions_and_hidden_text_do_not(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>kept </w:t></w:r><w:ins><w:r><w:t>new </w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>old</w:delText><w:t>old</w:t></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>shown</w:t></w:r>'
        "<w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
    )
    assert read_one(tmp_path, "a.docx", docx(body)) == "kept new shown"


def test_characters_that_are_elements_become_characters(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/>"
        "<w:t>d</w:t><w:softHyphen/><w:t>e</w:t></w:r></w:p>"
    )
    assert read_one(tmp_path, "a.docx", docx(body)) == "a\tb\nc‑de"


def test_notes_and_comments_follow_the_paragraph_that_refers_to_them(tmp_path: Path) -> None:
    body = (
        '<w:p><w:r><w:t>Text.</w:t><w:footnoteReference w:id="2"/><w:endnoteReference w:id="3"/>'
        '<w:commentReference w:id="0"/><w:commentReference w:id="1"/>'
        '<w:footnoteReference w:id="9"/></w:r></w:p>' + word_paragraph("Next.")
    )
    footnotes = (
        '<w:footnote w:id="0" w:type="separator"><w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>'
        f'<w:footnote w:id="2">{word_paragraph("A note.")}</w:footnote>'
    )
    endnotes = f'<w:endnote w:id="3">{word_paragraph("The end.")}</w:endnote>'
    comments = (
        f'<w:comment w:id="0" w:author="Ed">{word_paragraph("Really?")}</w:comment>'
        f'<w:comment w:id="1">{word_paragraph("Yes.")}</w:comment>'
    )
    data = docx(body, footnotes=footnotes, endnotes=endnotes, comments=comments)
    assert read_one(tmp_path, "a.docx", data).split("\n\n") == [
        "Text.",
        "A note.",
        "The end.",
        "Comment by Ed: Really?",
        "Comment: Yes.",
        "Next.",
    ]


def test_text_boxes_count_once_and_headers_once(tmp_path: Path) -> None:
    box = "<w:txbxContent>" + word_paragraph("in the box") + "</w:txbxContent>"
    body = (
        '<w:p><w:r><w:t>Text</w:t><mc:AlternateContent xmlns:mc="urn:mc"><mc:Choice><x>'
        + box
        + "</x></mc:Choice><mc:Fallback><w:pict>"
        + box
        + "</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"
        + "<w:p><w:r><w:pict>"
        + box.replace("in the", "old")
        + "</w:pict></w:r></w:p>"
    )
    data = docx(body, header=word_paragraph("Letterhead"), footer=word_paragraph("1"))
    assert read_one(tmp_path, "a.docx", data) == "Text\n\nin the box\n\nold box\n\nLetterhead"


def test_headings_come_from_styles_and_outline_levels(tmp_path: Path) -> None:
    styles = (
        '<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H1"/></w:style>'
        '<w:style w:styleId="Loop"><w:basedOn w:val="Loop2"/></w:style>'
        '<w:style w:styleId="Loop2"><w:basedOn w:val="Loop"/></w:style>'
        '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="B"><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>'
    )
    body = (
        word_paragraph("Title", "T")
        + word_paragraph("One", "Mine")
        + word_paragraph("body", "Loop")
        + word_paragraph("body", "B")
        + '<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>Deep</w:t></w:r></w:p>'
        + "<w:p><w:pPr/><w:r><w:t>end</w:t></w:r></w:p>"
        + word_paragraph("", "H1")
    )
    core = core_properties("A plan", "The Office", "2020-02-03T00:00:00Z")
    parsed = read(tmp_path, "a.docx", docx(body, styles=styles, core=core))
    assert parsed.metadata == {"title": "A plan", "author": "The Office", "year": 2020}
    assert parsed.documents[0].headings == (
        Heading(start=0, level=1, title="Title"),
        Heading(start=7, level=1, title="One"),
        Heading(start=24, level=3, title="Deep"),
    )


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "lacks its part"),
        ({"word/document.xml": "<open>"}, "not well-formed"),
        (
            {"word/document.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>before &a; after</x>'},
            "document type",
        ),
    ],
)
def test_a_word_document_with_a_bad_part_is_corrupt(
    members: dict[str, str], reason: str, tmp_path: Path
) -> None:
    data = zipped({"[Content_Types].xml": "", "word/x.xml": "", **members})
    with pytest.raises(CorruptFile, match=reason):
        read(tmp_path, "a.docx", data)


def test_a_damaged_member_is_corrupt(tmp_path: Path) -> None:
    body = word_paragraph("some text that is long enough " * 20)
    data = bytearray(docx(body))
    start = data.find(b"word/document.xml") + len(b"word/document.xml") + 10
    data[start : start + 20] = b"\xff" * 20
    with pytest.raises(CorruptFile, match="damaged"):
        read(tmp_path, "a.docx", bytes(data))


def test_an_encrypted_zip_member_is_called_encrypted(tmp_path: Path) -> None:
    data = bytearray(docx(word_paragraph("x")))
    for position in range(len(data)):
        if data.startswith(b"PK\x01\x02", position):
            data[position + 8] |= 1
    with pytest.raises(EncryptedFile):
        read(tmp_path, "a.docx", bytes(data))


def test_sheets_are_documents_with_values_as_shown(tmp_path: Path) -> None:
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm"/>'
        '<numFmt numFmtId="165" formatCode="0.0%"/><numFmt numFmtId="166" formatCode="hh:mm"/>'
        '<numFmt numFmtId="167" formatCode="&quot;days&quot; 0.00;x"/></numFmts><cellXfs>'
        + "".join(f'<xf numFmtId="{n}"/>' for n in (0, 164, 165, 166, 167, 9, 14, 22, 20, "x"))
        + "</cellXfs>"
    )
    strings = (
        "<si><t>Na</t><rPh><t>phonetic</t></rPh><r><t>me</t></r></si>"
        '<si><t xml:space="preserve"> two\nlines </t></si>'
    )
    sheet = (
        '<row r="2"><c r="B2" t="s"><v>0</v></c><c r="C2" t="s"><v>1</v></c>'
        '<c r="D2" t="s"><v>99</v></c><c r="E2" t="inlineStr"><is><t>inline</t></is></c></row>'
        '<row><c t="b"><v>1</v></c><c t="b"><v>0</v></c><c t="b"/><c t="e"><v>#REF!</v></c></row>'
        '<row r="5"><c r="C5"><f>6*7</f><v>42</v></c><c r="F5" t="str"><f>x</f><v>text</v></c>'
        "</row><row><c><v>0.30000000000000004</v></c><c><v>odd</v></c><c><v> </v></c></row>"
        '<row><c s="1"><v>44197</v></c><c s="2"><v>0.025</v></c><c s="3"><v>0.5</v></c>'
        '<c s="4"><v>1.50</v></c><c s="5"><v>0.02</v></c><c s="6"><v>44197</v></c>'
        '<c s="7"><v>44197.75</v></c><c s="8"><v>1.25</v></c><c s="9"><v>7</v></c>'
        '<c s="77"><v>8</v></c><c s="6"><v>-5</v></c></row>'
    )
    data = xlsx({"First": sheet, "Empty": "", "Last": "<row><c><v>1</v></c></row>"},
                strings=strings, styles=styles)  # fmt: skip
    parsed = read(tmp_path, "a.xlsx", data)
    assert [document.page_label for document in parsed.documents] == ["First", "Last"]
    assert parsed.documents[0].text.split("\n") == [
        "| Name | two lines |  | inline",
        "TRUE | FALSE |  | #REF!",
        "|  | 42 |  |  | text",
        "0.3 | odd",
        "2021-01-01 | 2.5% | 12:00:00 | days 1.50 | 2% | 2021-01-01 | 2021-01-01 18:00:00 |"
        " 06:00:00 | 7 | 8 | -5",
    ]


def test_a_value_far_to_the_right_does_not_draw_a_line_of_blanks(tmp_path: Path) -> None:
    sheet = '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c></row>'
    assert len(read_one(tmp_path, "a.xlsx", xlsx({"S": sheet}))) < 120


def test_notes_on_cells_follow_their_sheet(tmp_path: Path) -> None:
    comments = (
        '<comments xmlns="urn:s"><commentList><comment ref="A1"><text><t>Check this</t></text>'
        '</comment><comment ref="A2"><text><t> </t></text></comment></commentList></comments>'
    )
    extra = {
        "xl/worksheets/_rels/s0.xml.rels": relations({"c": ("comments", "../comments.xml")}),
        "xl/comments.xml": comments,
    }
    data = xlsx({"S": "<row><c><v>1</v></c></row>"}, **extra)
    assert read_one(tmp_path, "a.xlsx", data) == "1\n\nA1: Check this"


def test_a_workbook_counts_days_from_1904_where_it_says_so(tmp_path: Path) -> None:
    sheet = '<row><c s="0"><v>1</v></c></row>'
    workbook = (
        '<workbook xmlns="urn:s" xmlns:r="urn:r"><workbookPr date1904="1"/><sheets>'
        '<sheet name="S" r:id="r0"/><sheet name="gone" r:id="r9"/></sheets></workbook>'
    )
    styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    data = xlsx({"S": sheet}, styles=styles, **{"xl/workbook.xml": workbook})
    assert read_one(tmp_path, "a.xlsx", data) == "1904-01-02"


def _pptx() -> bytes:
    def shape(text: str, kind: str = "") -> str:
        place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
        paragraphs = f"<a:p><a:r><a:rPr/><a:t>{text}</a:t></a:r></a:p>"
        return f"<p:sp>{place}<p:txBody>{paragraphs}</p:txBody></p:sp>"

    def slide(shapes: str) -> str:
        spaces = 'xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="urn:r" xmlns:c="urn:c"'
        return f"<p:sld {spaces}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"

    field = (
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="dt"/></p:nvPr></p:nvSpPr><p:txBody><a:p>'
        "<a:fld><a:t>1.1.2020</a:t></a:fld></a:p></p:txBody></p:sp>"
    )
    table = (
        "<p:graphicFrame><a:tbl><a:tr><a:tc><p:txBody><a:p><a:r><a:t>A1</a:t></a:r></a:p>"
        "</p:txBody></a:tc><a:tc><p:txBody><a:p><a:r><a:t>B1</a:t></a:r><a:br/><a:r><a:t>x</a:t>"
        "</a:r></a:p></p:txBody></a:tc><a:tc/></a:tr></a:tbl></p:graphicFrame>"
    )
    chart = '<p:graphicFrame><c:chart r:id="ch"/></p:graphicFrame>'
    grouped = f"<p:grpSp>{shape('in a group')}</p:grpSp>"
    alternate = (
        '<m:AlternateContent xmlns:m="urn:m"><m:Choice>' + shape("chosen") + "</m:Choice>"
        "<m:Fallback>" + shape("not chosen") + "</m:Fallback></m:AlternateContent>"
        '<m:AlternateContent xmlns:m="urn:m"/>'
    )
    first = (
        shape("body text") + shape("The title", "title") + shape("7", "sldNum") + field
        + table + chart + grouped + alternate + "<p:sp/>"
    )  # fmt: skip
    chart_xml = (
        '<c:chart xmlns:c="urn:c" xmlns:a="urn:a"><a:p><a:r><a:t>Sales</a:t></a:r></a:p><a:p/>'
        "<c:strCache><c:pt><c:v>Q1</c:v></c:pt><c:pt><c:v>Q2</c:v></c:pt></c:strCache>"
        "<c:numCache/></c:chart>"
    )
    return zipped(
        {
            "[Content_Types].xml": "",
            "ppt/presentation.xml": '<p:presentation xmlns:p="urn:p" xmlns:r="urn:r"><p:sldIdLst>'
            '<p:sldId id="256" r:id="s2"/><p:sldId id="257" r:id="s1"/>'
            '<p:sldId id="258" r:id="s3"/>'
            '<p:sldId id="259" r:id="gone"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": relations(
                {f"s{n}": ("slide", f"slides/{n}.xml") for n in (1, 2, 3)}
            ),
            "ppt/slides/1.xml": slide(first),
            "ppt/slides/2.xml": slide(shape("Opening")),
            "ppt/slides/3.xml": '<p:sld xmlns:p="urn:p"/>',
            "ppt/slides/_rels/1.xml.rels": relations(
                {
                    "ch": ("chart", "../charts/c.xml"),
                    "n": ("notesSlide", "../notes.xml"),
                    "co": ("comments", "../comments.xml"),
                }
            ),
            "ppt/charts/c.xml": chart_xml,
            "ppt/notes.xml": slide(shape("say this", "body") + shape("9", "sldNum")),
            "ppt/comments.xml": '<p:l xmlns:p="urn:p"><p:text>a remark</p:text><p:text/></p:l>',
        }
    )


def test_raised_numbers_equations_and_newer_comments_of_slides_are_read(tmp_path: Path) -> None:
    slide = (
        '<sld xmlns:a="urn:a" xmlns:m="urn:m"><cSld><spTree><sp><txBody><a:p>'
        '<a:r><a:t>10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>6</a:t></a:r>'
        '<a:r><a:rPr baseline="-25000"/><a:t>2</a:t></a:r><a:r><a:rPr baseline="0"/><a:t> 3</a:t>'
        "</a:r><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r>"
        "</m:den></m:f></m:oMath></a:p></txBody></sp></spTree></cSld></sld>"
    )
    thread = (
        '<cmLst xmlns:a="urn:a"><cm><txBody><a:p><a:r><a:t>Sure?</a:t></a:r></a:p></txBody>'
        "<replyLst><reply><txBody><a:p><a:r><a:t>Yes.</a:t></a:r></a:p></txBody></reply></replyLst>"
        "</cm></cmLst>"
    )
    data = zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "ppt/presentation.xml": '<p xmlns:r="urn:r"><sldId id="1" r:id="a"/></p>',
            "ppt/_rels/presentation.xml.rels": relations({"a": ("slide", "slide.xml")}),
            "ppt/slide.xml": slide,
            "ppt/_rels/slide.xml.rels": relations({"c": ("comments", "thread.xml")}),
            "ppt/thread.xml": thread,
        }
    )
    assert read_one(tmp_path, "a.pptx", data) == "10⁶2 31/2\n\nSure?\n\nYes."


def test_slides_are_documents_in_the_order_of_the_show(tmp_path: Path) -> None:
    first, second = read(tmp_path, "a.pptx", _pptx()).documents
    assert (first.text, first.page_label) == ("Opening", "1")
    assert second.page_label == "2"
    assert second.text.split("\n\n") == [
        "body text",
        "The title",
        "A1 | B1 x",
        "Sales\nQ1 | Q2",
        "in a group",
        "chosen",
        "say this",
        "a remark",
    ]
    assert second.headings == (Heading(start=11, level=1, title="The title"),)


_ODT = (
    "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
    '<text:h text:outline-level="2">Head<text:note><text:note-citation>1</text:note-citation>'
    "<text:note-body><text:p>The note</text:p></text:note-body></text:note>ing</text:h>"
    '<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d<text:span>e</text:span>f'
    "<office:annotation><dc:creator>Ed</dc:creator><text:p>remark</text:p></office:annotation>"
    "<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame></text:p>"
    "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
)


def test_an_opendocument_text_has_its_notes_boxes_and_lists(tmp_path: Path) -> None:
    meta = (
        '<o xmlns:meta="urn:m" xmlns:dc="urn:dc"><dc:title>T</dc:title>'
        "<meta:initial-creator>A</meta:initial-creator><dc:creator>B</dc:creator>"
        "<meta:creation-date>2019-01-01</meta:creation-date></o>"
    )
    parsed = read(tmp_path, "a.odt", opendocument("text", _ODT, **{"meta.xml": meta}))
    (document,) = parsed.documents
    assert document.text.split("\n\n") == [
        "Heading",
        "The note",
        "a   b\tc\ndef",
        "Comment by Ed: remark",
        "boxed",
        "item",
    ]
    assert document.headings == (Heading(start=0, level=2, title="Heading"),)
    assert parsed.metadata == {"title": "T", "author": "A", "year": 2019}


def test_opendocument_sheets_repeat_what_is_stored_once(tmp_path: Path) -> None:
    body = (
        '<table:table table:name="Ducks"><table:table-column/>'
        '<table:table-row table:number-rows-repeated="1048576"><table:table-cell/>'
        "</table:table-row>"
        "<table:table-header-rows><table:table-row><table:table-cell"
        ' table:number-columns-repeated="2"/><table:table-cell table:number-columns-repeated="2">'
        "<text:p>2</text:p></table:table-cell><table:table-cell><office:annotation>"
        "<text:p>note</text:p></office:annotation><text:list><text:p>x</text:p></text:list>"
        '</table:table-cell><table:table-cell table:number-columns-repeated="16000"/>'
        "</table:table-row></table:table-header-rows>"
        '<table:table-row table:number-rows-repeated="2"><table:table-cell/><table:table-cell/>'
        "<table:covered-table-cell><text:p>v</text:p></table:covered-table-cell><x/>"
        '</table:table-row></table:table><table:table table:name="None"/>'
    )
    (document,) = read(tmp_path, "a.ods", opendocument("spreadsheet", body)).documents
    assert document.page_label == "Ducks"
    assert document.text == "2 | 2 | x\nv\nv\n\nComment: note"


def test_opendocument_slides_are_numbered(tmp_path: Path) -> None:
    body = "".join(
        f"<draw:page>{page}</draw:page>"
        for page in ("<text:p>one</text:p>", "", "<text:p>three</text:p>")
    )
    parsed = read(tmp_path, "a.odp", opendocument("presentation", body))
    assert [(d.page_label, d.text) for d in parsed.documents] == [("1", "one"), ("3", "three")]


def test_a_sheet_that_repeats_a_value_for_ever_is_refused(tmp_path: Path) -> None:
    body = (
        '<table:table><table:table-row table:number-rows-repeated="1000000">'
        '<table:table-cell table:number-columns-repeated="1000"><text:p>x</text:p>'
        "</table:table-cell></table:table-row></table:table>"
    )
    with pytest.raises(FileExceedsBounds, match="cells"):
        read(tmp_path, "a.ods", opendocument("spreadsheet", body))


def test_an_encrypted_opendocument_is_called_encrypted(tmp_path: Path) -> None:
    manifest = '<m xmlns:m="urn:m"><m:entry><m:encryption-data/></m:entry></m>'
    data = opendocument("text", _ODT, **{"META-INF/manifest.xml": manifest})
    with pytest.raises(EncryptedFile):
        read(tmp_path, "a.odt", data)


def _epub(**members: str) -> bytes:
    opf = (
        '<package xmlns:dc="urn:dc"><metadata><dc:title>A book</dc:title><dc:creator>An author'
        "</dc:creator><dc:language>en</dc:language><dc:date>1913</dc:date></metadata><manifest>"
        '<item id="a" href="one%20a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="two.html" media-type="text/html"/>'
        '<item id="c" href="pic.png" media-type="image/png"/>'
        '<item id="d" href="blank.html" media-type="text/html"/>'
        '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '<item id="v" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        '<item id="w" href="gone.ncx" media-type="application/x-dtbncx+xml"/>'
        "</manifest><spine>"
        + "".join(f'<itemref idref="{i}"/>' for i in ("a", "b", "c", "d", "zz"))
        + "</spine></package>"
    )
    ncx = (
        "<ncx><navPoint><navLabel><text>From the ncx</text></navLabel>"
        '<content src="two.html#x"/></navPoint><navPoint/></ncx>'
    )
    nav = '<html><a href="one%20a.xhtml">From the nav</a></html>'
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<c><rootfile full-path="O/b.opf"/></c>',
            "O/b.opf": opf,
            "O/one a.xhtml": "<html><h2>Chapter</h2><p>Text one</p></html>",
            "O/two.html": "<p>Text two</p>",
            "O/blank.html": "<p/>",
            "O/toc.ncx": ncx,
            "O/nav.xhtml": nav,
            **members,
        }
    )


def test_a_book_is_read_along_its_spine_with_its_chapters(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.epub", _epub())
    first, second = parsed.documents
    assert first.text == "Chapter\n\nText one"
    assert first.headings == (Heading(start=0, level=2, title="Chapter"),)
    assert second.text == "Text two"
    assert second.headings == (Heading(start=0, level=1, title="From the ncx"),)
    assert parsed.metadata == {
        "title": "A book",
        "author": "An author",
        "year": 1913,
        "language": "en",
    }


def test_parts_of_a_book_may_name_a_document_type_but_not_define_one(tmp_path: Path) -> None:
    ncx = (
        '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "ncx-2005-1.dtd"><ncx><navPoint>'
        '<navLabel><text>Two</text></navLabel><content src="two.html"/></navPoint></ncx>'
    )
    container = "<!DOCTYPE container><c><rootfile full-path='O/b.opf'/></c>"
    members = {"O/toc.ncx": ncx, "META-INF/container.xml": container}
    _, second = read(tmp_path, "a.epub", _epub(**members)).documents
    assert [heading.title for heading in second.headings] == ["Two"]
    defined = "<!DOCTYPE c [<!ENTITY x 'y'>]><c><rootfile full-path='O/b.opf'/>&x;</c>"
    with pytest.raises(CorruptFile, match="document type"):
        read(tmp_path, "a.epub", _epub(**{"META-INF/container.xml": defined}))


def test_a_broken_table_of_contents_does_not_cost_the_book(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.epub", _epub(**{"O/toc.ncx": "<broken"}))
    assert [document.text for document in parsed.documents] == ["Chapter\n\nText one", "Text two"]


def test_a_book_under_rights_management_is_called_encrypted(tmp_path: Path) -> None:
    font = '<e><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></e>'
    assert read(tmp_path, "a.epub", _epub(**{"META-INF/encryption.xml": font})).documents
    locked = '<e><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></e>'
    with pytest.raises(EncryptedFile, match="rights"):
        read(tmp_path, "a.epub", _epub(**{"META-INF/encryption.xml": locked}))
