"""Rich Text Format: a tokenizer and a state per group, after Microsoft's specification 1.9.1.

Bytes are decoded by the character set of the font they are set in, which is what carries
Japanese, Russian or Arabic in files without Unicode escapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from privategpt.backends.parsers.bounds import MAX_TEXT_CHARS, require
from privategpt.backends.parsers.cleaning import DocumentBuilder, one_line, raised, table_row
from privategpt.backends.parsers.file_metadata import facts
from privategpt.domain.documents import Metadata, ParsedFile

_TOKEN = re.compile(
    rb"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\",
    re.IGNORECASE | re.DOTALL,
)
_SKIPPED = frozenset(
    b"colortbl stylesheet listtable listoverridetable revtbl rsidtbl generator pict object"
    b" ftnsep ftnsepc aftnsep themedata colorschememapping datastore latentstyles xmlnstbl fldinst"
    b" nonshppict filetbl bkmkstart bkmkend template private xe tc nesttableprops nonesttables"
    b" atrfstart atrfend atnref".split()
)
_ASIDES = {
    **dict.fromkeys(
        b"header headerl headerr headerf footer footerl footerr footerf".split(), "running"
    ),
    **{b"footnote": "note", b"annotation": "comment", b"listtext": "number", b"pntext": "number"},
}
"""What stands in the middle of a paragraph and is read elsewhere."""

_LOOKS = frozenset(b"plain v deleted super nosupersub sub".split())
_NUMBER = re.compile(r"\(?\w{1,9}(?:\.\w{1,9}){0,8}(?:[.):]|(?<=\d))")
"""What counts. A bullet is a letter too, of a font without letters."""
_INFO = {b"title": "title", b"author": "author"}
_CHARACTERS = {
    **{b"tab": "\t", b"line": "\n", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“"},
    **{b"rdblquote": "”", b"emdash": "—", b"endash": "–", b"bullet": "•", b"emspace": "\u2003"},
    **{b"enspace": "\u2002", b"_": "\u2011", b"~": "\xa0"},
}
_PARAGRAPH_ENDS = frozenset((b"par", b"sect", b"page"))
_CHARSET_CODECS = {
    **{0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030"},
    **{136: "big5", 161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256"},
    **{186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 255: "cp437"},
}
_CODEPAGES = {936: "gb18030", 950: "big5", 10000: "mac_roman", 65001: "utf-8", 0: "cp1252"}


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits and a closing brace restores."""

    destination: str = "text"
    font: int = 0
    skip_after_unicode: int = 1
    in_table: bool = False
    hidden: bool = False
    raised: bool = False
    outline: int | None = None
    outer: str = "text"


def read_rtf(data: bytes, media_type: str) -> ParsedFile:
    """The document's text, tables by row."""
    reader = _RtfReader()
    for match in _TOKEN.finditer(data):
        reader.read_token(match)
    reader.end()
    documents = () if reader.builder.is_empty else (reader.builder.build(),)
    return ParsedFile(media_type=media_type, documents=documents, metadata=reader.metadata)


