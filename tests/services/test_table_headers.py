"""A row of a long table is found, and read, by the names of its columns."""

from __future__ import annotations

from pathlib import Path

from privategpt.grounding.prompt import render_source
from privategpt.services.maintenance import reindex
from privategpt.services.sources import number_sources
from tests.fakes.wired import WiredLibrary

_ITEMS = ("Trowel", "Rake", "Hoe", "Spade", "Shears", "Fork", "Sieve", "Barrow")


def _table(*columns: str) -> str:
    rows = [
        f"{item} {size} | {size * 3 + n} | {size * 7 + n}"
        for size in range(40)
        for n, item in enumerate(_ITEMS)
    ]
    return "\n".join([" | ".join(("Item", *columns)), *rows])


async def _asked(library: WiredLibrary) -> None:
    """Two tables of the same items: only the names of the columns tell them apart."""
    found = await library.retrieval.search("reorder level of Spade 31", tenant="ann", limit=1)
    (hit,) = found.chunks
    assert hit.document.metadata["file_name"] == "stock.csv"
    assert "Spade 31 | " in hit.chunk.text
    assert "Reorder" not in hit.chunk.text
    (source,) = await number_sources([hit], tenant="ann", state=library.state)
    assert source.text == hit.chunk.text
    assert "\nItem | Shelf | Reorder level\n" in render_source(source)


async def test_a_question_that_names_a_column_finds_the_row_of_a_long_table(
    tmp_path: Path,
) -> None:
    library = WiredLibrary(folder=tmp_path)
    await library.add("prices.csv", _table("Price", "Discount"))
    await library.add("stock.csv", _table("Shelf", "Reorder level"))
    await library.add("visits.csv", _table("Visitors", "Tickets"))
    await _asked(library)
    await reindex(
        state=library.state,
        index=library.index,
        embedding=library.embedding,
        progress=lambda _: None,
    )
    await _asked(library)
