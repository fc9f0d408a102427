"""The figures as the tables of docs/scale.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scale.notebook import Figures

FROM = "<!-- figures: python -m benchmarks.scale --into docs/scale.md -->"
TO = "<!-- end of figures -->"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: one figure of every column, or two as `median (95th of a hundred)`."""

    name: str
    figure: str
    also: str | None = None


FILES = (
    Line("list, first page of 100: p50 (p95), ms", "first_page_p50_ms", "first_page_p95_ms"),
    Line("list, later pages: p50 (p95), ms", "later_page_p50_ms", "later_page_p95_ms"),
    Line("the whole list in pages, s", "walk_s"),
    Line("one file more: p50 (p95), ms", "add_p50_ms", "add_p95_ms"),
    Line("one file more: processor time, ms", "add_processor_ms"),
    Line("ready after a start, s", "ready_s"),
)
FILLED = (
    Line("stored a second, model left out", "pace"),
    Line("processor time to store one, ms", "each_ms"),
    Line("state.db, MB", "state_mb"),
    Line("vectors/, MB", "index_mb"),
)
SERVED = (
    Line("ready after a start, s", "ready_s"),
    Line("resident at start (not pages of files), MB", "start_mb", "start_own_mb"),
    Line("resident after 500 searches (not pages of files), MB", "after_mb", "after_own_mb"),
    Line("/v1/chunks besides the embedding: p50 (p95), ms", "above_p50_ms", "above_p95_ms"),
    Line("the same, processor time, ms", "above_processor_ms"),
    Line("/v1/chunks, whole: p50 (p95), ms", "search_p50_ms", "search_p95_ms"),
    Line("list, first page of 100: p50 (p95), ms", "first_page_p50_ms", "first_page_p95_ms"),
    Line("delete of a large file, ms", "delete_ms"),
    Line("optimize, s", "optimize_s"),
    Line("vectors/, MB", "index_mb"),
)
CODES = (
    Line("recall@10 as written", "plain_recall"),
    Line("the same, codes alone", "plain_codes_recall"),
    Line("search by meaning as written: processor time, ms", "plain_processor_ms"),
    Line("memory as written, MB", "plain_mb"),
    Line("disk as written, MB", "plain_disk_mb"),
    Line("recall@10 optimized", "graph_recall"),
    Line("the same, codes alone", "graph_codes_recall"),
    Line("search by meaning optimized: processor time, ms", "graph_processor_ms"),
    Line("memory optimized, MB", "graph_mb"),
    Line("disk optimized, MB", "graph_disk_mb"),
    Line("optimize: processor time, s", "optimize_processor_s"),
)


def report(figures: Mapping[str, Figures]) -> str:
    """All that was measured, in Markdown."""
    return "\n\n".join(_parts(figures))


def _parts(figures: Mapping[str, Figures]) -> Iterator[str]:
    columns = _columns(figures, "files")
    if columns:
        yield "### Files\n\n" + _table("files there", columns, FILES)
    if real := figures.get("real"):
        yield "### Real passages\n\n" + _real(real, figures.get("real killed", {}))
    filled = {name: _pace(of) for name, of in _columns(figures, "filled").items()}
    if filled:
        yield "### Storing\n\n" + _table("chunks", filled, FILLED)
    for kind, title in (
        ("served", "As it is written"),
        ("plain", "As it is written, with `vectors.quantization: none`"),
        ("optimized", "After `privategpt optimize`"),
    ):
        if columns := _columns(figures, kind):
            yield f"### {title}\n\n" + _table("chunks", columns, SERVED)
    if columns := _columns(figures, "quantization"):
        some = next(iter(columns.values()))
        yield (
            f"### Quantization, on {_cell(some['vectors'])} real passages\n\n"
            + _table("", columns, CODES)
        )


def _columns(figures: Mapping[str, Figures], kind: str) -> dict[str, Figures]:
    """By what stands behind the kind's name: a size, in order, or a quantization."""
    found = {
        name.removeprefix(f"{kind} "): of
        for name, of in figures.items()
        if name.startswith(f"{kind} ")
    }
    if all(name.isdigit() for name in found):
        return {f"{int(name):,}": found[name] for name in sorted(found, key=int)}
    return found


def _pace(filled: Figures) -> Figures:
    new = float(filled["new"])
    if not new:
        return filled
    return {
        **filled,
        "pace": new / float(filled["seconds"]),
        "each_ms": 1000 * float(filled["processor_s"]) / new,
    }


def _table(corner: str, columns: Mapping[str, Figures], lines: Sequence[Line]) -> str:
    rows = [[corner, *columns], ["---", *("---:" for _ in columns)]]
    for line in lines:
        cells = [_figure(of, line) for of in columns.values()]
        if any(cells):
            rows.append([line.name, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _figure(figures: Figures, line: Line) -> str:
    if line.figure not in figures:
        return ""
    cell = _cell(figures[line.figure])
    return cell if line.also is None else f"{cell} ({_cell(figures[line.also])})"


def _cell(value: float | str) -> str:
    """Three digits, or all before the point."""
    if isinstance(value, str):
        return value
    if float(value).is_integer():
        return f"{value:,.0f}"
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{decimals}f}"


def _real(real: Figures, killed: Figures) -> str:
    new, seconds = float(real["new_chunks"]), float(real["seconds"])
    lines = [
        f"{_cell(real['files'])} files became {_cell(real['chunks'])} chunks.",
        f"The last run stored {_cell(new)} of them in {_cell(round(seconds))} s: "
        f"{_cell(new / seconds)} a second, {_cell(1000 * float(real['processor_s']) / new)} ms of "
        f"processor time each. {_cell(real['already_there'])} files were there already.",
        f"`privategpt check` says: {real['check']}.",
    ]
    if killed:
        lines.insert(
            1,
            f"Killed (`kill -9`) once with {_cell(killed['files'])} files and "
            f"{_cell(killed['chunks'])} chunks stored, and started again.",
        )
    return "\n".join(lines)


def put_into(page: str, tables: str) -> str:
    """The page with these tables between its marks. Raises `ValueError` where it has none."""
    before, found, rest = page.partition(FROM)
    _, ends, after = rest.partition(TO)
    if not (found and ends):
        raise ValueError("The page has no marks for the figures")
    return f"{before}{FROM}\n\n{tables}\n\n{TO}{after}"