class _RtfReader:
    def __init__(self) -> None:
        self.builder = DocumentBuilder()
        self._state = _State()
        self._stack: list[_State] = []
        self._fonts: dict[int, str] = {}
        self._codepage = "cp1252"
        self._default_font = 0
        self._bytes = bytearray()
        self._bytes_codec = "cp1252"
        self._text: list[str] = []
        self._row: list[str] = []
        self._row_open = False
        self._to_skip = 0
        self._optional = False
        self._info: dict[str, list[str]] = {}
        self._chars = 0
        self._aside: list[str] = []
        self._notes: list[str] = []
        self._running: dict[str, None] = {}

    @property
    def metadata(self) -> Metadata:
        """What the info group states."""
        stated = {name: "".join(parts) for name, parts in self._info.items()}
        return facts(
            title=stated.get("title"), author=stated.get("author"), date=stated.get("date")
        )

    def read_token(self, match: re.Match[bytes]) -> None:
        """Take the next token of the file."""
        word, number, hexadecimal, symbol, brace, text = match.groups()
        if hexadecimal:
            self._add_bytes(bytes([int(hexadecimal, 16)]))
        elif text:
            self._add_bytes(text)
        elif brace:
            self._read_brace(brace)
        elif symbol:
            self._read_symbol(symbol)
        elif word:
            self._optional, optional = False, self._optional
            self._read_word(word, None if number is None else int(number), optional=optional)

    def end(self) -> None:
        """Flush what the last paragraph left; headers and footers come last, each once."""
        self._end_paragraph()
        self._end_row()
        self._add_notes()
        for line in self._running:
            self.builder.add(line)

    def _read_brace(self, brace: bytes) -> None:
        self._flush_bytes()
        if brace == b"{":
            self._stack.append(self._state)
            require(len(self._stack) < 10_000, "its groups are nested too deeply")
        elif self._stack:
            ended, self._state = self._state.destination, self._stack.pop()
            if ended != self._state.destination and ended in _ASIDES.values():
                self._end_aside(ended)
        self._to_skip = 0

    def _end_aside(self, kind: str) -> None:
        text = one_line(_join_surrogates("".join(self._aside)))
        self._aside.clear()
        if kind == "number" and _NUMBER.fullmatch(text):
            self._text.append(f"{text} ")
        elif kind == "note" and text:
            self._notes.append(text)
        elif kind == "comment" and text:
            self._notes.append(f"Comment: {text}")
        elif kind == "running" and any(map(str.isalpha, text)):
            self._running.setdefault(text)

    def _read_symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._optional = True
        elif symbol in b"\\{}":
            self._add_bytes(symbol)
        elif symbol in b"\r\n":
            self._end_paragraph()
        elif symbol in _CHARACTERS:
            self._flush_bytes()
            self._add_text(_CHARACTERS[symbol])

    def _read_word(self, word: bytes, number: int | None, *, optional: bool) -> None:
        if word == b"u" and number is not None:
            self._add_unicode(number)
            return
        self._flush_bytes()
        if word in _CHARACTERS:
            self._add_text(_CHARACTERS[word])
        elif word in _PARAGRAPH_ENDS:
            self._end_paragraph()
        elif word == b"trowd":
            if not self._state.in_table and "".join(self._text).strip():
                self._end_paragraph()
        elif word in {b"cell", b"nestcell"}:
            self._row.append("".join(self._text))
            self._text.clear()
        elif word in {b"row", b"nestrow"}:
            self._end_row()
        elif not self._read_destination(word, optional=optional):
            self._read_property(word, number)

    def _read_destination(self, word: bytes, *, optional: bool) -> bool:
        if word in _SKIPPED:
            self._state = replace(self._state, destination="skipped")
        elif word in _ASIDES and self._state.destination != "skipped":
            self._state = replace(self._state, destination=_ASIDES[word], in_table=False)
        elif word == b"fonttbl":
            self._state = replace(self._state, destination="fonts")
        elif word == b"info":
            self._state = replace(self._state, destination="skipped")
        elif word in _INFO and self._stack and self._state.destination != "twin":
            self._state = replace(self._state, destination=_INFO[word])
        elif word == b"upr":
            # Twice the same: in bytes, with all its groups, then, in a `ud` group, in Unicode.
            self._state = replace(self._state, destination="twin", outer=self._state.destination)
        elif word == b"ud":
            self._state = replace(self._state, destination=self._state.outer)
        elif word in {b"shptxt", b"fldrslt"}:
            return True
        elif optional:
            # "Ignore what you do not know": but a shape's text stands in unknown groups.
            known = word in {b"shpinst", b"nesttableprops"}
            self._state = self._state if known else replace(self._state, destination="skipped")
        else:
            return False
        return True

    def _read_property(self, word: bytes, number: int | None) -> None:
        value = 1 if number is None else number
        if word in _LOOKS:
            self._read_look(word, value)
        elif word == b"f":
            self._state = replace(self._state, font=value)
        elif word == b"fcharset" and self._state.destination == "fonts":
            self._fonts[self._state.font] = _CHARSET_CODECS.get(value, "cp1252")
        elif word == b"deff":
            self._default_font = value
            self._state = replace(self._state, font=value)
        elif word == b"ansicpg":
            self._codepage = _codepage(value)
        elif word == b"mac":
            self._codepage = "mac_roman"
        elif word == b"uc":
            self._state = replace(self._state, skip_after_unicode=max(0, value))
        elif word == b"outlinelevel":
            self._state = replace(self._state, outline=value)
        elif word == b"pard":
            self._state = replace(self._state, in_table=False, outline=None)
        elif word == b"intbl":
            self._state = replace(self._state, in_table=True)
        elif word == b"yr" and self._state.destination == "skipped":
            self._info.setdefault("date", [str(value)])

    def _read_look(self, word: bytes, value: int) -> None:
        if word == b"plain":
            self._state = replace(self._state, font=self._default_font, hidden=False, raised=False)
        elif word in {b"v", b"deleted"}:
            self._state = replace(self._state, hidden=value != 0)
        else:
            self._state = replace(self._state, raised=word == b"super" and value != 0)

    def _add_bytes(self, data: bytes) -> None:
        skipped = min(self._to_skip, len(data))
        self._to_skip -= skipped
        codec = self._fonts.get(self._state.font, self._codepage)
        if codec == "cp1252":
            codec = self._codepage
        if codec != self._bytes_codec:
            self._flush_bytes()
            self._bytes_codec = codec
        self._bytes += data[skipped:]

    def _flush_bytes(self) -> None:
        if self._bytes:
            text = _decoded(bytes(self._bytes), self._bytes_codec)
            self._bytes.clear()
            self._add_text(text)

    def _add_unicode(self, number: int) -> None:
        self._flush_bytes()
        code = number % 0x10000 if number < 0 else number
        self._add_text(chr(code) if code <= 0x10FFFF else "")
        self._to_skip = self._state.skip_after_unicode

    def _add_text(self, text: str) -> None:
        if self._state.hidden:
            return
        text = raised(text) if self._state.raised else text
        if self._state.destination == "text":
            self._text.append(text)
            self._chars += len(text)
            require(self._chars <= MAX_TEXT_CHARS, "it has too much text")
        elif self._state.destination in _ASIDES.values():
            self._aside.append(text)
            self._chars += len(text)
            require(self._chars <= MAX_TEXT_CHARS, "it has too much text")
        elif self._state.destination in {"title", "author"}:
            self._info.setdefault(self._state.destination, []).append(text)

    def _end_paragraph(self) -> None:
        self._flush_bytes()
        if self._state.destination in _ASIDES.values():
            self._aside.append("\n")
        if self._state.destination != "text":
            return
        if self._state.in_table:
            self._text.append("\n")
            return
        self._end_row()
        text = _join_surrogates("".join(self._text))
        self._text.clear()
        self._row_open = False
        if self._state.outline is not None and self._state.outline < 9:
            self.builder.heading(text, self._state.outline + 1)
        else:
            self.builder.add(text)
        self._add_notes()

    def _add_notes(self) -> None:
        for note in self._notes:
            self.builder.add(note)
        self._notes.clear()

    def _end_row(self) -> None:
        if line := table_row([_join_surrogates(cell) for cell in self._row]):
            self.builder.add(line, separator="\n" if self._row_open else "\n\n")
            self._row_open = True
        self._row.clear()


def _codepage(number: int) -> str:
    return _CODEPAGES.get(number, f"cp{number}")


def _decoded(data: bytes, codec: str) -> str:
    for attempt in (codec, "cp1252", "latin-1"):
        try:
            return data.decode(attempt)
        except (UnicodeDecodeError, LookupError):
            continue
    raise AssertionError("latin-1 decodes every byte")


def _join_surrogates(text: str) -> str:
    r"""Pairs written as two `\u` escapes become one character; a lone half is dropped later."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
