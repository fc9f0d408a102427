"""Files made to exhaust their reader are refused in moments, with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from privategpt.backends.parsers import bounds, cleaning, packages, sheets
from privategpt.backends.parsers.bounds import require_honest_ratio
from privategpt.backends.parsers.cleaning import DocumentBuilder, table_text
from privategpt.backends.parsers.file_metadata import facts
from privategpt.domain.errors import CorruptFile, FileExceedsBounds
from tests.fakes.parser_files import docx, read, word_paragraph, xlsx, zipped


def test_three_million_paragraphs_in_a_few_kilobytes_are_refused(tmp_path: Path) -> None:
    data = docx("<w:p/>" * 3_000_000)
    assert len(data) < 70_000
    with pytest.raises(FileExceedsBounds, match="times its size"):
        read(tmp_path, "a.docx", data)


def test_too_many_elements_are_refused_before_a_tree_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "MAX_XML_TAGS", 100)
    with pytest.raises(FileExceedsBounds, match="elements"):
        read(tmp_path, "a.docx", docx(word_paragraph("x") * 50))


def test_a_single_value_in_the_last_cell_of_all_is_refused(tmp_path: Path) -> None:
    sheet = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    with pytest.raises(FileExceedsBounds, match="area"):
        read(tmp_path, "a.xlsx", xlsx({"S": sheet}))


def test_too_many_cells_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_CELLS", 3)
    with pytest.raises(FileExceedsBounds, match="cells"):
        read(tmp_path, "a.xlsx", xlsx({"S": "<row>" + "<c><v>1</v></c>" * 4 + "</row>"}))
    with pytest.raises(FileExceedsBounds, match="string table"):
        read(tmp_path, "a.xlsx", xlsx({"S": ""}, strings="<si><t>x</t></si>" * 4))


def test_a_part_that_stops_in_the_middle_is_corrupt(tmp_path: Path) -> None:
    data = xlsx({}, **{"xl/strings.xml": "<sst><si><t>never"})
    with pytest.raises(CorruptFile, match="well-formed"):
        read(tmp_path, "a.xlsx", data)


def test_a_document_type_in_a_streamed_part_is_refused(tmp_path: Path) -> None:
    data = xlsx({}, **{"xl/strings.xml": '<!DOCTYPE s [<!ENTITY a "b">]><s/>'})
    with pytest.raises(CorruptFile, match="document type"):
        read(tmp_path, "a.xlsx", data)


def test_a_container_of_very_many_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "MAX_MEMBERS", 2)
    with pytest.raises(FileExceedsBounds, match="members"):
        read(tmp_path, "a.docx", docx("", header="", footer=""))


def test_a_container_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = docx(word_paragraph("x"))
    monkeypatch.setattr(packages, "MAX_XML_BYTES", 50)
    with pytest.raises(FileExceedsBounds, match="too large"):
        read(tmp_path, "a.docx", data)
    monkeypatch.setattr(packages, "MAX_UNPACKED_BYTES", 50)
    with pytest.raises(FileExceedsBounds, match="gigabyte"):
        read(tmp_path, "a.docx", data)


def test_elements_nested_without_end_are_refused(tmp_path: Path) -> None:
    depth = sys.getrecursionlimit() * 3
    with pytest.raises(FileExceedsBounds, match="nested"):
        read(tmp_path, "a.docx", docx("<w:sdt>" * depth + "</w:sdt>" * depth))


def test_more_text_than_is_allowed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "MAX_TEXT_CHARS", 10)
    with pytest.raises(FileExceedsBounds, match="text"):
        DocumentBuilder().add("more than ten characters")


@pytest.mark.parametrize(
    ("packed", "unpacked"), [(1, bounds.RATIO_FLOOR_BYTES), (100_000, 20_000_000), (0, 100)]
)
def test_small_and_ordinary_ratios_pass(packed: int, unpacked: int) -> None:
    require_honest_ratio("x", packed_bytes=packed, unpacked_bytes=unpacked)


def test_a_ratio_near_the_limit_of_deflate_is_refused() -> None:
    with pytest.raises(FileExceedsBounds, match="over 200 times"):
        require_honest_ratio("x", packed_bytes=10_000, unpacked_bytes=10_000_000)


def test_a_table_keeps_its_columns_together() -> None:
    rows = [["", "", ""], ["", "Mon", "Tue"], ["", "", "x y"], ["", "a\nb", "", ""]]
    assert table_text(rows) == "Mon | Tue\n| x y\na b"


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({"title": "(Untitled)", "author": " ", "date": "soon"}, {}),
        ({"title": "A\n title", "author": "X"}, {"title": "A title", "author": "X"}),
        ({"date": "D:18991231"}, {"year": 1899}),
        ({"date": "D:00010101"}, {}),
        ({"date": "Tue, 1 Oct 2024"}, {"year": 2024}),
    ],
)
def test_placeholders_are_no_facts(stated: dict[str, str], found: dict[str, object]) -> None:
    assert facts(**stated) == found


def test_zip_members_cannot_lead_out_of_their_container(tmp_path: Path) -> None:
    from tests.fakes.parser_files import relations

    data = zipped(
        {
            "[Content_Types].xml": "",
            "word/x": "",
            "_rels/.rels": relations({"r": ("officeDocument", "../../../etc/hostname")}),
        }
    )
    with pytest.raises(CorruptFile, match=r"lacks its part 'word/document\.xml'"):
        read(tmp_path, "a.docx", data)
