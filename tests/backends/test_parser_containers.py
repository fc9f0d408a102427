"""Files inside files: each is read as if it had come alone; one that cannot be harms no other."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import re
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from privategpt.backends.parsers import archives, mail, walking
from privategpt.backends.parsers.bounds import MAX_INNER_DEPTH
from privategpt.backends.parsers.kinds import Kind
from privategpt.backends.parsers.plain_text import read_text
from privategpt.domain.documents import InnerFile, ParsedFile
from privategpt.domain.errors import (
    CorruptFile,
    EmptyFile,
    EncryptedFile,
    FileExceedsBounds,
    UnsupportedFileType,
)
from tests.fakes.parser_files import docx, lines, pdf_of_pages, read, word_paragraph, zipped

_PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def _gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _tar(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _texts(parsed: ParsedFile) -> dict[str, str]:
    return {d.inner.path if d.inner else "": d.text for d in parsed.documents}


def _inner(path: str, media_type: str, data: bytes) -> InnerFile:
    digest = hashlib.sha256(data).hexdigest()
    return InnerFile(path=path, media_type=media_type, size_bytes=len(data), sha256=digest)


def _mail(*parts: str) -> str:
    body = "".join(f"--xx\r\n{part}\r\n" for part in parts)
    return f"Subject: s\r\nContent-Type: multipart/mixed; boundary=xx\r\n\r\n{body}--xx--\r\n"


def _attachment(name: str, text: str) -> str:
    return (
        f'Content-Type: text/plain\r\nContent-Disposition: attachment; filename="{name}"'
        f"\r\n\r\n{text}"
    )


def test_every_file_of_a_zip_keeps_its_path_type_size_pages_and_facts(tmp_path: Path) -> None:
    info = b"/Info 8 0 R"
    book = pdf_of_pages([lines("One"), lines("Two")], info=info, more=[b"<</Title(The book)>>"])
    parsed = read(tmp_path, "a.zip", zipped({"notes/a.txt": "text", "b.pdf": book}))
    assert parsed.media_type == "application/zip"
    assert parsed.metadata == {}
    assert [(d.text, d.inner, d.page_label, dict(d.metadata)) for d in parsed.documents] == [
        ("text", _inner("notes/a.txt", "text/plain", b"text"), None, {}),
        ("One", _inner("b.pdf", "application/pdf", book), "1", {"title": "The book"}),
        ("Two", _inner("b.pdf", "application/pdf", book), "2", {"title": "The book"}),
    ]


def test_no_two_files_inside_have_the_same_path(tmp_path: Path) -> None:
    mail = _mail(*(_attachment("x/plan.txt", text) for text in ("one", "two", "three")))
    inside = zipped({"m.eml": mail, "m.eml/x/plan (2).txt": "other"})
    assert _texts(read(tmp_path, "a.zip", inside)) == {
        "m.eml": "Subject: s\n" + "\n".join(["\nAttachment: x/plan.txt"] * 3),
        "m.eml/x/plan.txt": "one",
        "m.eml/x/plan (2).txt": "two",
        "m.eml/x/plan (3).txt": "three",
        "m.eml/x/plan (2) (2).txt": "other",
    }


@pytest.mark.parametrize(
    ("name", "data", "path"),
    [
        ("notes.txt.gz", _gzipped(b"the text"), "notes.txt"),
        ("notes.gz", _gzipped(b"the text"), "notes"),
        ("noname", _gzipped(b"the text"), "noname"),
        ("a.txt.gz", _gzipped(b"the ") + _gzipped(b"text"), "a.txt"),
        ("a.md.bz2", bz2.compress(b"the text"), "a.md"),
        ("a.csv.xz", lzma.compress(b"the text"), "a.csv"),
        ("a.tar", _tar({"./x/a.txt": b"the text"}), "x/a.txt"),
        ("a.tgz", _gzipped(_tar({"x/a.txt": b"the text"})), "x/a.txt"),
    ],
)
def test_packed_files_and_tars_are_opened(
    name: str, data: bytes, path: str, tmp_path: Path
) -> None:
    assert _texts(read(tmp_path, name, data)) == {path: "the text"}


def test_archives_in_archives_are_walked(tmp_path: Path) -> None:
    packed = _gzipped(_tar({"c": b"c"}))
    data = zipped({"in.zip": zipped({"a.txt": "a"}), "b.tar.gz": packed})
    assert _texts(read(tmp_path, "out.zip", data)) == {"in.zip/a.txt": "a", "b.tar.gz/c": "c"}


def test_a_file_that_cannot_be_read_is_told_of_and_the_others_are_read(tmp_path: Path) -> None:
    inside: dict[str, str | bytes] = {
        "a.txt": "a",
        "x/b.png": _PNG,
        "c.pdf": b"%PDF-1.7 cut",
        "d.txt": "",
        "e.txt": "e",
    }
    parsed = read(tmp_path, "a.zip", zipped(inside))
    assert _texts(parsed) == {"a.txt": "a", "e.txt": "e"}
    told = {unread.path: unread.reason for unread in parsed.unread}
    assert told.keys() == {"x/b.png", "c.pdf", "d.txt"}
    assert "OCR" in told["x/b.png"]
    assert "damaged" in told["c.pdf"]
    assert "empty" in told["d.txt"]


def _misplaced(package: bytes) -> bytes:
    """A zip whose directory says that its members begin before it does."""
    at = package.rindex(b"PK\5\6") + 16
    directory = int.from_bytes(package[at : at + 4], "little") + 5
    return package[:at] + directory.to_bytes(4, "little") + package[at + 4 :]


def _with_mimetype(damage: bytes) -> bytes:
    """A book whose statement of what it is cannot be unpacked."""
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip" * 5)
    data = bytearray(book.getvalue())
    start = 30 + len("mimetype")
    data[start : start + len(damage)] = damage
    return bytes(data)


@pytest.mark.parametrize(
    "damaged",
    [
        _misplaced(docx(word_paragraph("text"))),
        _with_mimetype(b"\xff\xff\xff"),
    ],
    ids=["misplaced", "mimetype"],
)
def test_damage_of_any_kind_costs_the_damaged_file_alone(damaged: bytes, tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.zip", zipped({"": "nameless", "b.docx": damaged, "c.txt": "text"}))
    texts = _texts(parsed)
    assert texts["file-1"] == "nameless"
    assert texts["c.txt"] == "text"
    assert {one.path for one in parsed.unread} | texts.keys() == {"file-1", "b.docx", "c.txt"}


def test_what_breaks_a_reader_costs_that_file_alone(tmp_path: Path) -> None:
    def broken(data: bytes, kind: Kind) -> ParsedFile:
        if b"break" in data:
            raise KeyError(data)
        return read_text(data, kind)

    walk = walking.Walk(size_bytes=1000, password=None, read=broken)
    parsed = walk.upload(zipped({"a.txt": "break", "b.txt": "text"}), "a.zip", None)
    assert _texts(parsed) == {"b.txt": "text"}
    assert [one.path for one in parsed.unread] == ["a.txt"]


@pytest.mark.parametrize(
    ("members", "error", "reason"),
    [
        ({"a.png": _PNG}, UnsupportedFileType, r"Nothing.*'a\.png'.*OCR"),
        ({"a.pdf": b"%PDF-1.7 cut"}, CorruptFile, r"Nothing.*'a\.pdf'"),
        ({"in.zip": zipped({"a.png": _PNG})}, UnsupportedFileType, "OCR"),
        ({}, EmptyFile, "empty"),
        ({"__MACOSX/._a.txt": b"x", "x/.DS_Store": b"x", "folder/": b""}, EmptyFile, "empty"),
    ],
)
def test_an_upload_with_nothing_to_read_is_refused_with_the_first_reason(
    members: dict[str, str | bytes], error: type[Exception], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=reason):
        read(tmp_path, "a.zip", zipped(members))


def test_only_what_is_in_a_container_is_told_of_and_not_the_container_as_well(
    tmp_path: Path,
) -> None:
    inside: dict[str, str | bytes] = {"in.zip": zipped({"a.png": _PNG}), "b.txt": "b"}
    (unread,) = read(tmp_path, "a.zip", zipped(inside)).unread
    assert unread.path == "in.zip/a.png"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/abs/./x.txt", "abs/x.txt"),
        ("C:\\dir\\x.txt", "C:/dir/x.txt"),
        ("a\nb\x1b[0m.txt", "a b.txt"),
        ("..", "file-1"),
        ("über/大.txt", "über/大.txt"),
    ],
)
def test_a_members_name_is_no_way_out_and_one_line(name: str, path: str, tmp_path: Path) -> None:
    assert _texts(read(tmp_path, "a.zip", zipped({name: "x"}))) == {path: "x"}


def test_utf8_names_of_archivers_that_do_not_say_so_are_read(tmp_path: Path) -> None:
    data = zipped({"gr\u00fc\u00dfe.txt": "x"})
    utf8, flagged = "grüße.txt".encode(), b"\x00\x08"
    assert utf8 in data
    silent = data.replace(flagged, b"\x00\x00")
    assert _texts(read(tmp_path, "a.zip", silent)) == {"grüße.txt": "x"}
    dos = silent.replace(utf8, b"gr\x81\xe1e1.txt"[: len(utf8)].ljust(len(utf8), b"t"))
    assert next(iter(_texts(read(tmp_path, "a.zip", dos)))).startswith("grüße")


@pytest.mark.parametrize(
    ("codec", "names"),
    [
        ("cp932", ["請求書.txt", "見積もり.txt"]),
        ("gb18030", ["合同文件/报告.txt"]),
        ("cp866", ["Договор аренды.txt", "plain.txt"]),
        ("cp437", ["Übung.txt", "café.txt", "Ñandú.txt"]),
        ("cp1252", ["Größe.txt"]),
    ],
)
def test_names_in_a_zip_are_in_the_set_of_the_system_that_packed_it(
    codec: str, names: list[str], tmp_path: Path
) -> None:
    raw = [name.encode(codec) for name in names]
    held = [f"{n}".rjust(len(name), "n") for n, name in enumerate(raw)]
    data = zipped(dict.fromkeys(held, "x"))
    for holder, name in zip(held, raw, strict=True):
        data = data.replace(holder.encode(), name)
    assert list(_texts(read(tmp_path, "a.zip", data))) == names


def test_a_name_in_a_field_for_it_goes_before_the_other(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, field in enumerate((0x7075, 0x7075, 0x5455)):
            member = zipfile.ZipInfo(f"n{number}")
            path = b"\1\0\0\0\0" + (f"報告{number}.txt".encode() if number else b"")
            member.extra = struct.pack("<HH", field, len(path)) + path
            archive.writestr(member, "x")
    data = re.sub(rb"n(?=[012])", b"\xf0", buffer.getvalue())
    assert list(_texts(read(tmp_path, "a.zip", data))) == ["ð0", "報告1.txt", "ð2"]


@pytest.mark.parametrize(
    ("raw", "path"),
    [(b"caf\xe9.txt", "café.txt"), (b"5\x80.txt", "5€.txt"), (b"\x81\xe9.txt", "é.txt")],
)
def test_names_in_a_tar_that_are_no_utf8_keep_their_letters(
    raw: bytes, path: str, tmp_path: Path
) -> None:
    data = _tar({raw.decode("utf-8", "surrogateescape"): b"text"})
    assert _texts(read(tmp_path, "a.tar", data)) == {path: "text"}


def test_links_and_devices_of_a_tar_are_no_files(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("l", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("d", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/hostname"
            archive.addfile(info)
    with pytest.raises(EmptyFile):
        read(tmp_path, "a.tar", buffer.getvalue())


# Encryption


def _encrypted(method: int = 0) -> bytes:
    """A zip whose only member has the flag of encryption."""
    data = bytearray(zipped({"a.txt": "x" * 40}))
    central = data.index(b"PK\x01\x02")
    data[6] |= 1
    data[central + 8] |= 1
    if method:
        data[8], data[central + 10] = method, method
    return bytes(data)


def test_an_encrypted_member_asks_for_its_password(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile, match="password"):
        read(tmp_path, "a.zip", _encrypted())
    with pytest.raises(EncryptedFile, match="does not open"):
        read(tmp_path, "a.zip", _encrypted(), password="wrong")


def test_encryption_that_is_not_read_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile, match="method"):
        read(tmp_path, "a.zip", _encrypted(method=99), password="any")


def test_the_password_of_the_upload_opens_what_is_in_it(tmp_path: Path) -> None:
    from pypdf import PdfWriter

    writer = PdfWriter(io.BytesIO(pdf_of_pages([lines("Inside")])))
    writer.encrypt("s3cret", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    data = zipped({"a.pdf": buffer.getvalue(), "b.txt": "b"})
    assert _texts(read(tmp_path, "a.zip", data, password="s3cret"))["a.pdf"] == "Inside"
    (unread,) = read(tmp_path, "a.zip", data).unread
    assert "password" in unread.reason


# Mail and documents


def test_attachments_of_a_mail_are_files_in_it(tmp_path: Path) -> None:
    data = _mail("\r\nHello", _attachment("plan/a.txt", "The plan"), _attachment("b.html", "<p>x"))
    parsed = read(tmp_path, "m.eml", data)
    assert _texts(parsed) == {
        "": "Subject: s\n\nHello\n\nAttachment: plan/a.txt\n\nAttachment: b.html",
        "plan/a.txt": "The plan",
        "b.html": "x",
    }
    assert parsed.metadata == {"title": "s"}


def test_a_mailbox_is_its_messages_with_what_is_attached_to_them(tmp_path: Path) -> None:
    box = (
        "From a@example.org Tue Oct  1 12:00:00 2024\nSubject: one\n\nfirst\n>From here on\n\n"
        "From b@example.org Wed Oct  2 12:00:00 2024\n"
    ) + _mail("\r\nsecond", _attachment("a.zip", "PK")).replace("\r\n", "\n")
    assert _texts(read(tmp_path, "a.mbox", box)) == {
        "message-1.eml": "Subject: one\n\nfirst\nFrom here on",
        "message-2.eml": "Subject: s\n\nsecond\n\nAttachment: a.zip",
        "message-2.eml/a.zip": "PK",
    }


def test_files_embedded_in_a_pdf_are_read(tmp_path: Path) -> None:
    catalog = b"/Names<</EmbeddedFiles<</Names[(a.txt)6 0 R(b.bin)8 0 R]>>>>"
    more = [
        b"<</Type/Filespec/F(a.txt)/UF(a.txt)/EF<</F 7 0 R>>>>",
        b"<</Type/EmbeddedFile/Length 8>>stream\nembedded\nendstream",
        b"<</Type/Filespec/F(b.bin)/UF(b.bin)>>",
    ]
    data = pdf_of_pages([lines("Page")], catalog=catalog, more=more)
    parsed = read(tmp_path, "a.pdf", data)
    assert _texts(parsed) == {"": "Page", "a.txt": "embedded"}
    assert [unread.path for unread in parsed.unread] == ["b.bin"]
    cover = pdf_of_pages([b""], catalog=catalog, more=more)
    assert _texts(read(tmp_path, "portfolio.pdf", cover)) == {"a.txt": "embedded"}


def test_files_embedded_in_an_office_document_are_read(tmp_path: Path) -> None:
    inner = docx(word_paragraph("Embedded"))
    buffer = io.BytesIO(docx(word_paragraph("Outer")))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("word/embeddings/Sheet1.docx", inner)
    assert _texts(read(tmp_path, "a.docx", buffer.getvalue())) == {
        "": "Outer",
        "Sheet1.docx": "Embedded",
    }


# Bombs


def test_a_zip_that_holds_itself_ends(tmp_path: Path) -> None:
    data = zipped({"a.txt": "the end"})
    for _ in range(MAX_INNER_DEPTH + 3):
        data = zipped({"again.zip": data})
    with pytest.raises(FileExceedsBounds, match="too deep"):
        read(tmp_path, "a.zip", data)


def test_nested_zips_count_together(tmp_path: Path) -> None:
    layer = zipped({f"{n}.txt": b"\n" * 4_000_000 for n in range(16)})
    data = zipped({f"{n}.zip": layer for n in range(16)})
    assert len(data) < 100_000
    with pytest.raises(FileExceedsBounds, match="unpacks to over"):
        read(tmp_path, "a.zip", data)


@pytest.mark.parametrize("pack", [_gzipped, bz2.compress, lzma.compress])
def test_a_packed_bomb_is_refused_before_it_is_whole(
    pack: type[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "RATIO_FLOOR_BYTES", 100_000)
    with pytest.raises(FileExceedsBounds, match="unpacks to over"):
        read(tmp_path, "a.gz", pack(b"\n" * 10_000_000))


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    data = bytearray(zipped({f"{n}": "x" * 5_000 + str(n) for n in range(3)}))
    size = len(data)
    at = data.index(b"PK\x01\x02")
    for _ in range(3):
        data[at + 20 : at + 24] = size.to_bytes(4, "little")
        at = data.find(b"PK\x01\x02", at + 4)
    with pytest.raises(FileExceedsBounds, match="overlap"):
        read(tmp_path, "a.zip", bytes(data))


@pytest.mark.parametrize("stated", [10, 100_000])
def test_a_member_that_lies_about_its_size_is_damaged(stated: int, tmp_path: Path) -> None:
    data = bytearray(zipped({"a.txt": "some text " * 100}))
    for at in (22, data.index(b"PK\x01\x02") + 24):
        data[at : at + 4] = stated.to_bytes(4, "little")
    with pytest.raises(CorruptFile, match="size"):
        read(tmp_path, "a.zip", bytes(data))


def test_more_files_than_are_allowed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MAX_INNER_FILES", 3)
    tar = _tar({str(n): b"x" for n in range(4)})
    with pytest.raises(FileExceedsBounds, match="holds over 3"):
        read(tmp_path, "a.tar", tar)
    monkeypatch.setattr(archives, "MAX_INNER_FILES", 3)
    with pytest.raises(FileExceedsBounds, match="over 3 members"):
        read(tmp_path, "a.zip", zipped({str(n): "x" for n in range(4)}))
    monkeypatch.setattr(mail, "MAX_INNER_FILES", 3)
    with pytest.raises(FileExceedsBounds, match="over 3 messages"):
        read(tmp_path, "a.mbox", "From a 2024\n\nx\n" * 4)


def test_a_single_file_that_is_too_large_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MAX_INNER_BYTES", 100)
    tar = _tar({"large": b"x" * 101, "small": b"x"})
    parsed = read(tmp_path, "a.zip", zipped({"large": "x" * 101, "small": "x"}))
    assert [unread.path for unread in parsed.unread] == ["large"]
    parsed = read(tmp_path, "a.tar", tar)
    assert [unread.path for unread in parsed.unread] == ["large"]


def test_a_sparse_tar_has_no_more_than_its_bytes(tmp_path: Path) -> None:
    header = tarfile.TarInfo("huge")
    header.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[386:398], block[398:410] = b"00000000000\0", b"00000000000\0"
    block[483:495] = b"77777777777\0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(EmptyFile):
        read(tmp_path, "a.tar", bytes(block) + b"\0" * 1024)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.gz", _gzipped(b"text" * 99)[:-9]),
        ("a.bz2", bz2.compress(b"text" * 99)[:-9]),
        ("a.xz", lzma.compress(b"text" * 99)[:-9]),
        ("a.zip", zipped({"a.txt": "x"})[:-30]),
        ("a.tar", _tar({"a": b"x" * 9000})[:3000]),
        ("a.tar", b"\0" * 257 + b"ustar\0" + b"\xff" * 300),
    ],
)
def test_a_damaged_container_is_corrupt(name: str, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(CorruptFile):
        read(tmp_path, name, data)
