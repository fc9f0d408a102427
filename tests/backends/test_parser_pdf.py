"""PDF: pages as text, right in letters, words, order and labels."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from privategpt.backends.parsers.pdf_text import (
    clean_title,
    drop_running_lines,
    join_broken_words,
    page_texts,
)
from privategpt.domain.documents import Heading
from privategpt.domain.errors import CorruptFile, EncryptedFile, FileExceedsBounds, NoTextFound
from tests.fakes.parser_files import (
    BOUNDS,
    flate_stream,
    lines,
    pdf,
    pdf_of_pages,
    pdf_stream,
    read,
    read_one,
)


def test_every_page_with_text_is_a_document_with_its_label(tmp_path: Path) -> None:
    labels = b"/PageLabels<</Nums[0<</S/r>> 2<</S/D/St 10>>]>>"
    pages = [lines("Preface"), b"", lines("Body")]
    parsed = read(tmp_path, "a.pdf", pdf_of_pages(pages, catalog=labels))
    assert [(d.page_label, d.text) for d in parsed.documents] == [("i", "Preface"), ("10", "Body")]
    plain = read(tmp_path, "a.pdf", pdf_of_pages(pages))
    assert [document.page_label for document in plain.documents] == ["1", "3"]


def test_the_information_dictionary_gives_title_author_and_year(tmp_path: Path) -> None:
    info = b"/Info 6 0 R"
    more = [b"<</Title(Microsoft Word - A plan)/Author(anonymous)/CreationDate(D:20210203)>>"]
    parsed = read(tmp_path, "a.pdf", pdf_of_pages([lines("x")], more=more, info=info))
    assert parsed.metadata == {"title": "A plan", "year": 2021}


def test_an_odd_utf16_title_does_no_harm(tmp_path: Path) -> None:
    more = [b"<</Title<FEFF0041 00>>>"]
    data = pdf_of_pages([lines("Page text")], more=more, info=b"/Info 6 0 R")
    assert read_one(tmp_path, "a.pdf", data) == "Page text"


@pytest.mark.parametrize("half", ["FEFFD83D", "FEFF0041D83D0042", "FEFFDE00", "FEFF0041DE"])
def test_halves_of_characters_in_the_strings_about_a_page_do_no_harm(
    half: str, tmp_path: Path
) -> None:
    text = f"<{half}>".encode()
    catalog = (
        b"/Outlines 7 0 R/PageLabels<</Nums[0<</P" + text + b">>]>>"
        b"/Names<</EmbeddedFiles<</Names[(a)9 0 R]>>>>"
    )
    more = [
        b"<</Title" + text + b"/Author" + text + b">>",
        b"<</Type/Outlines/First 8 0 R/Last 8 0 R>>",
        b"<</Title" + text + b"/Parent 7 0 R/Dest[4 0 R/Fit]>>",
        b"<</Type/Filespec/F" + text + b"/UF" + text + b"/EF<</F 10 0 R>>>>",
        pdf_stream(b"Attached text", entries=b"/Type/EmbeddedFile"),
    ]
    data = pdf_of_pages([lines("Page text")], catalog=catalog, more=more, info=b"/Info 6 0 R")
    texts = [document.text for document in read(tmp_path, "a.pdf", data).documents]
    assert texts == ["Page text", "Attached text"]


def test_a_nul_in_a_string_is_no_text(tmp_path: Path) -> None:
    assert read_one(tmp_path, "a.pdf", pdf_of_pages([lines("a\\000b and more")])) == "ab and more"


def test_bookmarks_become_headings_that_run_on_over_the_pages(tmp_path: Path) -> None:
    outline = [
        b"<</Type/Outlines/First 11 0 R/Last 14 0 R>>",
        b"<</Title(Part  One)/Parent 10 0 R/Dest[4 0 R/Fit]/First 12 0 R/Last 13 0 R/Next 14 0 R>>",
        b"<</Title(Section A)/Parent 11 0 R/Dest[4 0 R/Fit]/Next 13 0 R>>",
        b"<</Title( )/Parent 11 0 R/Dest[4 0 R/Fit]>>",
        b"<</Title(Not there)/Parent 10 0 R/Dest[8 0 R/Fit]/Next 15 0 R>>",
        b"<</Title(Nowhere)/Parent 10 0 R>>",
    ]
    pages = [lines("intro", "PART ONE", "Section A"), lines("more"), lines("last")]
    data = pdf_of_pages(pages, catalog=b"/Outlines 10 0 R", more=outline)
    first, second, third = (d.headings for d in read(tmp_path, "a.pdf", data).documents)
    assert first == (
        Heading(start=6, level=1, title="Part One"),
        Heading(start=15, level=2, title="Section A"),
    )
    assert second == (
        Heading(start=0, level=1, title="Part One"),
        Heading(start=0, level=2, title="Section A"),
    )
    assert third[-1] == Heading(start=0, level=1, title="Not there")


def test_form_values_follow_their_page(tmp_path: Path) -> None:
    form = [
        b"<</Fields[7 0 R 8 0 R 9 0 R]/DA(/F 12 Tf)>>",
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/TU(Your name)/V(Otto)/Rect[0 0 90 20]"
        b"/P 4 0 R>>",
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(city)/Rect[0 0 90 20]/P 4 0 R>>",
        b"<</Type/Annot/Subtype/Widget/FT/Btn/T(ok)/V/Yes/Rect[0 0 90 20]/P 4 0 R>>",
        b"<</Type/Annot/Subtype/Text/Contents(a note)/Rect[0 0 90 20]/P 4 0 R>>",
    ]
    data = pdf_of_pages([lines("Form")], catalog=b"/AcroForm 6 0 R", more=form)
    annotated = data.replace(
        b"<</Type/Page/Parent", b"<</Type/Page/Annots[7 0 R 8 0 R 9 0 R 10 0 R]/Parent", 1
    )
    text = read_one(tmp_path, "a.pdf", annotated)
    assert text == "Form\n\nYour name: Otto\nComment: a note"


def test_ticked_boxes_and_what_was_typed_onto_a_page_follow_it(tmp_path: Path) -> None:
    box = (
        b"<</Type/Annot/Subtype/Widget/FT/Btn/T(%s)/V/%s/AS/%s/Rect[0 0 9 9]/P 4 0 R"
        b"/AP<</N<</Yes 10 0 R/Off 10 0 R>>>>>>"
    )
    form = [
        b"<</Fields[7 0 R 8 0 R]>>",
        box % (b"agree", b"Yes", b"Yes"),
        box % (b"refuse", b"Off", b"Off"),
        b"<</Type/Annot/Subtype/FreeText/Contents(typed)/Rect[0 0 90 20]/P 4 0 R>>",
        pdf_stream(b"", entries=b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"),
    ]
    data = pdf_of_pages([lines("Form")], catalog=b"/AcroForm 6 0 R", more=form)
    annots = b"<</Type/Page/Annots[7 0 R 8 0 R 9 0 R]/Parent"
    annotated = data.replace(b"<</Type/Page/Parent", annots, 1)
    assert read_one(tmp_path, "a.pdf", annotated) == "Form\n\nagree: Yes\ntyped"


def test_an_odd_string_in_a_font_of_two_byte_codes_costs_no_other_text(tmp_path: Path) -> None:
    fonts = [
        b"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/DescendantFonts[7 0 R]"
        b"/ToUnicode 8 0 R>>",
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/A/DW 600"
        b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>",
        pdf_stream(
            b"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange "
            b"1 beginbfrange <0000> <ffff> <0000> endbfrange endcmap"
        ),
    ]
    page = lines("Before") + b" BT /G 12 Tf 50 600 Td <00410042 00> Tj ET"
    data = pdf_of_pages([page], more=fonts).replace(b"/F 3 0 R>>>>", b"/F 3 0 R/G 6 0 R>>>>")
    assert read_one(tmp_path, "a.pdf", data) == "Before\nAB"


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128"])
def test_an_empty_password_opens_without_being_asked_for(algorithm: str, tmp_path: Path) -> None:
    writer = PdfWriter(io.BytesIO(pdf_of_pages([lines("Open to all")])))
    writer.encrypt("", owner_password="owner", algorithm=algorithm)
    buffer = io.BytesIO()
    writer.write(buffer)
    assert read_one(tmp_path, "a.pdf", buffer.getvalue()) == "Open to all"


def test_a_pdf_of_pictures_says_that_ocr_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoTextFound, match="OCR"):
        read(tmp_path, "scan.pdf", pdf_of_pages([b"0 0 100 100 re f"]))


def test_a_pdf_that_nobody_can_open_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="cannot be opened"):
        read(tmp_path, "a.pdf", b"%PDF-1.7\n1 0 obj\n<<")


def test_an_encrypted_pdf_asks_for_its_password(tmp_path: Path) -> None:
    encrypt = (
        b"/Encrypt<</Filter/Standard/V 1/R 2/O<" + b"28" * 32 + b">/U<" + b"31" * 32 + b">/P -4>>"
        b"/ID[<00><00>]"
    )
    data = pdf_of_pages([lines("secret")], info=encrypt)
    with pytest.raises(EncryptedFile, match="send its password"):
        read(tmp_path, "a.pdf", data)
    with pytest.raises(EncryptedFile, match="does not open"):
        read(tmp_path, "a.pdf", data, password="wrong")


def test_too_many_pages_are_refused_before_they_are_read(tmp_path: Path) -> None:
    count = b"%d" % (BOUNDS.max_pages + 1)
    data = pdf([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count " + count + b">>"])
    with pytest.raises(FileExceedsBounds, match="pages"):
        read(tmp_path, "a.pdf", data)


def test_a_table_of_references_that_points_at_itself_ends(tmp_path: Path) -> None:
    head = b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
    table = b"xref\n0 2\n0000000000 65535 f \n0000000009 00000 n \n"
    trailer = b"trailer\n<</Size 2/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF"
    with pytest.raises(CorruptFile):
        read(tmp_path, "a.pdf", head + table + trailer % (len(head), len(head)))


def test_pypdf_reads_what_pdfium_cannot_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from privategpt.backends.parsers import pdf as module
    from privategpt.backends.parsers.pdfium import PdfNotOpened

    def refuse(data: bytes, *, password: str | None) -> None:
        raise PdfNotOpened(needs_password=False)

    monkeypatch.setattr(module, "Pdf", refuse)
    assert read_one(tmp_path, "a.pdf", pdf_of_pages([lines("Second reader")])) == "Second reader"


_BOMBS = {
    "spaces": flate_stream(b" " * 30_000_000),
    "operators": flate_stream(b"q Q " * 1_000_000),
    "packed twice": pdf_stream(
        zlib.compress(zlib.compress(b" " * 30_000_000)),
        filters=b"/Filter[/FlateDecode/FlateDecode]",
    ),
    "in hexadecimal": pdf_stream(
        zlib.compress(b" " * 30_000_000).hex().encode() + b">",
        filters=b"/Filter[/ASCIIHexDecode/FlateDecode]",
    ),
}


@pytest.mark.parametrize("name", _BOMBS)
def test_a_stream_that_unpacks_to_far_too_much_is_refused(name: str, tmp_path: Path) -> None:
    catalog, pages, font = (b"<</Type/Catalog/Pages 2 0 R>>",
                            b"<</Type/Pages/Kids[4 0 R]/Count 1>>", b"<<>>")  # fmt: skip
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 5 0 R>>"
    with pytest.raises(FileExceedsBounds, match="stream"):
        read(tmp_path, "a.pdf", pdf([catalog, pages, font, page, _BOMBS[name]]))


@pytest.mark.parametrize(
    "extra",
    [
        pdf_stream(
            zlib.compress(b"\xff" * 20_000_000),
            filters=b"/Filter/FlateDecode",
            entries=b"/Subtype/Image/Width 5000/Height 4000",
        ),
        pdf_stream(b"not packed at all", filters=b"/Filter/FlateDecode"),
        pdf_stream(b"zz>", filters=b"/Filter[/ASCIIHexDecode/FlateDecode]"),
        pdf_stream(b'GhQ"~>', filters=b"/Filter[/A85/FlateDecode]"),
        pdf_stream(b"x", filters=b"/Filter/LZWDecode"),
        b"<</Length 9/Filter/FlateDecode>>stream\nnever ends",
    ],
)
def test_a_blank_scan_or_a_damaged_stream_is_no_bomb(extra: bytes, tmp_path: Path) -> None:
    data = pdf_of_pages([lines("Text beside it")], more=[extra])
    assert read_one(tmp_path, "a.pdf", data) == "Text beside it"


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["dan\x02gerous"], ["dangerous"]),
        (["dan-\r\ngerous"], ["dangerous"]),
        (["dan\xad\ngerous"], ["dangerous"]),
        (["well\x02known", "a well-known one"], ["well-known", "a well-known one"]),
        (["re\x02sign", "re-sign and resign"], ["resign", "re-sign and resign"]),
        (["Lucene\x02BM25"], ["Lucene-BM25"]),
        (["2020\x02\r\n21"], ["2020-21"]),
        (["감염\x02병"], ["감염병"]),
        (["a - b\nc", "x-\n3"], ["a - b\nc", "x-\n3"]),
    ],
)
def test_words_broken_at_line_ends_are_whole_again(texts: list[str], joined: list[str]) -> None:
    assert join_broken_words(texts) == joined


def test_glyph_variants_become_the_letters_they_mean() -> None:
    assert page_texts(["eﬃcient ﬂow ﬆ", "ﻻ ﺍﻟﻌﺮﺑﻴﺔ", "⽂⼈ ½ ™"]) == [
        "efficient flow st",
        "لا العربية",
        "文人 ½ ™",
    ]
    assert clean_title("The ﬁrst\r\n part\0") == "The first part"


def test_running_headers_go_but_for_the_first() -> None:
    pages = [f"ACME Report {n}\nText of {word}\nmore\n{word} ends\nPage {n}" for n, word in
             enumerate(["one", "two", "three", "four", "five"], start=1)]  # fmt: skip
    assert drop_running_lines([*pages, ""]) == [
        "ACME Report 1\nText of one\nmore\none ends\nPage 1",
        *(f"Text of {word}\nmore\n{word} ends" for word in ("two", "three", "four", "five")),
        "",
    ]


@pytest.mark.parametrize(
    "row", ["{n}.03.2024 {m}.50 {k}.00", "Item {m} in aisle {k}", "{m}", "Chapter {k} of {m}"]
)
def test_rows_of_a_table_over_many_pages_are_no_running_headers(row: str) -> None:
    def rows(page: int) -> list[str]:
        numbers = [page * 10 + n for n in range(10)]
        return [row.format(n=n % 28 + 1, m=n * 37 % 101, k=n * n % 89) for n in numbers]

    pages = ["\n".join(["Statement", *rows(page), f"Page {page + 1} of 6"]) for page in range(6)]
    first, *others = pages
    cut = [page.removeprefix("Statement\n").rpartition("\n")[0] for page in others]
    assert drop_running_lines(pages) == [first, *cut]


def test_headers_of_left_and_right_pages_and_of_chapters_go() -> None:
    pages = [f"Law of Contract {chapter}-{n}\nText {word}" for chapter, n, word in
             [(1, 1, "a"), (1, 2, "b"), (2, 1, "c"), (2, 2, "d"), (2, 3, "e")]]  # fmt: skip
    assert drop_running_lines(pages)[1:] == ["Text b", "Text c", "Text d", "Text e"]


def test_bare_page_numbers_go_everywhere_and_a_page_is_never_emptied() -> None:
    pages = [f"Text {word}\n{number}" for word, number in
             zip("abcd", ["i", "ii", "iii", "4"], strict=True)]  # fmt: skip
    assert drop_running_lines(pages) == ["Text a", "Text b", "Text c", "Text d"]
    assert drop_running_lines(["7"] * 5) == ["7"] * 5


def test_few_pages_keep_everything() -> None:
    assert drop_running_lines(["H\na", "H\nb", "H\nc"]) == ["H\na", "H\nb", "H\nc"]


@given(st.lists(st.text(st.sampled_from("ab1-\x02\n \r\xad\ufffe"), max_size=30), max_size=6))
def test_as_many_pages_come_out_as_go_in(pages: list[str]) -> None:
    texts = page_texts(pages)
    assert len(texts) == len(pages)
    assert all(text == text.strip() and "\x02" not in text for text in texts)
