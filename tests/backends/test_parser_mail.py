"""Mail, RTF and the old binary formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.backends.parsers.kinds import OLE_MAGIC
from privategpt.backends.parsers.mail import read_mail
from privategpt.domain.documents import Heading
from privategpt.domain.errors import (
    CorruptFile,
    EncryptedFile,
    FileExceedsBounds,
    UnsupportedFileType,
)
from tests.fakes.parser_files import read, read_one

_HEAD = (
    "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: all@example.org\r\n"
    "Subject: =?utf-8?b?4pi44pi/?= news\r\nDate: Tue, 01 Oct 2024 12:34:56 -0500\r\n"
)
_SHOWN = (
    "Subject: ☸☿ news\nFrom: Jürgen <j@example.org>\nTo: all@example.org\n"
    "Date: Tue, 01 Oct 2024 12:34:56 -0500"
)


def _multipart(kind: str, *parts: str) -> str:
    body = "".join(f"--xx\r\n{part}\r\n" for part in parts)
    return f"Content-Type: multipart/{kind}; boundary=xx\r\n\r\n{body}--xx--\r\n"


def test_headers_are_decoded_and_come_first(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.eml", _HEAD + "\r\nHello there.\r\n")
    assert parsed.documents[0].text == f"{_SHOWN}\n\nHello there."
    assert parsed.metadata == {
        "title": "☸☿ news",
        "author": "Jürgen <j@example.org>",
        "year": 2024,
    }


def test_the_plain_alternative_is_read_and_the_other_where_it_says_more(tmp_path: Path) -> None:
    plain = "Content-Type: text/plain\r\n\r\nSame words here"
    html = "Content-Type: text/html\r\n\r\n<p>Same <b>words</b> here</p>"
    more = "Content-Type: text/html\r\n\r\n<p>Something entirely different</p>"
    same = read_one(tmp_path, "a.eml", _HEAD + _multipart("alternative", html, plain))
    assert same == f"{_SHOWN}\n\nSame words here"
    both = read_one(tmp_path, "a.eml", _HEAD + _multipart("alternative", plain, more))
    assert both == f"{_SHOWN}\n\nSame words here\n\nSomething entirely different"


def test_attachments_are_named_and_forwarded_messages_are_documents(tmp_path: Path) -> None:
    attachment = (
        "Content-Type: application/pdf\r\nContent-Disposition: attachment;"
        ' filename="plan.pdf"\r\n\r\nxxxx'
    )
    nameless = "Content-Type: image/png\r\n\r\nxxxx"
    forwarded = "Content-Type: message/rfc822\r\n\r\nSubject: Inner\r\n\r\nInner text"
    parsed = read(
        tmp_path, "a.eml", _HEAD + _multipart("mixed", "\r\nOuter", attachment, nameless, forwarded)
    )
    assert [document.text for document in parsed.documents] == [
        f"{_SHOWN}\n\nOuter\n\nAttachment: plan.pdf",
        "Subject: Inner\n\nInner text",
    ]
    assert parsed.documents[1].metadata == {"title": "Inner"}


@pytest.mark.parametrize(
    ("header", "body", "text"),
    [
        ("text/plain; charset=koi8-r", "Привет, мир".encode("koi8-r"), "Привет, мир"),
        ("text/plain; charset=x-unknown", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=undefined", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=base64", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=idna", "Grüße".encode(), "Grüße"),
        ("text/plain; charset=ascii", "Schöne Grüße".encode("cp1252"), "Schöne Grüße"),
        ("text/plain; charset=utf-8", bytes(range(128, 160)) + b"\x01" * 9 + b"end", "end"),
    ],
)
def test_a_body_is_decoded_as_it_says_or_as_it_reads(
    header: str, body: bytes, text: str, tmp_path: Path
) -> None:
    data = f"Subject: s\r\nContent-Type: {header}\r\n\r\n".encode() + body
    assert read_one(tmp_path, "a.eml", data).endswith(text)


def test_a_message_that_is_nothing_but_a_file_is_read(tmp_path: Path) -> None:
    data = (
        "Subject: Scan\r\nContent-Type: application/octet-stream;\r\n name=plan.md\r\n"
        "Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\nIyBQbGFu\r\n"
    )
    assert [document.text for document in read(tmp_path, "a.eml", data).documents] == [
        "Subject: Scan\n\nAttachment: plan.md",
        "# Plan",
    ]


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "utf-16", "a\0b"])
@pytest.mark.parametrize(
    "header",
    [
        "Content-Disposition: attachment; filename*={}''plan.md",
        "Content-Type: text/plain; charset*={}''utf-8",
        "Content-Type: text/plain; name*0*={}''a; name*1*=%ff",
    ],
)
def test_a_parameter_in_what_is_no_charset_does_not_cost_the_mailbox(
    header: str, charset: str, tmp_path: Path
) -> None:
    one = "From a@example.org Tue Oct  1 12:00:00 2024\nSubject: one\n\nfirst\n\n"
    two = one + header.format(charset) + "\n\nsecond\n"
    odd = two.replace("one\n\nfirst\n\nContent", "two\nContent")
    texts = [document.text for document in read(tmp_path, "a.mbox", one + odd).documents]
    assert texts[0] == "Subject: one\n\nfirst"
    assert texts[1].startswith("Subject: two\n\n")


def test_a_header_that_cannot_be_parsed_is_kept_as_it_came(tmp_path: Path) -> None:
    data = b"Subject: caf\xc3\xa9\r\nTo: <@\xff,;:>>\r\n\r\nbody"
    text = read_one(tmp_path, "a.eml", data)
    assert text.startswith("Subject: café\n")
    assert text.endswith("body")


def test_a_message_without_anything_has_no_document() -> None:
    assert read_mail(b"\n\n", "message/rfc822").documents == ()


def test_parts_nested_without_end_are_refused(tmp_path: Path) -> None:
    nested = "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(200)
    )
    with pytest.raises(FileExceedsBounds, match="nested"):
        read(tmp_path, "a.eml", nested)
    messages = "Content-Type: message/rfc822\n\n" * 30 + "Subject: x\n\nx"
    with pytest.raises(FileExceedsBounds, match="nested"):
        read(tmp_path, "a.eml", messages)


def test_a_mailbox_is_taken_apart(tmp_path: Path) -> None:
    box = (
        "From a@example.org Tue Oct  1 12:00:00 2024\nSubject: one\n\nfirst\n>From here on\n\n"
        "From b@example.org Wed Oct  2 12:00:00 2024\nSubject: two\n\nsecond\n"
    )
    assert [document.text for document in read(tmp_path, "a.mbox", box).documents] == [
        "Subject: one\n\nfirst\nFrom here on",
        "Subject: two\n\nsecond",
    ]


def test_a_mailbox_without_messages_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="From"):
        read(tmp_path, "a.mbox", "no mail here")


_RTF = r"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset128 Mincho;}
{\f2\fcharset204 Cyr;}}{\colortbl;\red0;}{\*\generator x;}{\info{\title A {\i plan}}
{\author The Office}{\creatim\yr2004\mo1}}{\header running}
\pard\outlinelevel0 Heading\par\pard{\b Bold} and \'e9t\'e9\line next\~x\_y\tab z\par
{\f1 \'83\'5c\'83\'8b}{\f2 \'cc\'e8\'f0}\plain  caf\u233?\uc0\u8364 5 \u-10179 \u-8704 !\par
\v hidden\v0 shown{\deleted gone}\'5c\{\}\\
\trowd\intbl A1\cell B1\par more\cell\row\intbl A2\cell B2\cell\row
\pard\ldblquote q\rdblquote\emdash{\*\unknown nothing}{\upr{ansi}{\*\ud{unicode}}}
{\footnote a note}{\pict 0123}{\field{\*\fldinst HYPERLINK}{\fldrslt link}}}"""


