"""Spreadsheets in Office Open XML: a document per sheet, a row per line, values as stored.

Rows are read as a stream, so a large sheet costs its text and not a tree. Formulas count by the
value that was computed for them, and as they are where no program has computed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from privategpt.backends.parsers.bounds import (
    MAX_CELLS,
    MAX_SHEET_AREA,
    MAX_TEXT_CHARS,
    require,
)
from privategpt.backends.parsers.cleaning import DocumentBuilder, aligned, table_row
from privategpt.backends.parsers.file_metadata import dublin_core
from privategpt.backends.parsers.graphics import graphic_texts, paragraphs
from privategpt.backends.parsers.number_formats import PLAIN, NumberFormat, number_format
from privategpt.backends.parsers.packages import (
    Package,
    attribute,
    child,
    children,
    descendants,
)
from privategpt.domain.documents import ParsedDocument, ParsedFile

_REFERENCE = re.compile(r"^([A-Z]{1,3})(\d{1,7})$")
_MAX_GAP = 30
"""Empty cells between two values that are kept as such; a longer gap is no table any more."""


def read_xlsx(package: Package, media_type: str) -> ParsedFile:
    """Every sheet with values, named by its label."""
    main = package.main_part("xl/workbook.xml")
    workbook = package.tree(main)
    relations = package.relationships(main)
    strings = _shared_strings(package, main)
    styles = _number_formats(package, main)
    properties = child(workbook, "workbookPr")
    epoch_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
    documents: list[ParsedDocument] = []
    for sheet in descendants(workbook, "sheet"):
        kind, part = relations.get(attribute(sheet, "id") or "", ("", ""))
        if kind != "worksheet" or part not in package:
            continue
        cells = _SheetCells(strings, styles, epoch_1904=epoch_1904)
        package.stream(part, cells)
        builder = DocumentBuilder()
        builder.add(aligned(cells.lines))
        for line in (*_comments(package, part), *_drawn(package, part)):
            builder.add(line)
        if not builder.is_empty:
            documents.append(builder.build(page_label=sheet.get("name")))
    metadata = dublin_core(package, "docProps/core.xml")
    return ParsedFile(media_type=media_type, documents=tuple(documents), metadata=metadata)


def _shared_strings(package: Package, main: str) -> list[str]:
    strings = _SharedStrings()
    for part in package.related(main, "sharedStrings"):
        package.stream(part, strings)
    return strings.values


class _SharedStrings:
    """Collects the workbook's string table; phonetic guides (`rPh`) are not part of a string."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._current: list[str] = []
        self._in_text = False
        self._in_guide = False
        self._chars = 0

    def start(self, name: str, attributes: dict[str, str], /) -> None:  # noqa: ARG002
        """Begin a string or a run of one."""
        tag = name.rpartition("}")[2]
        if tag == "si":
            self._current = []
        elif tag == "rPh":
            self._in_guide = True
        self._in_text = tag == "t"

    def end(self, name: str, /) -> None:
        """End a string."""
        tag = name.rpartition("}")[2]
        self._in_text = False
        if tag == "rPh":
            self._in_guide = False
        elif tag == "si":
            self.values.append("".join(self._current))
            require(len(self.values) <= MAX_CELLS, "its string table is too long")

    def text(self, data: str, /) -> None:
        """Characters of a run."""
        if self._in_text and not self._in_guide:
            self._chars += len(data)
            require(self._chars <= MAX_TEXT_CHARS, "it has too much text")
            self._current.append(data)


def _number_formats(package: Package, main: str) -> list[NumberFormat]:
    """What each cell style (`s`) shows."""
    part = next(iter(package.related(main, "styles")), None)
    if part is None:
        return []
    tree = package.tree(part)
    codes = {f.get("numFmtId"): f.get("formatCode", "") for f in descendants(tree, "numFmt")}
    styles = child(tree, "cellXfs")
    if styles is None:
        return []
    return [number_format(x.get("numFmtId", "0"), codes) for x in children(styles, "xf")]


@dataclass(slots=True)
class _Cell:
    column: int
    kind: str
    style: int
    value: list[str] = field(default_factory=list[str])
    formula: list[str] = field(default_factory=list[str])


