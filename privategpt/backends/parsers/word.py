"""Word documents in Office Open XML: paragraphs, tables, notes, comments and text boxes in the
order in which a reader meets them.

Tracked insertions count as text and tracked deletions do not; text marked hidden does not.
Footnotes, endnotes and comments follow the paragraph that refers to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.charsets import decode
from privategpt.backends.parsers.cleaning import DocumentBuilder, one_line, raised, table_text
from privategpt.backends.parsers.equations import equation_text
from privategpt.backends.parsers.file_metadata import dublin_core
from privategpt.backends.parsers.graphics import graphic_texts
from privategpt.backends.parsers.html_reader import read_html
from privategpt.backends.parsers.mail import read_mail
from privategpt.backends.parsers.merged_cells import MergedRows, span
from privategpt.backends.parsers.packages import (
    Package,
    attribute,
    child,
    children,
    descendants,
    local,
)
from privategpt.backends.parsers.word_numbering import Numbering, read_numbering, speaking_ancestors
from privategpt.backends.parsers.word_signs import field_sign, symbol
from privategpt.domain.documents import ParsedDocument, ParsedFile

_DROPPED = frozenset(
    (
        *("del", "moveFrom", "delText", "instrText", "delInstrText", "rPr", "pPr", "Fallback"),
        *("rt", "pict", "tblPr", "tblGrid", "sectPr", "commentRangeStart", "commentRangeEnd"),
    )
)
_TEXTS: dict[str, Callable[[ET.Element], str]] = {
    "t": lambda element: element.text or "",
    **dict.fromkeys(("tab", "ptab"), lambda _: "\t"),
    **dict.fromkeys(("br", "cr"), lambda _: "\n"),
    "noBreakHyphen": lambda _: "\u2011",
    "oMath": equation_text,
    "sym": symbol,
    "ffData": field_sign,
}
_REFERENCES = {
    "footnoteReference": "footnotes",
    "endnoteReference": "endnotes",
    "commentReference": "comments",
}
_HEADING_STYLE = re.compile(r"^(?:heading|überschrift|titre|título) ?([1-9])$", re.IGNORECASE)
_MAX_LAYOUT_NESTING = 10
_MIME = re.compile(rb"(?:[a-z-]+:.*\r?\n)*?mime-version:", re.IGNORECASE)
_NONE: Mapping[str, Any] = MappingProxyType({})
_SEPARATOR_NOTES = frozenset(("separator", "continuationSeparator", "continuationNotice"))


def read_docx(package: Package, media_type: str) -> ParsedFile:
    """The document's whole text as one document."""
    main = package.main_part("word/document.xml")
    reader = _WordReader(
        levels=_style_levels(package, main),
        notes={kind: _notes(package, main, kind) for kind in _REFERENCES.values()},
        numbering=read_numbering(package, main),
        parts=_Parts(package, main),
    )
    body = child(package.tree(main), "body")
    for block in () if body is None else body:
        reader.read_block(block)
    reader.end()
    for line in _running_lines(package, main):
        reader.builder.add(line)
    documents = () if reader.builder.is_empty else (reader.builder.build(),)
    metadata = dublin_core(package, "docProps/core.xml")
    return ParsedFile(media_type=media_type, documents=documents, metadata=metadata)


def _style_levels(package: Package, main: str) -> dict[str, int]:
    """Heading level of each paragraph style that has one, inherited through `basedOn`."""
    own: dict[str, int] = {}
    parents: dict[str, str] = {}
    for part in package.related(main, "styles"):
        for style in children(package.tree(part), "style"):
            style_id = attribute(style, "styleId") or ""
            if (level := _own_level(style)) is not None:
                own[style_id] = level
            if (parent := child(style, "basedOn")) is not None:
                parents[style_id] = attribute(parent, "val") or ""
    levels = dict(own)
    for style_id, ancestor in speaking_ancestors(parents, own):
        levels[style_id] = own[ancestor]
    return {style_id: level for style_id, level in levels.items() if level}


def _own_level(style: ET.Element) -> int | None:
    """1 to 9, 0 where the style says body text, None where it says nothing."""
    if (outline := child(style, "pPr", "outlineLvl")) is not None:
        return _level(outline)
    name_element = child(style, "name")
    name = "" if name_element is None else attribute(name_element, "val") or ""
    if name.lower() == "title":
        return 1
    match = _HEADING_STYLE.match(name)
    return int(match[1]) if match else None