def test_overlong_headers_are_cut_where_they_are_shown_and_refused_where_they_rule(
    tmp_path: Path,
) -> None:
    text = read_one(tmp_path, "a.eml", "Subject: s\nTo: " + "<a@b>," * 500_000 + "\n\nbody")
    assert len(text) < 25_000
    assert text.endswith("body")
    rules = "Content-Type: text/plain; " + "".join(f"a*{n}=x;" for n in range(9_000))
    with pytest.raises(FileExceedsBounds, match="overlong"):
        read(tmp_path, "a.eml", rules + "\n\nbody")


def test_a_mail_of_very_many_parts_is_refused(tmp_path: Path) -> None:
    data = "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\n\nx\n" * 300_000
    with pytest.raises(FileExceedsBounds, match="parts"):
        read(tmp_path, "a.eml", data)


def test_a_title_that_rtf_writes_twice_is_read_once(tmp_path: Path) -> None:
    title = r"{\upr{\title ???}{\*\ud{\title \u12478 ?\u12523 ?}}}"
    parsed = read(tmp_path, "a.rtf", r"{\rtf1{\info" + title + r"{\author A}}text\par}")
    assert parsed.metadata == {"title": "ゾル", "author": "A"}


def test_rtf_is_read_by_its_fonts_groups_and_tables(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.rtf", _RTF.replace("\n", "\r\n"))
    (document,) = parsed.documents
    assert document.text.split("\n\n") == [
        "Heading",
        "Bold and été\nnext\xa0x‑y\tz",
        "ソルМир café€5 😀!",
        "shown\\{}\\",
        "A1 | B1 more\nA2 | B2",
        "“q”—unicodelink",
        "a note",
        "running",
    ]
    assert document.headings == (Heading(start=0, level=1, title="Heading"),)
    assert parsed.metadata == {"title": "A plan", "author": "The Office", "year": 2004}


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (r"{\rtf1\mac caf\'8e}", "café"),
        (r"{\rtf1\ansicpg1251 \'cc\'e8\'f0}", "Мир"),
        (r"{\rtf1\ansicpg99999 \'e9}", "é"),
        (r"{\rtf1\ansicpg932 \'81}", "\x81"),
        (r"{\rtf1 a}}}b", "ab"),
        (r"{\rtf1 {\u99999999 x}y}", "y"),
        (r"{\rtf1 {\f9 a}\f b\sect c\page d}", "a b\n\nc\n\nd"),
        (r"{\rtf1 {\title t}x\v1 y\plain z", "xz"),
    ],
)
def test_odd_rtf_keeps_its_text(rtf: str, text: str, tmp_path: Path) -> None:
    got = read_one(tmp_path, "a.rtf", rtf + " x").removesuffix("x").strip()
    assert got == text.replace("a b", "ab").replace("\x81", "")


