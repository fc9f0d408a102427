"""Bytes to characters, losing none: BOM, escape sequences, strict UTF-8, UTF-16 by its NULs, what
the file declares, how it reads, then charset-normalizer's opinion, in that order.

A character set that is merely guessed must decode every byte; nothing is ever replaced or
left out in silence.
"""

from __future__ import annotations

import codecs
import re

from charset_normalizer import CharsetMatch, from_bytes

from privategpt.backends.parsers.charset_guess import guess
from privategpt.domain.errors import CorruptFile, UnsupportedFileType

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"""(?:<\?xml[^>]{0,200}?encoding\s*=|<meta[^>]{0,400}?charset\s*=|coding[:=])"""
    rb"""\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""",
    re.IGNORECASE,
)
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
}
"""What browsers read for these labels (WHATWG Encoding): supersets that files really use."""

_SWITCHES = {b"\x1b$)C": "iso2022_kr", b"\x1b$": "iso2022_jp_ext"}
"""How such texts announce themselves (RFC 1557, RFC 1468)."""

_SAMPLE_BYTES = 200_000
_TEXT_CONTROLS = b"\t\n\r\x0c\x08\x1b"
_CONTROLS = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS)


def decode(data: bytes, *, declared: bool = False) -> str:
    """The text that `data` is; `declared` honours a charset named in its first kilobytes.

    Raises `UnsupportedFileType` for binary data and `CorruptFile` for text in no known charset.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _decode_marked(data[len(bom) :], encoding)
    if wide := _wide_by_nuls(data):
        return data.decode(wide)
    if (switched := _switched(data)) is not None:
        return switched
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        _refuse_binary(data, share=0.01)
    else:
        _refuse_binary(data, share=0.3)
        return text
    named = declared_encoding(data) if declared else None
    said = decoded(data, named) if named else None
    # Without a declaration, or where it lies or the text is damaged, find out what it is.
    return _decode_guessed(data) if said is None else said


def decoded(data: bytes, charset: str) -> str | None:
    """`data` by the charset that a file names, None where that is no charset, or not this one.

    Python knows codecs that are none ("base64", "undefined"), which raise what they like.
    """
    try:
        return data.decode(charset)
    except (LookupError, ValueError):
        return None


def declared_encoding(data: bytes) -> str | None:
    """The codec that an XML declaration, an HTML meta or a coding comment names, if we have it."""
    match = _DECLARATION.search(data[:4096])
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode("ascii")).name
    except LookupError:
        return None
    return None if name.startswith(("utf-16", "utf-32")) else _WIDER.get(name, name)


def _decode_marked(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise CorruptFile(
            f"The file's byte order mark says {encoding}, but byte {error.start} is not"
        ) from error


def _wide_by_nuls(data: bytes) -> str | None:
    """UTF-16 without a BOM: every other byte of mostly Western text is NUL."""
    if len(data) < 4 or len(data) % 2:
        return None
    sample = data[:_SAMPLE_BYTES]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) / 2
    for encoding, nuls, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if nuls > 0.4 * half and others < 0.05 * half:
            try:
                data.decode(encoding)
            except UnicodeDecodeError:
                return None
            return encoding
    return None


def _switched(data: bytes) -> str | None:
    """Text in seven bits that switches between sets of characters, as Japanese mail does."""
    for sign, codec in _SWITCHES.items():
        if sign in data and data.isascii():
            return decoded(data, codec)
    return None


def _refuse_binary(data: bytes, *, share: float) -> None:
    sample = data[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > max(2, share * len(sample)):
        raise UnsupportedFileType("The file is binary data of a kind that no parser reads")


def _decode_guessed(data: bytes) -> str:
    if encoding := guess(data):
        return data.decode(encoding)
    for match in sorted(from_bytes(data[:_SAMPLE_BYTES]), key=_mess):
        try:
            return data.decode(match.encoding)
        except UnicodeDecodeError:
            continue
    raise CorruptFile("The file is not text in any known character set")


def _mess(match: CharsetMatch) -> float:
    return match.chaos - match.coherence
