"""Fields, tags, lines and headers that are larger than any honest one."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.backends.parsers import cleaning, html_reader, mail, pdf
from privategpt.backends.parsers.bounds import MAX_PATH_CHARS, MAX_TITLE_CHARS
from privategpt.domain.errors import CorruptFile, FileExceedsBounds
from tests.fakes.parser_files import (
    docx,
    lines,
    pdf_of_pages,
    read,
    read_one,
    relations,
    zipped,
)

LONG = 200_000
"""Of what took time by its square: a thousand times as long as the whole test now."""


@pytest.mark.parametrize("tag", ["<div>", "<table>", "<svg>", "<!---->", "</p>", "<"])
def test_more_tags_than_any_page_has_are_refused(
    tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_reader, "MAX_XML_TAGS", 100)
    with pytest.raises(FileExceedsBounds, match="100 tags"):
        read(tmp_path, "a.html", "<html>" + tag * 100 + ">")


def test_more_character_references_than_any_page_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_reader, "MAX_ENTITIES", 100)
    with pytest.raises(FileExceedsBounds, match="references"):
        read(tmp_path, "a.html", "<p>" + "&am" * 101)


@pytest.mark.parametrize(
    "attribute", ["a ", "a/", "a=1 ", "a='' ", 'a=""', "a='>'", "a='a='", "<a ", "' a "]
)
def test_a_tag_of_more_attributes_than_any_has_is_refused(
    attribute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_reader, "MAX_ATTRIBUTES", 100)
    monkeypatch.setattr(html_reader, "_LONG_TAG", 100)
    with pytest.raises(FileExceedsBounds, match="attributes"):
        read(tmp_path, "a.html", f"<html><div x {attribute * 210}>x</div>")


def test_a_tag_with_a_picture_in_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_reader, "_LONG_TAG", 100)
    picture = "data:image/png;base64," + "iVBOR/w0KGgo/" * 20_000
    page = f'<html><img src="{picture}" alt="{"a plan of the house " * 1_000}"><p>Text</p>'
    assert read_one(tmp_path, "a.html", page).endswith("a plan of the house\n\nText")


@pytest.mark.parametrize("number", ["9" * 5_000, "x" + "f" * 5_000])
def test_a_number_that_no_character_has_costs_no_other_text(number: str, tmp_path: Path) -> None:
    page = f"<html><p title='&#{number}'>one &#{number}; two</p>"
    assert read_one(tmp_path, "a.html", page) == "one \ufffd two"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.html", "<html><h1>{}</h1>"),
        ("a.md", "# {}\n"),
        ("a.md", "{}\n---\n"),
    ],
)
def test_a_heading_is_kept_whole_and_noted_short(name: str, form: str, tmp_path: Path) -> None:
    title = "words " * 1_000
    (document,) = read(tmp_path, name, form.format(title)).documents
    assert title.strip() in document.text
    assert [heading.title for heading in document.headings] == [title[:MAX_TITLE_CHARS].strip()]


@pytest.mark.parametrize(("name", "heading"), [("a.html", "<h1>a</h1>"), ("a.md", "# a\n")])
def test_more_headings_than_any_document_has_are_refused(
    name: str, heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning, "MAX_HEADINGS", 10)
    assert len(read(tmp_path, name, heading * 10).documents[0].headings) == 10
    with pytest.raises(FileExceedsBounds, match="headings"):
        read(tmp_path, name, heading * 11)


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * LONG + "x",
        "# a" + " #" * LONG + "x",
        "# a" + "[" * LONG,
        "# a" + "[](" * LONG,
        "ab\n" * LONG + "---\n",
        "-" * LONG + " " * LONG + "x",
    ],
    ids=["blanks", "closing", "brackets", "links", "paragraph", "underline"],
)
def test_a_line_of_markdown_is_read_once(text: str, tmp_path: Path) -> None:
    assert read_one(tmp_path, "a.md", text).strip() == text.strip()


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# a", "a"),
        ("#  a  ##  ", "a"),
        ("# a#", "a#"),
        ("# a #b", "a #b"),
        ("### #", ""),
        ("##", ""),
        ("#a", ""),
        ("# **a** [b](c)", "a b"),
    ],
)
def test_what_closes_a_heading_is_no_part_of_it(line: str, title: str, tmp_path: Path) -> None:
    (document,) = read(tmp_path, "a.md", f"x\n\n{line}\n").documents
    assert [heading.title for heading in document.headings] == [title] * bool(title)


HEADERS = {
    "one": "X-A: " + "ab " * 400,
    "folded": "X-A: " + "ab\r\n " * 400,
    "many": "X-A: b\r\n" * 200,
    "mac": "X-A: b\r" * 200,
    "nameless": ": b\n" * 300,
    "from": "From a\nX-A: b\n" + "From b\n" * 200,
}
PARTS = "Content-Type: multipart/mixed; boundary=xx\r\n\r\n--xx\r\n{}\r\n\r\nHello\r\n--xx--"
CARRIED = "Content-Type: message/rfc822\r\n\r\n{}\r\n\r\nHello"


@pytest.mark.parametrize("place", ["{}\r\n\r\nHello", PARTS, CARRIED], ids=["own", "part", "inner"])
@pytest.mark.parametrize("kind", HEADERS)
def test_headers_of_more_bytes_than_any_mail_has_are_refused(
    kind: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_HEADER_BYTES", 1_000)
    start = "" if kind == "from" and place.startswith("{}") else "Subject: s\r\nFrom: a@b\r\n"
    with pytest.raises(FileExceedsBounds, match="headers"):
        read(tmp_path, "a.eml", start + place.format(HEADERS[kind]))


def test_more_headers_to_take_apart_than_any_mail_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_PARSED_HEADER_BYTES", 1_000)
    part = "--xx\r\nContent-Type: text/plain\r\n\r\nHello\r\n"
    start = "Subject: s\r\nContent-Type: multipart/mixed; boundary=xx\r\n\r\n"
    assert "Hello" in read_one(tmp_path, "a.eml", f"{start}{part * 30}--xx--")
    with pytest.raises(FileExceedsBounds, match="too many headers"):
        read(tmp_path, "a.eml", f"{start}{part * 40}--xx--")


def test_a_long_list_of_recipients_is_shown_decoded_and_cut(tmp_path: Path) -> None:
    names = ", ".join(f"=?utf-8?q?Z=C3=BC?= <z{n}@b.org>" for n in range(5_000))
    text = read_one(tmp_path, "a.eml", f"Subject: s\r\nTo: {names}\r\n\r\nHello")
    assert "To: Zü <z0@b.org>, Zü <z1@b.org>" in text
    assert len(text) < 21_000


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_more_lines_than_any_mail_has_are_refused(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_MAIL_LINES", 100)
    short = f"Subject: s{end}From: a@b{end}{end}" + f"Hello{end}" * 97
    assert "Hello" in read_one(tmp_path, "a.eml", short)
    with pytest.raises(FileExceedsBounds, match="100 lines"):
        read(tmp_path, "a.eml", short + end)


def test_lines_of_a_body_may_look_like_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_HEADER_BYTES", 1_000)
    body = "12:00:01 started: yes\r\n" * 200
    assert body.strip().replace("\r", "") in read_one(
        tmp_path, "a.eml", f"Subject: s\r\nFrom: a@b\r\n\r\n{body}"
    )


def test_a_mailbox_whose_line_has_no_end_is_read_once(tmp_path: Path) -> None:
    message = "From a@b Mon Jan 1 00:00:00 2024\nSubject: s\n\nHello\n\nFrom " + "1" * LONG + "\r"
    (document,) = read(tmp_path, "a.mbox", message).documents
    assert "Hello" in document.text


@pytest.mark.parametrize("end", ["\\\n", "\\", ""])
def test_a_json_string_that_never_ends_is_read_once(end: str, tmp_path: Path) -> None:
    text = '["a' + '\\"' * LONG + end
    assert read_one(tmp_path, "a.json", text).strip() == text.strip()
    with pytest.raises(CorruptFile, match="JSON"):
        read(tmp_path, "a.ipynb", text)


def test_the_path_of_a_file_inside_keeps_its_end(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "a.zip", zipped({"x/" * 10_000 + "a.txt": "text"})).documents
    assert document.inner is not None
    assert len(document.inner.path) <= MAX_PATH_CHARS
    assert document.inner.path.endswith("x/x/a.txt")


def test_of_the_bookmarks_of_a_page_only_so_many_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "_MAX_BOOKMARKS", 1)
    outline = [
        b"<</Type/Outlines/First 7 0 R/Last 8 0 R/Count 2>>",
        b"<</Title(One)/Parent 6 0 R/Next 8 0 R/Dest[4 0 R/Fit]>>",
        b"<</Title(Two)/Parent 6 0 R/Prev 7 0 R/Dest[4 0 R/Fit]>>",
    ]
    data = pdf_of_pages([lines("One", "Two")], catalog=b"/Outlines 6 0 R", more=outline)
    (document,) = read(tmp_path, "a.pdf", data).documents
    assert [heading.title for heading in document.headings] == ["One"]


def _nested(element: str, depth: int) -> str:
    """Each in the lower part of the one around it."""
    opened = f"<m:{element}><m:e/><m:sub>" * depth
    return opened + "<m:r><m:t>x</m:t></m:r>" + f"</m:sub></m:{element}>" * depth


def test_equations_nested_deeply_are_read_once_at_every_depth(tmp_path: Path) -> None:
    body = f'<w:p xmlns:m="urn:m"><m:oMath>{_nested("sSub", 60)}</m:oMath></w:p>'
    assert read_one(tmp_path, "a.docx", docx(body)).startswith("_(_(")


def test_a_list_of_more_levels_than_word_has_has_no_numbers(tmp_path: Path) -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="99999999"><w:lvlText w:val="%1"/>'
        '</w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )
    body = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="99999999"/><w:numId w:val="1"/></w:numPr></w:pPr>'
        "<w:r><w:t>x</w:t></w:r></w:p>"
    )
    assert read_one(tmp_path, "a.docx", docx(body, numbering=numbering)) == "x"


def test_letters_count_no_further_than_anybody_reads_them(tmp_path: Path) -> None:
    page = "<html><ol type=a start=702><li>x</li><li>y</li></ol>"
    assert read_one(tmp_path, "a.html", page) == f"{'z' * 27}. x\n703. y"


def test_blanks_in_a_heading_are_not_looked_at_again_for_every_block(tmp_path: Path) -> None:
    page = "<html><h1>" + " <div>" * (LONG // 4) + "Title</h1>"
    assert read_one(tmp_path, "a.html", page) == "Title"


@pytest.mark.parametrize(
    "head", ["X-A: \xe9\n" * 50_000, "---\ntitle: a" + " " * LONG + "b\n---\n", "a-b:\n " * LONG]
)
@pytest.mark.parametrize("name", ["a.eml", "a.md", "noname"])
def test_what_is_read_off_the_first_lines_takes_no_time(
    head: str, name: str, tmp_path: Path
) -> None:
    assert read(tmp_path, name, head.encode("latin-1") + b"\n\nText").documents


def test_a_page_put_into_a_document_many_times_is_read_once(tmp_path: Path) -> None:
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r"'
    body = '<w:altChunk r:id="p"/>' * 1_000
    data = zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {w}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations({"p": ("aFChunk", "p.html")}),
            "word/p.html": "<p>Once.</p>" + "<b></b>" * 10_000,
        }
    )
    assert read_one(tmp_path, "a.docx", data) == "Once."
