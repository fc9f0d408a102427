"""Spreadsheets in Office Open XML: a document per sheet, a row per line, values as stored.

Rows are read as a stream, so a large sheet costs its text and not a tree. Formulas count by the
value that was computed for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from privategpt.backends.parsers.bounds import (
    MAX_CELLS,
    MAX_SHEET_AREA,
    MAX_TEXT_CHARS,
    require,
)
from privategpt.backends.parsers.cleaning import DocumentBuilder, aligned, table_row
from privategpt.backends.parsers.file_metadata import dublin_core
from privategpt.backends.parsers.packages import (
    Package,
    attribute,
    child,
    children,
    descendants,
)
from privategpt.domain.documents import ParsedDocument, ParsedFile

_REFERENCE = re.compile(r"^([A-Z]{1,3})(\d{1,7})$")
_BUILTIN_DATES = frozenset((*range(14, 18), 22, *range(27, 32), *range(50, 59)))
_BUILTIN_TIMES = frozenset((18, 19, 20, 21, 45, 47))
_BUILTIN_ELAPSED = 46
_BUILTIN_PERCENTS = {9: 0, 10: 2}
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]")
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]', re.IGNORECASE)
"""What a format says word for word, and colours, conditions, languages and currencies."""

_FIRST_OF_MARCH_1900 = 61
"""Days before it are counted as if 1900 had been a leap year, as Lotus 1-2-3 did."""

_FIRST_PLAUSIBLE_DAY = 367  # a time of less is a sum of hours, not one in 1900
_MAX_GAP = 30
"""Empty cells between two values that are kept as such; a longer gap is no table any more."""


@dataclass(frozen=True, slots=True)
class _Format:
    """How a number is shown: as a date, a time of day, a time that has elapsed, a percentage with
    some digits, or as it is."""

    kind: str = "number"
    digits: int = 0


_PLAIN = _Format()


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
        for comment in _comments(package, part):
            builder.add(comment)
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


def _number_formats(package: Package, main: str) -> list[_Format]:
    """What each cell style (`s`) shows."""
    part = next(iter(package.related(main, "styles")), None)
    if part is None:
        return []
    tree = package.tree(part)
    codes = {f.get("numFmtId"): f.get("formatCode", "") for f in descendants(tree, "numFmt")}
    styles = child(tree, "cellXfs")
    if styles is None:
        return []
    return [_format_of(x.get("numFmtId", "0"), codes) for x in children(styles, "xf")]


def _format_of(number: str, codes: dict[str | None, str]) -> _Format:
    if number in codes:
        return _format_of_code(codes[number])
    builtin = int(number) if number.isdigit() else 0
    if builtin in _BUILTIN_PERCENTS:
        return _Format("percent", _BUILTIN_PERCENTS[builtin])
    if builtin in _BUILTIN_DATES:
        return _Format("date")
    if builtin == _BUILTIN_ELAPSED:
        return _Format("elapsed")
    return _Format("time") if builtin in _BUILTIN_TIMES else _PLAIN


def _format_of_code(code: str) -> _Format:
    code = _LITERAL.sub("", code.partition(";")[0]).lower()
    if "%" in code:
        return _Format("percent", len(code.partition(".")[2].rstrip("%").strip()))
    if re.search(r"[yd]", code):
        return _Format("date")
    if _ELAPSED.search(code):
        return _Format("elapsed")
    return _Format("time") if re.search(r"[hs]", code) else _PLAIN


@dataclass(slots=True)
class _Cell:
    column: int
    kind: str
    style: int
    value: list[str] = field(default_factory=list[str])


class _SheetCells:
    """Turns a sheet's events into rows of text."""

    def __init__(self, strings: list[str], styles: list[_Format], *, epoch_1904: bool) -> None:
        self.lines: list[tuple[int, str]] = []
        self._strings = strings
        self._styles = styles
        self._epoch = datetime(1904, 1, 1) if epoch_1904 else datetime(1899, 12, 30)
        self._row: dict[int, str] = {}
        self._row_number = self._column = 0
        self._cell: _Cell | None = None
        self._reads = self._in_guide = False
        self._cells = self._last_row = self._last_column = self._chars = 0

    def start(self, name: str, attributes: dict[str, str], /) -> None:
        """Begin a row, a cell or a cell's value."""
        tag = name.rpartition("}")[2]
        if tag == "row":
            given = attributes.get("r", "")
            self._row_number = int(given) if given.isdigit() else self._row_number + 1
            self._row, self._column = {}, 0
        elif tag == "c":
            self._column = _column_of(attributes.get("r", "")) or self._column + 1
            style = attributes.get("s", "")
            kind = attributes.get("t", "n")
            self._cell = _Cell(self._column, kind, int(style) if style.isdigit() else 0)
        elif tag == "rPh":
            self._in_guide = True
        self._reads = tag in {"v", "t"}

    def end(self, name: str, /) -> None:
        """End a row, a cell or a cell's value."""
        tag = name.rpartition("}")[2]
        self._reads = False
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
        if cell.kind == "s":
            known = value.isdigit() and int(value) < len(self._strings)
            return self._strings[int(value)] if known else ""
        if cell.kind == "b":
            return "TRUE" if value == "1" else "FALSE" if value else ""
        if cell.kind != "n":
            return value
        shape = self._styles[cell.style] if cell.style < len(self._styles) else _PLAIN
        return _shown_number(value, shape, self._epoch)


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


def _shown_number(value: str, shape: _Format, epoch: datetime) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    if shape.kind == "percent":
        return f"{number * 100:.{max(shape.digits, 0)}f}%"
    if shape.kind in {"date", "time", "elapsed"} and 0 <= number < 2_958_466:
        return _shown_moment(number, shape.kind, epoch)
    # Stored with 17 digits (0.1 + 0.2 style); shown, as spreadsheets do, with 15.
    return value if value.lstrip("-").isdigit() else f"{number:.15g}"


def _shown_moment(days: float, kind: str, epoch: datetime) -> str:
    seconds = round(days * 86_400)
    if kind == "elapsed":
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    moment = epoch + timedelta(seconds=seconds)
    if kind == "time" and days < _FIRST_PLAUSIBLE_DAY:
        return f"{moment:%H:%M:%S}"
    if epoch.year == 1899 and days < _FIRST_OF_MARCH_1900:
        moment += timedelta(days=1)
    return f"{moment:%Y-%m-%d}" if days == int(days) else f"{moment:%Y-%m-%d %H:%M:%S}"


def _comments(package: Package, part: str) -> list[str]:
    """The notes on a sheet's cells."""
    found: list[str] = []
    for comments in package.related(part, "comments"):
        tree = package.tree(comments)
        for comment in descendants(tree, "comment"):
            text = "".join(t.text or "" for t in descendants(comment, "t"))
            if text.strip():
                found.append(f"{comment.get('ref', '')}: {text}")
    return found
