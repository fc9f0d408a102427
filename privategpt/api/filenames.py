"""The names that clients give their files: for display and type only, never a path."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote_to_bytes

from privategpt.domain.errors import InvalidRequest

MAX_NAME = 512
"""Characters kept of a name; the end, where the extension is, is kept too."""

_KEPT_END = 20
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
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


def display_name(name: str) -> str:
    """A name that is safe to show and to take an extension from.

    Directories, control characters and direction overrides are dropped. UTF-8 that a client
    percent-encoded or read as Latin-1 is repaired where it can have been nothing else. Raises
    `InvalidRequest` where no name is left.
    """
    repaired = _without_escapes(_without_mojibake(name))
    last = re.split(r"[/\\]", repaired)[-1]
    shown = "".join(character for character in last if _is_shown(character)).strip()
    if shown.strip(". ") == "":
        raise InvalidRequest("The file has no name", param="file")
    if len(shown) > MAX_NAME:
        return shown[: MAX_NAME - _KEPT_END] + shown[-_KEPT_END:]
    return shown


def _is_shown(character: str) -> bool:
    return (
        unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        and character not in _DIRECTION_OVERRIDES
    )


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