def _level(outline: ET.Element) -> int:
    value = attribute(outline, "val") or ""
    return int(value) + 1 if value.isdecimal() and int(value) < 9 else 0


def _notes(package: Package, main: str, kind: str) -> dict[str, str]:
    """Text of the footnotes, endnotes or comments, by id."""
    found: dict[str, str] = {}
    for part in package.related(main, kind):
        for note in package.tree(part):
            if attribute(note, "type") in _SEPARATOR_NOTES:
                continue
            reader = _WordReader()
            for block in note:
                reader.read_block(block)
            reader.end()
            text = one_line(reader.builder.build().text)
            author = attribute(note, "author")
            if text and kind == "comments":
                text = f"Comment by {author}: {text}" if author else f"Comment: {text}"
            found[attribute(note, "id") or ""] = text
    return found


def _running_lines(package: Package, main: str) -> list[str]:
    """Headers and footers, each text once."""
    lines: dict[str, None] = {}
    for kind in ("header", "footer"):
        for part in package.related(main, kind):
            reader = _WordReader()
            for block in package.tree(part):
                reader.read_block(block)
            reader.end()
            text = one_line(reader.builder.build().text)
            if any(map(str.isalpha, text)):
                lines.setdefault(text)
    return list(lines)


class _Parts:
    """What the main part refers to: charts, diagrams, and pieces of other documents."""

    def __init__(self, package: Package, main: str) -> None:
        self._package = package
        self._relations = package.relationships(main)

    def graphics(self, drawing: ET.Element) -> Iterator[str]:
        """The texts of charts and diagrams."""
        return graphic_texts(self._package, self._relations, drawing)

    def piece(self, reference: ET.Element) -> ParsedDocument:
        """A web page that was put in as it was (`altChunk`), which some programs write all of
        their text as.
        """
        # Once each: a part can be referred to a million times.
        _, part = self._relations.pop(attribute(reference, "id") or "", ("", ""))
        data = self._package.read(part) if part in self._package else b""
        if _MIME.match(data):
            pages = read_mail(data, "").documents
            return pages[0] if pages else ParsedDocument(text="")
        is_text = part.lower().endswith((".htm", ".html", ".xhtml", ".txt"))
        return read_html(decode(data, declared=True) if is_text else "").builder.build()


