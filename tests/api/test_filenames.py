"""Names of files: shown as they were meant, and never a path."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from encodings.aliases import aliases
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.api.filenames import MAX_NAME, decoded_name, display_name, extended_name
from privategpt.domain.errors import InvalidRequest


@given(st.text(max_size=700) | st.text(st.sampled_from("\ud800\udfff%C3A9é.a/"), max_size=20))
def test_a_name_is_one_component_without_controls_whatever_was_sent(name: str) -> None:
    try:
        shown = display_name(name)
    except InvalidRequest:
        return
    assert 0 < len(shown) <= MAX_NAME
    assert shown not in {".", ".."}
    assert PurePosixPath(shown).name == shown
    assert "\\" not in shown
    assert not any(unicodedata.category(character) in {"Cc", "Cs"} for character in shown)


@given(st.binary(max_size=300))
def test_every_sequence_of_bytes_is_a_name(raw: bytes) -> None:
    decoded_name(raw)


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=200))
def test_a_name_of_letters_survives_as_utf8(name: str) -> None:
    decoded = decoded_name(f"{name}.pdf".encode())
    assert decoded == f"{name}.pdf"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("한글 문서.txt", "한글 문서.txt"),
        ("café.txt", "café.txt"),
        ("עברית.docx", "עברית.docx"),
        ("한글.txt".encode().decode("latin-1"), "한글.txt"),
        ("café – 5 €.txt".encode().decode("cp1252"), "café – 5 €.txt"),
        ("%ED%95%9C%EA%B8%80.txt", "한글.txt"),
        ("=?utf-8?B?7ZWc6riALnR4dA==?=", "한글.txt"),
        ("=?UTF-8?Q?caf=C3=A9.txt?=", "café.txt"),
        ("=?x-none?B?7ZWc?=", "=?x-none?B?7ZWc?="),
        ("=?utf-8?B?7?=", "=?utf-8?B?7?="),
        ("why=?utf-8?B?7ZWc?=", "why=?utf-8?B?7ZWc?="),
        ("a%20b.txt", "a%20b.txt"),
        ("100%.txt", "100%.txt"),
        ("%FF%FE.txt", "%FF%FE.txt"),
        ("%E9t%E9 %C3%A9.txt", "%E9t%E9 %C3%A9.txt"),
        ("50%25 off.txt", "50%25 off.txt"),
        ("say %22hi%22.txt", 'say "hi".txt'),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:\\dir\\file.txt", "file.txt"),
        ("%2E%2E%2F한.txt", "%2E%2E%2F한.txt"),
        ("%2e%2e%2f%ED%95%9C.txt", "한.txt"),
        ("cod\u202etxt.exe", "codtxt.exe"),
        ("a\x00b.pdf", "ab.pdf"),
        ("line\nbreak\u2028.txt", "linebreak.txt"),
        (" padded.txt ", "padded.txt"),
        (".env", ".env"),
        ("n" * 300, "n" * 300),
    ],
)
def test_names_are_repaired_where_they_can_have_been_nothing_else(name: str, shown: str) -> None:
    assert display_name(name) == shown
    assert PureWindowsPath(display_name(name)).name == shown


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        (b"form-data; name=\"file\"; filename*=UTF-8''%ED%95%9C%EA%B8%80.txt", "한글.txt"),
        (b"form-data; filename=\"x.txt\"; FileName* = utf-8'ko'%ED%95%9C", "한"),
        (b"form-data; filename*=iso-8859-1''caf%E9.txt; name=file", "café.txt"),
        (b"form-data; filename*=none''%E9", None),
        (b"form-data; filename*=utf-8''%E9", None),
        (b"form-data; filename*=undefined''a.txt", None),
        (b"form-data; filename*=punycode''%5c", None),
        (b"form-data; filename=\"a; filename*=utf-8''b\"", None),
        (b'form-data; filename="a.txt"', None),
    ],
)
def test_a_name_in_the_extended_form_is_read_as_it_says(
    disposition: bytes, name: str | None
) -> None:
    assert extended_name(disposition) == name


CHARSETS = sorted({*aliases.values(), "undefined", "idna", "none"})


@given(charset=st.sampled_from(CHARSETS), value=st.text(st.sampled_from("%0F5cCud8+2AA-.a")))
def test_a_name_in_any_charset_is_read_or_is_none(charset: str, value: str) -> None:
    written = extended_name(f"form-data; filename*={charset}''{value}".encode())
    for name in (written or "", f"=?{charset}?q?{value}?="):
        with suppress(InvalidRequest):
            display_name(name).encode("utf-8")


def test_a_very_long_name_keeps_its_extension() -> None:
    shown = display_name("x" * 3000 + ".docx")
    assert len(shown) == MAX_NAME
    assert shown.endswith(".docx")


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/", "\x00", " ", "\u202e", ". .", "a/.."])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        display_name(name)
    assert raised.value.param == "file"
