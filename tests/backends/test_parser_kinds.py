"""What a file is: by its bytes, then by its name."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from privategpt.backends.parsers.kinds import OLE_MAGIC, Kind, detect
from privategpt.domain.errors import (
    CorruptFile,
    EmptyFile,
    EncryptedFile,
    UnsupportedFileType,
)
from tests.fakes.parser_files import (
    docx,
    lines,
    opendocument,
    pdf_of_pages,
    read,
    read_one,
    word_paragraph,
    xlsx,
    zipped,
)


def _ole(*streams: str) -> bytes:
    directory = b"".join(f"{name}\0".encode("utf-16-le").ljust(128, b"\0") for name in streams)
    return OLE_MAGIC + b"\0" * 504 + directory


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"%PDF-1.4\n", "a.PDF", Kind.PDF),
        (b"\xef\xbb\xbf%PDF-1.4\n", "a.pdf", Kind.PDF),
        (b"\n" * 1000 + b"%PDF-1.4", "report.docx", Kind.PDF),
        (docx(""), "a.txt", Kind.DOCX),
        (xlsx({}), "noname", Kind.XLSX),
        (zipped({"[Content_Types].xml": "", "ppt/presentation.xml": ""}), "a", Kind.PPTX),
        (zipped({"[Content_Types].xml": "", "xl/workbook.bin": ""}), "a", Kind.XLSB),
        (opendocument("text", ""), "a.bin", Kind.ODT),
        (
            zipped({"mimetype": "application/vnd.oasis.opendocument.text-template"}),
            "a.ott",
            Kind.ODT,
        ),
        (zipped({"META-INF/container.xml": ""}), "book", Kind.EPUB),
        (zipped({"a.txt": "x"}), "a.docx", Kind.ZIP),
        (zipped({"mimetype": "x" * 300}), "a", Kind.ZIP),
        (zipped({"Index/Document.iwa": "", "QuickLook/Preview.pdf": ""}), "a.pages", Kind.ZIP),
        (b"\0" * 257 + b"ustar\0", "a", Kind.TAR),
        (b"\x1f\x8b\x08\0", "a.txt", Kind.GZIP),
        (b"BZh91AY&SY\0", "a", Kind.BZIP2),
        (b"\xfd7zXZ\0", "a", Kind.XZ),
        (b"II*\0\x08\0", "a", Kind.TIFF),
        (b"GIF89a\1\0", "a", Kind.GIF),
        (b"BZh is how it begins", "a.txt", Kind.TEXT),
        (b"ID3 tags are in songs", "a.txt", Kind.TEXT),
        (b"GIF89a is of 1989", "a.txt", Kind.TEXT),
        (b"Rar! said the lion", "a.md", Kind.MARKDOWN),
        (b"Every PDF begins with %PDF-1.7", "a.md", Kind.MARKDOWN),
        (b'assert data.startswith(b"%PDF-")', "test.py", Kind.TEXT),
        (b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.4\n1 0 obj\n<<>>", "a.txt", Kind.PDF),
        (_ole("WordDocument"), "a", Kind.DOC),
        (_ole("Workbook"), "a", Kind.XLS),
        (_ole("Book"), "a.doc", Kind.XLS),
        (_ole("PowerPoint Document"), "a", Kind.PPT),
        (_ole("__properties_version1.0"), "a", Kind.MSG),
        (b"{\\rtf1 x}", "a.doc", Kind.RTF),
        (b"# x", "A.MD", Kind.MARKDOWN),
        (b"a,b", "a.CSV", Kind.CSV),
        (b"{}", "a.jsonl", Kind.JSON),
        (b"<!DOCTYPE html><p>", "page", Kind.HTML),
        (b"<html>", "notes.txt", Kind.TEXT),
        (b"\r\n<HTML lang=de><table>", "export.xls", Kind.HTML),
        (b"<table border=1>", "export.doc", Kind.HTML),
        (b"<?php echo 1; ?>", "page.php", Kind.TEXT),
        (b"<html><%= title %>", "page.jsp", Kind.TEXT),
        (b"<!DOCTYPE html><p>saved", "page.aspx", Kind.HTML),
        (b"Name\tAge\nAnn\t7\n", "export.xls", Kind.TEXT),
        (b"Date: today\r\nMIME-Version: 1.0\r\n\r\nx", "export.doc", Kind.EML),
        (b"Received: by a\n\tfor b\nSubject: x\n\nx", "mail", Kind.EML),
        (b"Subject: x\n\nReceived: with thanks", "notes", Kind.TEXT),
        (b"x", "page.MHT", Kind.EML),
        (b"From - Mon Jan  1 10:00:00 2024\nFrom: a@b.example\n\nx", "Inbox", Kind.MBOX),
        (b"From 1999 on\nAll was well: then", "notes", Kind.TEXT),
        (b"BMW builds cars", "a.txt", Kind.TEXT),
        (b"x", "a.unheard-of", Kind.TEXT),
        ("\ufeffMZ".encode("utf-16"), "a.txt", Kind.TEXT),
    ],
)
def test_the_kind_is_told_by_content_and_then_by_name(data: bytes, name: str, kind: Kind) -> None:
    assert detect(data, name) is kind


def test_a_media_type_helps_where_there_is_no_extension() -> None:
    assert detect(b"a: b", "mail", "message/rfc822; charset=utf-8") is Kind.EML
    assert detect(b"a: b", "mail", "application/octet-stream") is Kind.TEXT


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "OCR"),
        (b"\xff\xd8\xff\xe0" + b"\0" * 20, "OCR"),
        (b"BM\0\0\0\0", "OCR"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "OCR"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "archive"),
        (b"Rar!\x1a\7\0", "archive"),
        (b"\x7fELF" + b"\0" * 20, "program"),
        (b"MZ\0\0", "program"),
        (b"ID3\x04" + b"\0" * 20, "recording"),
        (b"SQLite format 3\0", "database"),
        (b'x\x9f>"\1\0', "Outlook"),
        (b"\0\0\0\x18ftypheic" + b"\0" * 20, "picture.*JPEG"),
        (b"\0\0\0\x18ftypmp42" + b"\0" * 20, "recording"),
        (zipped({"Index/Document.iwa": "x", "preview.jpg": "x"}), "iWork.*PDF"),
        (zipped({"FixedDocSeq.fdseq": "x", "Documents/1/Pages/1.fpage": "x"}), "XPS"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.graphics"}), "zip container"),
        (_ole("Unknown"), "OLE"),
    ],
)
def test_what_has_no_reader_is_refused_with_its_name(
    data: bytes, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedFileType, match=reason):
        read(tmp_path, "upload", data)


@pytest.mark.parametrize("stream", ["EncryptedPackage", "EncryptedSummary"])
def test_an_encrypted_office_file_is_called_encrypted(stream: str) -> None:
    with pytest.raises(EncryptedFile, match="password"):
        detect(_ole(stream), "a.docx")


@pytest.mark.parametrize("data", [b"PK\x03\x04 and then nothing", docx("")[:-30]])
def test_a_cut_off_container_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFile, match="zip"):
        detect(data, "a.docx")


def test_something_called_pdf_that_is_none_is_corrupt() -> None:
    with pytest.raises(CorruptFile, match="header"):
        detect(b"just text", "a.PDF")


@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\xef\xbb\xbf\n", b"\0\0\0"])
def test_an_empty_file_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(EmptyFile):
        read(tmp_path, "a.txt", data)


@pytest.mark.parametrize("data", [docx(""), xlsx({"S": ""}), b"{\\rtf1 }"])
def test_a_document_without_text_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match="no text"):
        read(tmp_path, "a", data)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.json", "{}"), ("a.csv", ",,,\n,,\n"), ("a.txt", "\u200b\u200b"), ("a.md", "---\n***\n")],
)
def test_a_file_of_signs_alone_has_no_text(name: str, data: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match="no text"):
        read(tmp_path, name, data)


@pytest.mark.parametrize("data", ["7", "é", "漢", "👍", "₂", "ก"])
def test_one_letter_digit_or_picture_is_text(data: str, tmp_path: Path) -> None:
    assert read_one(tmp_path, "a.txt", data) == data


def test_capitals_in_the_extension_change_nothing(tmp_path: Path) -> None:
    data = pdf_of_pages([lines("The same text")])
    assert read(tmp_path, "A.PDF", data) == read(tmp_path, "a.pdf", data)


@pytest.mark.parametrize("packed", ["zip", "tar"])
def test_an_archive_whose_first_file_is_a_pdf_as_it_is_stays_an_archive(
    packed: str, tmp_path: Path
) -> None:
    files = {f"{name}.pdf": pdf_of_pages([lines(name)]) for name in ("one", "two")}
    buffer = io.BytesIO()
    if packed == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    parsed = read(tmp_path, f"papers.{packed}", buffer.getvalue())
    assert [document.text for document in parsed.documents] == ["one", "two"]


def test_a_wrong_extension_is_overruled_by_the_content(tmp_path: Path) -> None:
    assert read_one(tmp_path, "a.csv", docx(word_paragraph("In Word"))) == "In Word"