def test_rtf_groups_without_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileExceedsBounds, match="nested"):
        read(tmp_path, "a.rtf", r"{\rtf1" + "{" * 100_000)


def _ole(stream: str, content: bytes) -> bytes:
    return OLE_MAGIC + b"\0" * 504 + content.ljust(512, b"\0") + f"{stream}\0".encode("utf-16-le")


def test_word_6_is_refused_as_unsupported(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFileType, match=r"Word 6.*docx"):
        read(tmp_path, "a.doc", _ole("WordDocument", b"\xdc\xa5\x65\x00"))


def test_an_encrypted_word_file_is_called_encrypted(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile):
        read(tmp_path, "a.doc", _ole("WordDocument", b"\xec\xa5\xc1\x00" + b"\0" * 7 + b"\x01"))


def test_an_encrypted_workbook_is_called_encrypted(tmp_path: Path) -> None:
    start = b"\x09\x08\x10\x00" + b"\0" * 16 + b"\x2f\x00\x36\x00"
    with pytest.raises(EncryptedFile):
        read(tmp_path, "a.xls", _ole("Workbook", start))


@pytest.mark.parametrize("stream", ["WordDocument", "Workbook", "PowerPoint Document"])
@pytest.mark.parametrize("content", [b"", b"\xec\xa5\xc1\x00" + b"\0" * 8])
def test_a_broken_legacy_file_is_corrupt(stream: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(CorruptFile):
        read(tmp_path, "a", _ole(stream, content))


def test_a_page_saved_as_mail_has_its_headings_and_not_its_styling(tmp_path: Path) -> None:
    page = (
        "From: <Saved by Blink>\r\nSubject: Runbook\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/related; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/html; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        "<h1>Restart</h1><p>=C3=A9tape 1</p>\r\n"
        "--b\r\nContent-Type: text/css\r\n\r\nbody { color: red }\r\n--b--\r\n"
    )
    parsed = read(tmp_path, "export.doc", page)
    (document,) = parsed.documents
    shown = 'Subject: Runbook\nFrom: "Saved by Blink"\n\nRestart\n\nétape 1'
    assert document.text == shown
    assert document.headings == (Heading(start=shown.index("Restart"), level=1, title="Restart"),)
    assert parsed.metadata == {"title": "Runbook"}


@pytest.mark.parametrize("charset", ["utf-8", "cp1252", "gb18030"])
def test_headers_in_raw_bytes_keep_their_letters(charset: str, tmp_path: Path) -> None:
    title = "合同文件报告" if charset == "gb18030" else "Grüße aus Köln"
    mail = f"Subject: {title}\r\n" + _multipart(
        "mixed",
        "Content-Type: text/plain\r\n\r\nHello",
        f'Content-Type: text/plain\r\nContent-Disposition: attachment; filename="{title}.txt"'
        "\r\n\r\nattached",
    )
    parsed = read(tmp_path, "a.eml", mail.encode(charset))
    assert parsed.metadata["title"] == title
    message, attached = parsed.documents
    assert message.text == f"Subject: {title}\n\nHello\n\nAttachment: {title}.txt"
    assert attached.inner is not None
    assert attached.inner.path == f"{title}.txt"


def test_rtf_has_the_numbers_of_lists_notes_behind_and_headers_once(tmp_path: Path) -> None:
    rtf = (
        r"{\rtf1{\header Firm\par}{\headerf Firm}{\footer 12}{\listtext 1.\tab}First{\pntext 2.}"
        r"Second\par{\listtext \'b7\tab}Bullet{\listtext o}s\par 10{\super 6} m\super 2\nosupersub"
        r" x{\super th}{\pict{\footnote no}}\par A claim{\footnote \pard Its source.\par p. 3}, so"
        r".{\*\annotation{\*\atnref 1}Really?}\par\trowd\intbl Cell{\footnote of it}\cell\row}"
    )
    assert read_one(tmp_path, "a.rtf", rtf).split("\n\n") == [
        "1. First2. Second",
        "Bullets",
        "10⁶ m²xth",
        "A claim, so.",
        "Its source. p. 3",
        "Comment: Really?",
        "Cell",
        "of it",
        "Firm",
    ]


def test_a_message_of_apples_mail_is_as_long_as_it_says(tmp_path: Path) -> None:
    message = "Subject: Tea\nContent-Type: text/plain\n\nAt five.\n"
    data = f"{len(message)}      \n{message}<?xml version='1.0'?><plist/>"
    assert read_one(tmp_path, "1.emlx", data) == "Subject: Tea\n\nAt five."