class _SheetCells:
    """Turns a sheet's events into rows of text."""

    def __init__(self, strings: list[str], styles: list[NumberFormat], *, epoch_1904: bool) -> None:
        self.lines: list[tuple[int, str]] = []
        self._strings = strings
        self._styles = styles
        self._epoch = datetime(1904, 1, 1) if epoch_1904 else datetime(1899, 12, 30)
        self._row: dict[int, str] = {}
        self._row_number = self._column = 0
        self._cell: _Cell | None = None
        self._reads = self._in_guide = self._in_formula = False
        self._cells = self._last_row = self._last_column = self._chars = 0

    def start(self, name: str, attributes: dict[str, str], /) -> None:
        """Begin a row, a cell or a cell's value."""
        tag = name.rpartition("}")[2]
        if tag == "row":
            given = attributes.get("r", "")
            self._row_number = int(given) if given.isdecimal() else self._row_number + 1
            self._row, self._column = {}, 0
        elif tag == "c":
            self._column = _column_of(attributes.get("r", "")) or self._column + 1
            style = attributes.get("s", "")
            kind = attributes.get("t", "n")
            self._cell = _Cell(self._column, kind, int(style) if style.isdecimal() else 0)
        elif tag == "rPh":
            self._in_guide = True
        self._reads = tag in {"v", "t"}
        self._in_formula = tag == "f"

    def end(self, name: str, /) -> None:
        """End a row, a cell or a cell's value."""
        tag = name.rpartition("}")[2]
        self._reads = self._in_formula = False
        if tag == "rPh":
            self._in_guide = False
        elif tag == "c" and self._cell:
            self._keep(self._cell)
            self._cell = None
        elif tag == "row" and self._row:
            self._end_row()

    def text(self, data: str, /) -> None:
        """Characters of a value."""
        if self._reads and self._cell and not self._in_guide:
            self._cell.value.append(data)
        elif self._in_formula and self._cell:
            self._cell.formula.append(data)

    def _keep(self, cell: _Cell) -> None:
        shown = self._shown(cell)
        if not shown.strip():
            return
        self._row[cell.column] = shown
        self._cells += 1
        self._last_row = max(self._last_row, self._row_number)
        self._last_column = max(self._last_column, cell.column)

    def _end_row(self) -> None:
        start, line = _line(self._row)
        self._chars += len(line)
        self.lines.append((start, line))
        area = self._last_row * self._last_column
        require(area <= MAX_SHEET_AREA, "a sheet's values are spread over too wide an area")
        require(self._cells <= MAX_CELLS, f"a sheet has over {MAX_CELLS:,} cells")
        require(self._chars <= MAX_TEXT_CHARS, "it has too much text")

    def _shown(self, cell: _Cell) -> str:
        value = "".join(cell.value)
        if cell.formula and not value and cell.kind != "str":  # a text may be empty
            return "=" + "".join(cell.formula)
        if cell.kind == "s":
            known = value.isdecimal() and int(value) < len(self._strings)
            return self._strings[int(value)] if known else ""
        if cell.kind == "b":
            return "TRUE" if value == "1" else "FALSE" if value else ""
        if cell.kind != "n":
            return value
        shape = self._styles[cell.style] if cell.style < len(self._styles) else PLAIN
        return shape.shown(value, self._epoch)


def _column_of(reference: str) -> int:
    match = _REFERENCE.match(reference)
    column = 0
    for letter in match[1] if match else "":
        column = column * 26 + ord(letter) - ord("A") + 1
    return column


def _line(row: dict[int, str]) -> tuple[int, str]:
    """The first value's column, capped, and the values from there on with the gaps between."""
    cells: list[str] = []
    columns = sorted(row)
    previous = columns[0] - 1
    for column in columns:
        cells.extend([""] * min(column - previous - 1, _MAX_GAP))
        cells.append(row[column])
        previous = column
    return min(columns[0], _MAX_GAP), table_row(cells)


def _comments(package: Package, part: str) -> Iterator[str]:
    """The notes on a sheet's cells. Threads are there twice: the notes of cells that have one
    are for older programs, and say so at length.
    """
    threaded: set[str] = set()
    for comments in package.related(part, "threadedComment"):
        for comment in descendants(package.tree(comments), "threadedComment"):
            place = comment.get("ref", "")
            threaded.add(place)
            said = child(comment, "text")
            if said is not None and said.text:
                yield f"{place}: {said.text}"
    for comments in package.related(part, "comments"):
        for comment in descendants(package.tree(comments), "comment"):
            text = "".join(t.text or "" for t in descendants(comment, "t"))
            place = comment.get("ref", "")
            if text.strip() and place not in threaded:
                yield f"{place}: {text}"


def _drawn(package: Package, part: str) -> Iterator[str]:
    """What lies on a sheet: text boxes, the titles of charts, diagrams."""
    for drawing in package.related(part, "drawing"):
        relations = package.relationships(drawing)
        tree = package.tree(drawing)
        for body in descendants(tree, "txBody"):
            yield "\n".join(paragraphs(body))
        yield from graphic_texts(package, relations, tree, values=False)
