"""The names that clients give their files: for display and type only, never a path."""

from __future__ import annotations

import re
import unicodedata
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from urllib.parse import unquote_to_bytes

from privategpt.domain.errors import InvalidRequest

MAX_NAME = 512
"""Characters kept of a name; the end, where the extension is, is kept too."""

_KEPT_END = 20
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ENCODED_WORDS = re.compile(r"(?:=\?[\w-]{1,40}\?[bBqQ]\?[^?\s]*\?=\s*)+")
_QUOTED = re.compile(rb'"(?:\\.|[^"\\])*"')
_EXTENDED = re.compile(rb";\s*filename\*\s*=\s*([\w-]{1,40})'[^';]*'([^\s;\"]*)", re.IGNORECASE)
# Marks that make the rest of a line run the other way hide an extension: "cod.exe" as "exe.doc".
_DIRECTION_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def decoded_name(raw: bytes) -> str:
    """The name as it was meant: UTF-8, else Windows' Western set, else Latin-1."""
    for charset in ("utf-8", "cp1252"):
        try:
            return raw.decode(charset)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


def extended_name(disposition: bytes) -> str | None:
    """The name in the form `filename*=UTF-8''…`, None where a header has none that can be read.

    Forms should not have it (RFC 7578), but .NET's clients send the true name there only, and
    some send nothing else.
    """
    found = _EXTENDED.search(_QUOTED.sub(b'""', disposition))
    if found is None:
        return None
    try:
        return unquote_to_bytes(found[2]).decode(found[1].decode("ascii"))
    except (LookupError, UnicodeError):  # some of Python's codecs raise the latter itself
        return None


def display_name(name: str, *, param: str = "file") -> str:
    """A name that is safe to show and to take an extension from.

    Directories, control characters and direction overrides are dropped. UTF-8 that a client
    percent-encoded, wrote as a mail header does or read as Latin-1 is repaired where it can have
    been nothing else. Raises `InvalidRequest` where no name is left; `param` is where it was sent.
    """
    name = _without_surrogates(_without_encoded_words(_without_surrogates(name)))
    repaired = _without_escapes(_without_mojibake(name))
    last = re.split(r"[/\\]", repaired)[-1]
    shown = "".join(character for character in last if _is_shown(character)).strip()
    if shown.strip(". ") == "":
        raise InvalidRequest("The file has no name", param=param)
    if len(shown) > MAX_NAME:
        return shown[: MAX_NAME - _KEPT_END] + shown[-_KEPT_END:]
    return shown


def _is_shown(character: str) -> bool:
    return (
        unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        and character not in _DIRECTION_OVERRIDES
    )


def _without_surrogates(name: str) -> str:
    """Charsets such as UTF-7 can write halves of characters, which no other can."""
    return name.encode("utf-8", errors="ignore").decode("utf-8")


def _without_encoded_words(name: str) -> str:
    """Undo the encoding of mail headers (RFC 2047) where it is all there is."""
    if not _ENCODED_WORDS.fullmatch(name):
        return name
    try:
        return str(make_header(decode_header(name)))
    except (HeaderParseError, LookupError, ValueError):
        return name


def _without_mojibake(name: str) -> str:
    """Undo the reading of UTF-8 as a single-byte set; text that decodes by chance is very rare."""
    if name.isascii():
        return name
    for charset in ("latin-1", "cp1252"):
        try:
            return name.encode(charset).decode("utf-8")
        except UnicodeError:
            continue
    return name


def _without_escapes(name: str) -> str:
    """Undo percent-encoding of UTF-8 beyond ASCII, and of what browsers escape in names."""
    if any(not match.isascii() for match in _decoded_escapes(name)):
        try:
            return unquote_to_bytes(name).decode("utf-8")
        except UnicodeDecodeError:
            return name
    return name.replace("%22", '"').replace("%0D", "").replace("%0A", "")


def _decoded_escapes(name: str) -> list[str]:
    found: list[str] = []
    for match in _ESCAPES.findall(name):
        try:
            found.append(unquote_to_bytes(match).decode("utf-8"))
        except UnicodeDecodeError:
            continue
    return found
