"""OpenDocument texts as people have them: numbered lists, shapes, headers and comments."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.parser_files import ODF, opendocument, read_one

_LISTS = (
    f'<x xmlns:style="urn:s" {ODF}><text:list-style style:name="L">'
    '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix=".)"/>'
    '<text:list-level-style-number text:level="2" style:num-format="a" text:display-levels="2"'
    ' style:num-prefix="(" style:num-suffix=")" text:start-value="2"/>'
    '<text:list-level-style-bullet text:level="3"/></text:list-style></x>'
)


def _item(text: str, inner: str = "", more: str = "") -> str:
    return f"<text:list-item {more}><text:p>{text}</text:p>{inner}</text:list-item>"


def _list(*items: str, more: str = "") -> str:
    return f"<text:list {more}>{''.join(items)}</text:list>"


def test_items_of_lists_have_their_numbers(tmp_path: Path) -> None:
    style = 'text:style-name="L"'
    inner = _list(_item("b", _list(_item("deeper"))), _item("c"))
    head = "<text:list-header><text:p>head</text:p></text:list-header>"
    fifth = _item("d", "<text:p>e</text:p>", more='text:start-value="5"')
    cell = _list(_item("j"), _item("k"), more=style)
    body = (
        _list(_item("a", inner), head, fifth, more=f'{style} xml:id="l1"')
        + "<text:p>between</text:p>"
        + _list(_item("f"), more=f'{style} text:continue-numbering="true"')
        + _list(_item("g"), more=f'{style} text:continue-list="l1"')
        + _list(_item("h"), more=style)
        + _list(_item("i"))
        + f"<table:table><table:table-row><table:table-cell>{cell}</table:table-cell>"
        + "</table:table-row></table:table>"
        + _item("astray")
    )
    data = opendocument("text", body, **{"styles.xml": _LISTS})
    assert read_one(tmp_path, "a.odt", data).split("\n\n") == [
        "1.) a", "(1.b) b", "deeper", "(1.c) c", "head", "5.) d", "e", "between", "6.) f", "6.) g",
        "1.) h", "i", "1.) j 2.) k", "astray",
    ]  # fmt: skip


def test_shapes_comments_headers_and_footers_are_read(tmp_path: Path) -> None:
    shape = "<draw:custom-shape><text:p>in a shape</text:p></draw:custom-shape>"
    comment = "<office:annotation><text:p>Hm</text:p></office:annotation>"
    empty = "<office:annotation><text:p/></office:annotation>"
    styles = (
        f'<x xmlns:style="urn:s" {ODF}><style:master-page><style:header><text:p>Firm</text:p>'
        "</style:header><style:header-first><text:p>Firm</text:p></style:header-first>"
        "<style:footer><text:p>7</text:p></style:footer></style:master-page></x>"
    )
    body = f"<text:p>Before {shape}after{comment}{empty}</text:p>"
    data = opendocument("text", body, **{"styles.xml": styles})
    expected = "Before after\n\nin a shape\n\nComment: Hm\n\nFirm"
    assert read_one(tmp_path, "a.odt", data) == expected
