"""Bytes become characters without losing one."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.parsers import charsets
from privategpt.backends.parsers.charsets import declared_encoding, decode
from privategpt.backends.parsers.cleaning import clean
from privategpt.domain.errors import CorruptFile, UnsupportedFileType

_TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff"))


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp1252", "The café’s logo © 2024 is a ® mark — “quoted”."),
        ("cp1252", "© Acme ® it’s"),
        ("cp1252", "Bücher über Größe. Müller schläft."),
        ("cp1252", "L'été à la plage, ça va être génial, garçon. Où êtes-vous?"),
        ("cp1252", "Él niño comió piña. ¿Qué tal? ¡Olé!"),
        ("cp1252", "Året børn går på skole, blåbærsyltetøj."),
        ("cp1252", "price £5 and €3 – naïve"),
        ("cp1252", "It’s 5 € — “ok”"),
        ("cp1252", "100 °C ± 5 µm"),
        ("cp1252", "ÜBERGRÖSSE"),
        ("cp1250", "Zażółć gęślą jaźń, cześć świecie."),
        ("cp1250", "Dnes je pěkný den a jdeme na procházku do města."),
        ("cp1250", "Árvíztűrő tükörfúrógép"),
        ("cp1251", "Привет, мир. Это простой текст для проверки."),
        ("koi8_r", "Привет, мир. Это простой текст."),
        ("cp1253", "Καλημέρα κόσμε, αυτό είναι ένα κείμενο."),
        ("cp1254", "Şu gün İstanbul'da güneş çok parlıyor, ağaçlar yeşil."),
        ("cp1255", "שלום עולם, זה טקסט פשוט לבדיקה."),
        ("cp1256", "مرحبا بالعالم، هذا نص بسيط."),
        ("cp874", "ภาษาไทยเป็นภาษาที่สวยงาม"),
        ("cp932", "これは日本語のテキストです。髙橋さん。"),
        ("euc_jp", "これは日本語のテキストです。漢字も含まれます。"),
        ("gb18030", "你好，世界。这是一个简单的文本文件。"),
        ("big5", "這是一個簡單的中文測試文字。"),
        ("cp949", "안녕하세요 세계. 이것은 간단한 텍스트입니다."),
    ],
)
def test_an_undeclared_charset_is_told_by_how_the_text_reads(codec: str, text: str) -> None:
    assert decode(text.encode(codec)) == text


@given(_TEXTS)
def test_utf8_is_never_taken_for_anything_else(text: str) -> None:
    assert decode(text.encode()) == text


@pytest.mark.parametrize(
    ("bom", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@given(text=_TEXTS)
def test_a_byte_order_mark_decides_and_is_no_text(bom: bytes, codec: str, text: str) -> None:
    assert decode(bom + text.encode(codec)) in {text, text.removeprefix("\0")}


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_shows_by_its_nuls(codec: str) -> None:
    assert decode("Hamburgers are delicious – über".encode(codec)) == (
        "Hamburgers are delicious – über"
    )


def test_a_pattern_of_nuls_that_is_no_utf16_is_binary() -> None:
    with pytest.raises(UnsupportedFileType):
        decode(b"\xd8\0\xd8\0" * 2 + b"\0\xd8" * 40)


def test_a_declared_charset_is_believed_where_it_decodes() -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-5">Мир и май'
    assert decode(page.encode("iso-8859-5"), declared=True) == page


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="undefined">',
        "Content-Transfer-Encoding: base64\n\n",
        "Content-Transfer-Encoding: quoted-printable\n\n",
        "# coding: idna\n",
    ],
)
def test_a_declaration_of_what_is_no_charset_is_no_harm(head: str) -> None:
    page = head + "Übergrößenträger, schön für Bäcker"
    assert decode(page.encode("cp1252"), declared=True) == page


def test_a_declared_charset_that_lies_is_found_out() -> None:
    page = '<?xml version="1.0" encoding="shift_jis"?><p>Übergrößenträger, schön für Bäcker</p>'
    assert decode(page.encode("cp1252"), declared=True) == page


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b'<meta charset="gb2312">', "gb18030"),
        (b"<META charset=iso-8859-1>", "cp1252"),
        (b"# -*- coding: koi8-r -*-", "koi8-r"),
        (b'<meta charset="no-such-thing">', None),
        (b'<?xml version="1.0" encoding="UTF-16"?>', None),
        (b"<p>nothing</p>", None),
    ],
)
def test_labels_mean_what_browsers_take_them_for(head: bytes, encoding: str | None) -> None:
    assert declared_encoding(head) == encoding


def test_text_that_breaks_its_own_mark_is_refused_and_not_repaired_in_silence() -> None:
    with pytest.raises(CorruptFile, match="byte 3"):
        decode(codecs.BOM_UTF8 + b"abc\xff")


@pytest.mark.parametrize("data", [bytes(range(256)) * 20, b"\0" * 500, b"\x01\x02\x03\x04" * 50])
def test_binary_data_is_no_text(data: bytes) -> None:
    with pytest.raises(UnsupportedFileType):
        decode(data)


def test_text_that_reads_like_nothing_is_left_to_statistics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_guess(data: bytes) -> None:
        return None

    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
    monkeypatch.setattr(charsets, "guess", no_guess)
    assert decode(text.encode("cp1251")) == text


def test_text_in_no_known_charset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(data: bytes) -> list[str]:
        return []

    monkeypatch.setattr(charsets, "guess", nothing)
    monkeypatch.setattr(charsets, "from_bytes", nothing)
    with pytest.raises(CorruptFile, match="character set"):
        decode("╔══════╗\n║ drawn ║\n".encode("cp437") * 3)


@given(st.text())
def test_stored_text_holds_no_control_mark_or_half_character(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    cleaned.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\t\n" for c in cleaned)
    assert not set(cleaned) & {"\x7f", "\xad", "\ufeff", "\ufffe", "\uffff"}
    assert not any("\x80" <= c <= "\x9f" for c in cleaned)


@given(st.text(st.characters(min_codepoint=0xA1, max_codepoint=0xD7FF)))
def test_whatever_people_can_see_stays(text: str) -> None:
    assert clean(text) == text.replace("\xad", "")


@pytest.mark.parametrize(
    ("raw", "stored"),
    [
        ("a\0b", "ab"),
        ("one\r\ntwo\rthree\x0cfour", "one\ntwo\nthree\nfour"),
        ("\ufeffstart", "start"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07end", "red end"),
        ("hy\xadphen", "hyphen"),
        ("It\x92s \x93so\x94\x81", "It’s “so”"),
        ("2001\xe2\x80\x932004, caf\xe9", "2001–2004, café"),
        ("a\x85b", "a\nb"),
        ("\xe2\x80\u0041", "â€A"),
        ("\ud800x\udfff", "x"),
    ],
)
def test_what_no_reader_sees_goes(raw: str, stored: str) -> None:
    assert clean(raw) == stored


@pytest.mark.parametrize(
    ("codec", "text"),
    [("iso2022_jp", "請求書の番号は12345です。\n支払い"), ("iso2022_kr", "계약 번호는 2024")],
)
def test_text_that_switches_between_sets_of_characters_is_read(codec: str, text: str) -> None:
    assert decode(text.encode(codec)) == text


def test_colours_of_a_terminal_switch_nothing() -> None:
    assert decode(b"\x1b[31mred\x1b[0m costs \x1b$5") == "\x1b[31mred\x1b[0m costs \x1b$5"
