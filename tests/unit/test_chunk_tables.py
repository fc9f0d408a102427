"""A table that is cut keeps its header: read with the rows below it, and never part of them."""

from __future__ import annotations

import pytest

from privategpt.chunking.splitter import split
from privategpt.chunking.tables import find_tables
from privategpt.domain.documents import Chunk, ParsedDocument
from tests.fakes.embedding import WordTokenizer

_HEADER = "Item | Price | Reorder level"


def _rows(count: int, separator: str = " | ") -> str:
    return "\n".join(separator.join((f"Trowel {n}", f"{n}.50", str(n + 7))) for n in range(count))


def _split(text: str, *, max_tokens: int = 40) -> list[Chunk]:
    tokenizer = WordTokenizer(max_tokens=max_tokens)
    return split(ParsedDocument(text=text), doc_id="d", tokenizer=tokenizer)


def test_chunks_that_continue_a_table_carry_its_header_and_stay_ranges_of_the_text() -> None:
    text = f"Stock\n\n{_HEADER}\n{_rows(30)}\n\nCounted by hand in spring."
    first, *others, last = _split(text)
    assert first.context == ""
    assert _HEADER in first.text
    assert len(others) > 3
    assert {chunk.context for chunk in others} == {_HEADER}
    assert not any(_HEADER in chunk.text for chunk in others)
    assert last.text.endswith("spring.")
    for chunk in (first, *others, last):
        assert text[chunk.start : chunk.end] == chunk.text
        assert WordTokenizer().count(chunk.passage) <= 40


def test_text_behind_the_table_has_no_header() -> None:
    text = f"{_HEADER}\n{_rows(5)}\n\n" + "Counted by hand in spring. " * 20
    assert _split(text)[-1].context == ""


@pytest.mark.parametrize(
    ("table", "header"),
    [
        (f"{_HEADER}\n{_rows(4)}", _HEADER),
        ("Item\tPrice\n" + _rows(4, "\t"), "Item\tPrice"),
        ("Item;Price;Level\n" + _rows(4, ";"), "Item;Price;Level"),
        ("Stock list,,\nItem,Price,Level\n" + _rows(4, ","), "Item,Price,Level"),
        ('"Item, kind",Price,Level\n' + _rows(4, ","), '"Item, kind",Price,Level'),
        ("| Item | Kind |\n|---|:-:|\n| a | b |\n| c | d |", "| Item | Kind |"),
    ],
)
def test_the_header_is_the_first_row_of_words(table: str, header: str) -> None:
    (found,) = find_tables(f"Before it.\n\n{table}\n\nAfter it.")
    assert found.header == header


@pytest.mark.parametrize(
    "text",
    [
        "Name | Otto\nCity | Berlin\nTrade | Baker\nPet | Cat",  # names and values
        "1 | 2 | 3\n4 | 5 | 6\n7 | 8 | 9",
        "Item | Price | Level\nTrowel | 1 | 2",  # too short to be cut
        "Well, this is prose,\nand so, it seems,\nis this, and more,\nuntil here, at last.",
        "call(a, b, c)\ncall(d, e, f)\ncall(1, 2, 3)\ncall(4, 5, 6)",
        "a, b and c\n1,2\nd, e, f, g, h\n3,4\ni, j, k\n5,6",
        "Item | " + "x" * 500 + " | Level\n" + _rows(4),
        "|---|---|\n|---|---|\n|---|---|\n|---|---|\n|---|---|",
        "Home | About | Contact\n\n" * 5,
    ],
)
def test_what_has_no_header_gets_none(text: str) -> None:
    assert find_tables(text) == []


def test_a_header_that_would_fill_the_chunk_is_left_out() -> None:
    text = f"{_HEADER}\n{_rows(30)}"
    assert {chunk.context for chunk in _split(text, max_tokens=20)} == {""}


def test_every_table_of_a_document_has_its_own() -> None:
    other = "City | People | Height"
    text = f"{_HEADER}\n{_rows(20)}\n\n{other}\n{_rows(20)}"
    contexts = [chunk.context for chunk in _split(text)]
    assert {_HEADER, other} <= set(contexts)
    assert contexts.index(other) > contexts.index(_HEADER)
