"""OpenDocument: texts, spreadsheets (a document per sheet), presentations (one per slide)."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.bounds import MAX_CELLS, require
from privategpt.backends.parsers.cleaning import DocumentBuilder, one_line, table_text
from privategpt.backends.parsers.file_metadata import dublin_core
from privategpt.backends.parsers.opendocument_lists import Lists, read_lists
from privategpt.backends.parsers.packages import Package, attribute, child, descendants, local
from privategpt.domain.documents import ParsedDocument, ParsedFile
from privategpt.domain.errors import EncryptedFile

_DROPPED = frozenset(
    (
        *("tracked-changes", "forms", "sequence-decls", "note-citation", "ruby-text", "creator"),
        *("table-column", "shapes", "date", "settings", "object", "object-ole", "image"),
        "event-listeners",
    )
)
_BLOCK_CONTAINERS = frozenset(
    (
        *("text-box", "annotation", "note", "custom-shape", "rect", "ellipse", "circle", "line"),
        *("polygon", "polyline", "path", "connector", "caption", "regular-polygon"),
    )
)
_MAX_BLANKS = 100
_MAX_REPEATED_BLANK = 30


def read_opendocument(package: Package, media_type: str) -> ParsedFile:
    """The text of content.xml. Raises `EncryptedFile` where that is cipher text."""
    _refuse_encrypted(package)
    documents: list[ParsedDocument] = []
    content = package.tree("content.xml")
    styles = package.optional_tree("styles.xml")
    lists = read_lists(content, styles)
    body = child(content, "body")
    for office in () if body is None else body:
        parts = [e for e in office if local(e) in {"table", "page"}]
        if local(office) == "text" or not parts:
            running = [] if styles is None else list(_running(styles))
            documents.extend(_document([office, *running], None, lists))
            continue
        for number, part in enumerate(parts, start=1):
            label = attribute(part, "name") if local(part) == "table" else str(number)
            documents.extend(_document([part], label, lists))
    metadata = dublin_core(package, "meta.xml")
    return ParsedFile(media_type=media_type, documents=tuple(documents), metadata=metadata)


def _refuse_encrypted(package: Package) -> None:
    manifest = package.optional_tree("META-INF/manifest.xml")
    if manifest is not None and next(descendants(manifest, "encryption-data"), None) is not None:
        raise EncryptedFile("The document is encrypted: save it without a password, and upload it")


def _running(styles: ET.Element) -> Iterator[ET.Element]:
    """Headers and footers, each once, without those of nothing but fields and numbers."""
    seen: set[str] = set()
    for page in descendants(styles, "master-page"):
        for element in page:
            text = one_line("".join(element.itertext()))
            if local(element).startswith(("header", "footer")) and text not in seen:
                seen.add(text)
                if any(map(str.isalpha, text)):
                    yield element


def _document(
    blocks: list[ET.Element], label: str | None, lists: Lists
) -> Iterator[ParsedDocument]:
    reader = _Reader(lists)
    for block in blocks:
        reader.read_block(block)
    if not reader.builder.is_empty:
        yield reader.builder.build(page_label=label)


class _Reader:
    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self.builder = DocumentBuilder()
        self._pending: list[ET.Element] = []
        self._cells = 0

    def read_block(self, block: ET.Element) -> None:
        """Add a heading, a paragraph, a table, or whatever blocks are inside `block`."""
        name = local(block)
        if name in _DROPPED:
            return
        if name == "h":
            level = attribute(block, "outline-level") or "1"
            title = self._numbered("".join(self._pieces(block)))
            self.builder.heading(title, int(level) if level.isdecimal() else 1)
            self._flush_pending()
        elif name == "p":
            self.builder.add(self._numbered("".join(self._pieces(block))))
            self._flush_pending()
        elif name == "table":
            self._read_table(block)
        elif name == "list":
            with self._lists.list(block):
                self._read_blocks(block)
        elif name in {"list-item", "list-header"}:
            self._lists.item(block)
            self._read_blocks(block)
        else:
            self._read_blocks(block)

    def _read_blocks(self, around: ET.Element) -> None:
        for inner in around:
            self.read_block(inner)

    def _numbered(self, text: str) -> str:
        """With the number of the item that it begins."""
        number = self._lists.take_number() if text.strip() else ""
        return f"{number} {text}" if number else text

    def _flush_pending(self) -> None:
        """Add what hangs on the last block: notes, comments, text boxes."""
        pending, self._pending = self._pending, []
        for container in pending:
            if local(container) == "annotation":
                self.builder.add(_comment(container))
                continue
            for block in container:
                self.read_block(block)

    def _pieces(self, element: ET.Element) -> Iterator[str]:
        yield element.text or ""
        for inner in element:
            name = local(inner)
            if name == "s":
                count = attribute(inner, "c") or "1"
                yield " " * min(int(count) if count.isdecimal() else 1, _MAX_BLANKS)
            elif name == "tab":
                yield "\t"
            elif name == "line-break":
                yield "\n"
            elif name in _BLOCK_CONTAINERS:
                self._pending.append(inner)
            elif name not in _DROPPED:
                yield from self._pieces(inner)
            yield inner.tail or ""

    def _read_table(self, table: ET.Element) -> None:
        self.builder.add(table_text(self._rows(table)))
        self._flush_pending()

    def _rows(self, table: ET.Element) -> Iterator[list[str]]:
        for inner in table:
            name = local(inner)
            if name == "table-row":
                cells = self._row_cells(inner)
                if any(cell.strip() for cell in cells):
                    repeats = _count(inner, "number-rows-repeated")
                    self._spend(repeats * len(cells))
                    yield from [cells] * repeats
            elif name not in _DROPPED:
                yield from self._rows(inner)

    def _row_cells(self, row: ET.Element) -> list[str]:
        cells: list[str] = []
        for cell in row:
            if local(cell) not in {"table-cell", "covered-table-cell"}:
                continue
            text = "\n".join(self._cell_lines(cell))
            repeats = _count(cell, "number-columns-repeated")
            if text.strip():
                self._spend(repeats)
            cells.extend([text] * (repeats if text.strip() else min(repeats, _MAX_REPEATED_BLANK)))
        return cells

    def _cell_lines(self, cell: ET.Element) -> Iterator[str]:
        for block in cell:
            name = local(block)
            if name in {"p", "h"}:
                yield self._numbered("".join(self._pieces(block)))
            elif name == "list":
                with self._lists.list(block):
                    yield from self._cell_lines(block)
            elif name in {"list-item", "list-header"}:
                self._lists.item(block)
                yield from self._cell_lines(block)
            elif name == "annotation":
                self._pending.append(block)
            elif name not in _DROPPED:
                yield from self._cell_lines(block)

    def _spend(self, cells: int) -> None:
        self._cells += cells
        require(self._cells <= MAX_CELLS, f"a table has over {MAX_CELLS:,} cells")


def _comment(annotation: ET.Element) -> str:
    """As those of other formats: whose it is, and what it says."""
    creator = child(annotation, "creator")
    author = one_line("" if creator is None else creator.text or "")
    lines = ("".join(p.itertext()) for p in descendants(annotation, "p"))
    text = one_line(" ".join(lines))
    return f"Comment by {author}: {text}" if author and text else text and f"Comment: {text}"


def _count(element: ET.Element, name: str) -> int:
    value = attribute(element, name) or "1"
    return max(1, int(value)) if value.isdecimal() else 1
