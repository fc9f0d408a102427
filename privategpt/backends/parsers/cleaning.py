"""The one rule for stored text: what may be in it, and how a document is put together.

Everything later cites into this text word for word, so it is made right here and never changed
again. What goes: controls, byte order marks, soft hyphens, halves of surrogate pairs. What
stays: everything a reader can see, letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from privategpt.backends.parsers.bounds import (
    MAX_HEADING_LEVEL,
    MAX_HEADINGS,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    require,
)
from privategpt.domain.documents import Heading, Metadata, ParsedDocument

CELL_SEPARATOR = " | "

_ANSI_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Za-z0-9]|\x1b\][^\x07\x1b]*\x07")
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85]")
_ODD = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]")
_ENCODED_TWICE = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_RAISABLE = frozenset("0123456789+-−")
_RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_C1 = re.compile("[\x80-\x9f]")


def clean(text: str) -> str:
    """`text` as it may be stored: LF line ends, no controls but tab, nothing invisible."""
    if _C1.search(text):
        text = _C1.sub(_from_cp1252, _ENCODED_TWICE.sub(_decode_once_more, text))
    if "\x1b" in text:
        text = _ANSI_ESCAPE.sub("", text)
    return _ODD.sub("", _NEWLINES.sub("\n", text))


def _decode_once_more(match: re.Match[str]) -> str:
    """Undo UTF-8 that was read as Latin-1 and encoded again, where a C1 control proves it."""
    found = match[0]
    if not _C1.search(found):
        return found
    try:
        return found.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return found


def _from_cp1252(match: re.Match[str]) -> str:
    """C1 controls never stand in text; Windows' punctuation taken for Latin-1 does."""
    if match[0] == "\x85":
        return "\n"
    try:
        return match[0].encode("latin-1").decode("cp1252")
    except UnicodeDecodeError:
        return ""


def raised(text: str) -> str:
    """A number that is set as superscript, in characters that are: 10 to the power of 6 is not
    106. Anything else as it is.
    """
    bare = text.strip()
    if bare and not set(bare) - _RAISABLE:
        return text.translate(_RAISED)
    return text


def one_line(text: str) -> str:
    """Cleaned, with every run of white space as one blank: for titles and table cells."""
    if text.isprintable() and "  " not in text:
        return text.strip()  # the common case, cells by the million
    return " ".join(clean(text).split())


def require_headings(headings: Sequence[Heading]) -> None:
    """Raise `FileExceedsBounds` where one more would be more than any document has."""
    require(len(headings) < MAX_HEADINGS, f"it has over {MAX_HEADINGS:,} headings")


def noted_heading(title: str, *, start: int, level: int) -> Heading:
    """A heading as it is noted: cleaned, on one line, and no longer than a title is."""
    short = one_line(title)[:MAX_TITLE_CHARS].rstrip()
    return Heading(start=start, level=min(max(1, level), MAX_HEADING_LEVEL), title=short)


def table_row(cells: Sequence[str]) -> str:
    """A row on one line, its cells apart, empty cells kept up to the last that has text."""
    texts = [one_line(cell) for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return CELL_SEPARATOR.join(texts).strip()


def table_text(rows: Iterable[Sequence[str]]) -> str:
    """A table, one row a line, without rows and leading columns that have no text."""
    lines: list[tuple[int, str]] = []
    for row in rows:
        start = next((n for n, cell in enumerate(row) if cell.strip()), None)
        if start is not None and (line := table_row(row[start:])):
            lines.append((start, line))
    return aligned(lines)


def aligned(lines: Sequence[tuple[int, str]]) -> str:
    """Rows that begin in different columns (0-based), set so that columns stand together."""
    first = min((start for start, _ in lines), default=0)
    return "\n".join((CELL_SEPARATOR * (start - first)).lstrip() + line for start, line in lines)


class DocumentBuilder:
    """Puts a document's text together, block by block, and notes where headings start."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []

    def add(self, text: str, *, separator: str = "\n\n") -> None:
        """Append a block, cleaned; `separator` stands between it and what came before."""
        self._append(clean(text).strip("\n").rstrip(), separator)

    def heading(self, title: str, level: int) -> None:
        """Append a heading as its own block."""
        title = one_line(title)
        if not title:
            return
        start = self._append(title, "\n\n")
        self._note(title, start, level)

    def add_document(self, document: ParsedDocument) -> None:
        """Append a document's text, cleaned, with the headings that are noted in it."""
        if not document.headings:
            self.add(document.text)
            return
        start = self._append(document.text, "\n\n")
        for heading in document.headings:
            self._note(heading.title, start + heading.start, heading.level)

    def mark_heading(self, title: str, level: int) -> None:
        """Note a heading at the next block's start that is itself no part of the text."""
        start = self._length + (2 if self._parts else 0)
        self._note(title, start, level)

    def _note(self, title: str, start: int, level: int) -> None:
        require_headings(self._headings)
        self._headings.append(noted_heading(title, start=start, level=level))

    def _append(self, text: str, separator: str) -> int:
        if not text.strip():
            return self._length
        if self._parts:
            self._parts.append(separator)
            self._length += len(separator)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        require(self._length <= MAX_TEXT_CHARS, "it has too much text")
        return start

    @property
    def is_empty(self) -> bool:
        """True until something with text was added."""
        return not self._parts

    def build(
        self, *, page_label: str | None = None, metadata: Metadata | None = None
    ) -> ParsedDocument:
        """The document as it stands."""
        return ParsedDocument(
            text="".join(self._parts),
            page_label=page_label and page_label[:MAX_TITLE_CHARS],
            headings=tuple(h for h in self._headings if h.start < self._length),
            metadata=metadata or {},
        )
