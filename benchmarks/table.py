"""The one table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.table import Table

from benchmarks.rows import Row


def table(rows: Sequence[Row], *, title: str) -> Table:
    """A line for every row: medians, and in brackets the ninth of ten."""
    made = Table(title=title, title_justify="left")
    made.add_column("what")
    for name in ("unit", "n", "ours p50 (p90)", "bare p50 (p90)", "ours − bare", "ours / bare"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("target", no_wrap=True)
    made.add_column("", no_wrap=True)
    for row in rows:
        made.add_row(*cells(row))
    return made


def cells(row: Row) -> tuple[str, ...]:
    """One line's cells."""
    paired = bool(row.bare)
    return (
        row.name,
        row.unit,
        str(len(row.ours)),
        _spread(row.ours),
        _spread(row.bare) if paired else "",
        f"{'+' if row.above > 0 else ''}{_number(row.above)}" if paired else "",
        f"{row.ratio:.2f}" if paired else "",
        str(row.target or ""),
        {True: "met", False: "MISSED", None: ""}[row.met],
    )


def _spread(values: Sequence[float]) -> str:
    ninth = statistics.quantiles(values, n=10, method="inclusive")[8] if len(values) > 1 else None
    middle = _number(statistics.median(values))
    return middle if ninth is None else f"{middle} ({_number(ninth)})"


def _number(value: float) -> str:
    """Three digits, or all before the point."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"