class _WordReader:
    """Walks blocks and adds them to `builder`; `end` is for what the last one left open."""

    def __init__(
        self,
        *,
        levels: Mapping[str, int] = _NONE,
        notes: Mapping[str, Mapping[str, str]] = _NONE,
        numbering: Numbering | None = None,
        parts: _Parts | None = None,
    ) -> None:
        self.builder = DocumentBuilder()
        self._levels = levels
        self._notes = notes
        self._numbering = numbering
        self._parts = parts
        self._pending: list[str] = []
        self._boxes: list[ET.Element] = []
        self._open = ""
        self._nesting = 0

    def read_block(self, block: ET.Element) -> None:
        """Add a paragraph, a table, or whatever blocks are inside `block`."""
        name = local(block)
        if name in _DROPPED:
            return
        if name == "p":
            self._read_paragraph(block)
        elif name == "tbl":
            self.end()
            self._read_table(block)
        elif name == "altChunk" and self._parts:
            self.builder.add_document(self._parts.piece(block))
        else:
            for inner in block:
                self.read_block(inner)

    def end(self) -> None:
        """Add a paragraph whose end is deleted, and that no other follows."""
        text, self._open = self._open, ""
        self.builder.add(text)
        self._flush_pending()

    def _read_paragraph(self, paragraph: ET.Element) -> None:
        text = self._open + self._paragraph_text(paragraph)
        if child(paragraph, "pPr", "rPr", "del") is not None:
            self._open = text
            return
        self._open = ""
        level = self._heading_level(paragraph)
        if level and len(text) <= 500:
            self.builder.heading(text, level)
        else:
            self.builder.add(text)
        self._flush_pending()

    def _paragraph_text(self, paragraph: ET.Element) -> str:
        """With the number that stands before it."""
        text = "".join(self._pieces(paragraph))
        gone = not text.strip() and child(paragraph, "pPr", "rPr", "del") is not None
        if self._numbering is None or gone:
            return text
        number = self._numbering.label(child(paragraph, "pPr"))
        return f"{number} {text}" if number and text.strip() else text

    def _read_table(self, table: ET.Element) -> None:
        if self._nesting < _MAX_LAYOUT_NESTING and _is_layout(table):
            self._nesting += 1
            for block in (block for cell in _all_cells(table) for block in cell):
                self.read_block(block)
            self.end()
            self._nesting -= 1
        else:
            self.builder.add(table_text(self._rows(table)))
        self._flush_pending()

    def _flush_pending(self) -> None:
        """Add what the last block referred to: text boxes, then notes."""
        boxes, self._boxes = self._boxes, []
        pending, self._pending = self._pending, []
        for box in boxes:
            for block in box:
                self.read_block(block)
        for note in pending:
            self.builder.add(note)

    def _heading_level(self, paragraph: ET.Element) -> int:
        properties = child(paragraph, "pPr")
        if properties is None:
            return 0
        if (outline := child(properties, "outlineLvl")) is not None:
            return _level(outline)
        style = child(properties, "pStyle")
        return 0 if style is None else self._levels.get(attribute(style, "val") or "", 0)

    def _pieces(self, element: ET.Element) -> Iterator[str]:
        """The text of a paragraph's runs; what hangs on them is set aside until its end."""
        for inner in element:
            name = local(inner)
            if name in _TEXTS:
                yield _TEXTS[name](inner)
            elif name in _REFERENCES:
                self._set_note_aside(name, inner)
            elif name == "txbxContent":
                self._boxes.append(inner)
            elif name == "pict":
                self._boxes.extend(descendants(inner, "txbxContent"))
            elif name in _DROPPED or (name == "r" and _is_hidden(inner)):
                continue
            elif name == "r" and _is_raised(inner):
                yield raised("".join(self._pieces(inner)))
            else:
                if name == "graphicData" and self._parts:
                    self._pending.extend(self._parts.graphics(inner))
                yield from self._pieces(inner)

    def _set_note_aside(self, name: str, reference: ET.Element) -> None:
        notes = self._notes.get(_REFERENCES[name], {})
        if text := notes.get(attribute(reference, "id") or ""):
            self._pending.append(text)

    def _rows(self, table: ET.Element) -> Iterator[list[str]]:
        return map(self._row, _all_rows(table))

    def _row(self, row: ET.Element) -> list[str]:
        """Cells that are merged downwards are there and empty; those to the right are not."""
        merged = MergedRows()
        for cell in _cells(row):
            width = child(cell, "tcPr", "gridSpan")
            columns = span(None if width is None else attribute(width, "val"))
            merged.add(self._cell_text(cell), columns=columns)
        return merged.end()

    def _cell_text(self, cell: ET.Element) -> str:
        lines: list[str] = []
        for block in cell:
            name = local(block)
            if name == "p":
                lines.append(self._paragraph_text(block))
            elif name == "tbl":
                lines.extend(" ".join(row) for row in self._rows(block))
            elif name not in _DROPPED:
                lines.append(self._cell_text(block))
        return "\n".join(lines)


def _cells(row: ET.Element) -> Iterator[ET.Element]:
    for inner in row:
        if local(inner) == "tc":
            yield inner
        elif local(inner) not in _DROPPED:
            yield from _cells(inner)


def _is_layout(table: ET.Element) -> bool:
    """True for a table that only puts blocks in places: a frame around text, or around others."""
    rows = [list(_cells(row)) for row in _all_rows(table)]
    if all(len(cells) < 2 for cells in rows):
        return True
    cells = (cell for row in rows for cell in row)
    inner = [block for cell in cells for block in cell if local(block) == "tbl"]
    return bool(inner) and 2 * sum(map(_letters, inner)) > _letters(table)


def _letters(element: ET.Element) -> int:
    return sum(len(run.text or "") for run in descendants(element, "t"))


def _all_rows(table: ET.Element) -> Iterator[ET.Element]:
    for inner in table:
        if local(inner) == "tr":
            if child(inner, "trPr", "del") is None:
                yield inner
        elif local(inner) not in _DROPPED:
            yield from _all_rows(inner)


def _all_cells(table: ET.Element) -> Iterator[ET.Element]:
    for row in _all_rows(table):
        yield from _cells(row)


def _is_raised(run: ET.Element) -> bool:
    place = child(run, "rPr", "vertAlign")
    return place is not None and attribute(place, "val") == "superscript"


def _is_hidden(run: ET.Element) -> bool:
    vanish = child(run, "rPr", "vanish")
    return vanish is not None and (attribute(vanish, "val") or "1") not in {"0", "false", "off"}
