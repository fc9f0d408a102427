"""Word documents in Office Open XML: paragraphs, tables, notes, comments and text boxes in the
order in which a reader meets them.

Tracked insertions count as text and tracked deletions do not; text marked hidden does not.
Footnotes, endnotes and comments follow the paragraph that refers to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.cleaning import DocumentBuilder, one_line, table_text
from privategpt.backends.parsers.file_metadata import dublin_core
from privategpt.backends.parsers.merged_cells import MergedRows, span
from privategpt.backends.parsers.packages import (
    Package,
    attribute,
    child,
    children,
    descendants,
    local,
)
from privategpt.domain.documents import ParsedFile

_DROPPED = frozenset(
    (
        *("del", "moveFrom", "delText", "instrText", "delInstrText", "rPr", "pPr", "Fallback"),
        *("rt", "pict", "tblPr", "tblGrid", "sectPr", "commentRangeStart", "commentRangeEnd"),
    )
)
_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "ptab": "\t"}
_REFERENCES = {
    "footnoteReference": "footnotes",
    "endnoteReference": "endnotes",
    "commentReference": "comments",
}
_HEADING_STYLE = re.compile(r"^(?:heading|überschrift|titre|título) ?([1-9])$", re.IGNORECASE)
_SEPARATOR_NOTES = frozenset(("separator", "continuationSeparator", "continuationNotice"))


def read_docx(package: Package, media_type: str) -> ParsedFile:
    """The document's whole text as one document."""
    main = package.main_part("word/document.xml")
    reader = _WordReader(
        levels=_style_levels(package, main),
        notes={kind: _notes(package, main, kind) for kind in _REFERENCES.values()},
    )
    body = child(package.tree(main), "body")
    for block in () if body is None else body:
        reader.read_block(block)
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
    for style_id in parents:
        ancestor, seen = style_id, {""}
        while ancestor not in own and ancestor not in seen:
            seen.add(ancestor)
            ancestor = parents.get(ancestor, "")
        if ancestor in own:
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
    return int(value) + 1 if value.isdigit() and int(value) < 9 else 0


def _notes(package: Package, main: str, kind: str) -> dict[str, str]:
    """Text of the footnotes, endnotes or comments, by id."""
    found: dict[str, str] = {}
    for part in package.related(main, kind):
        for note in package.tree(part):
            if attribute(note, "type") in _SEPARATOR_NOTES:
                continue
            reader = _WordReader(levels={}, notes={})
            for block in note:
                reader.read_block(block)
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
            reader = _WordReader(levels={}, notes={})
            for block in package.tree(part):
                reader.read_block(block)
            text = one_line(reader.builder.build().text)
            if any(map(str.isalpha, text)):
                lines.setdefault(text)
    return list(lines)


class _WordReader:
    """Walks blocks and adds them to `builder`."""

    def __init__(self, *, levels: dict[str, int], notes: dict[str, dict[str, str]]) -> None:
        self.builder = DocumentBuilder()
        self._levels = levels
        self._notes = notes
        self._pending: list[str] = []
        self._boxes: list[ET.Element] = []

    def read_block(self, block: ET.Element) -> None:
        """Add a paragraph, a table, or whatever blocks are inside `block`."""
        name = local(block)
        if name in _DROPPED:
            return
        if name == "p":
            self._read_paragraph(block)
        elif name == "tbl":
            self.builder.add(table_text(self._rows(block)))
            self._flush_pending()
        else:
            for inner in block:
                self.read_block(inner)

    def _read_paragraph(self, paragraph: ET.Element) -> None:
        text = "".join(self._pieces(paragraph))
        level = self._heading_level(paragraph)
        if level and len(text) <= 500:
            self.builder.heading(text, level)
        else:
            self.builder.add(text)
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
            if name == "t":
                yield inner.text or ""
            elif name in _CHARACTERS:
                yield _CHARACTERS[name]
            elif name in _REFERENCES:
                self._set_note_aside(name, inner)
            elif name == "txbxContent":
                self._boxes.append(inner)
            elif name == "pict":
                self._boxes.extend(descendants(inner, "txbxContent"))
            elif name in _DROPPED or (name == "r" and _is_hidden(inner)):
                continue
            else:
                yield from self._pieces(inner)

    def _set_note_aside(self, name: str, reference: ET.Element) -> None:
        notes = self._notes.get(_REFERENCES[name], {})
        if text := notes.get(attribute(reference, "id") or ""):
            self._pending.append(text)

    def _rows(self, table: ET.Element) -> Iterator[list[str]]:
        for row in table:
            name = local(row)
            if name == "tr":
                if child(row, "trPr", "del") is None:
                    yield self._row(row)
            elif name not in _DROPPED:
                yield from self._rows(row)

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
                lines.append("".join(self._pieces(block)))
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


def _is_hidden(run: ET.Element) -> bool:
    vanish = child(run, "rPr", "vanish")
    return vanish is not None and (attribute(vanish, "val") or "1") not in {"0", "false", "off"}
