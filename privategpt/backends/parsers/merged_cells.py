"""Rows of a table whose cells may reach over several columns and down into rows below.

What a merged cell covers is empty, as in a spreadsheet, so that what stands in the other columns
stays under its heading.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST_COLUMNS = 200
"""Merging goes no further: a page may say that a cell has a million columns."""


@dataclass(slots=True)
class MergedRows:
    """The row that is being read, and how far cells above reach down, by their columns."""

    _row: list[str] = field(default_factory=list[str])
    _above: dict[int, int] = field(default_factory=dict[int, int])
    _begun: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, text: str, *, columns: int = 1, rows: int = 1) -> None:
        """The next cell, behind those that reach down into this row."""
        while self._above.get(len(self._row)):
            self._row.append("")
        start = len(self._row)
        self._row.append(text)
        end = min(start + columns, _MOST_COLUMNS)
        self._row += [""] * (end - start - 1)
        if rows > 1:
            self._begun.update(dict.fromkeys(range(start, end), rows - 1))

    def end(self) -> list[str]:
        """The row as it is, and begin the next one; a row without a cell is none."""
        row, self._row = self._row, []
        if row:
            below = {column: rows - 1 for column, rows in self._above.items() if rows > 1}
            self._above, self._begun = below | self._begun, {}
        return row


def span(stated: str | None) -> int:
    """How many columns or rows a cell says that it has."""
    return int(stated) if stated and stated.isdecimal() and len(stated) < 6 else 1
