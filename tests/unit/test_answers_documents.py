"""The libraries of the answers eval: paragraphs, and articles, whose chunks have neighbours."""

from __future__ import annotations

import pytest

from evals.answers.documents import Grouping, documents

ROWS = [
    {"_id": "Rome#000", "title": "Rome", "text": "Rome is old. It has hills."},
    {"_id": "Rome#001", "title": "Rome", "text": "The Tiber runs there."},
    {"_id": "Oslo#000", "title": "Oslo", "text": "Oslo is cold."},
]


def test_a_paragraph_is_a_file_known_by_its_address() -> None:
    library = documents(ROWS, Grouping.PARAGRAPHS)
    files = list(library.files())
    assert [file.name for file in files] == ["Rome-000.txt", "Rome-001.txt", "Oslo-000.txt"]
    assert library.cited({"source_url": files[1].metadata["url"]}) == ["Rome#001"]
    assert library.read({"document": {"doc_metadata": files[2].metadata}}) == ["Oslo#000"]


def test_an_article_is_a_file_of_its_paragraphs() -> None:
    files = list(documents(ROWS, Grouping.ARTICLES).files())
    assert [file.text for file in files] == [
        f"{ROWS[0]['text']}\n\n{ROWS[1]['text']}",
        "Oslo is cold.",
    ]


def test_what_is_cited_of_an_article_is_of_the_paragraph_that_it_stands_in() -> None:
    library = documents(ROWS, Grouping.ARTICLES)
    assert library.cited({"document_title": "Rome", "cited_text": "It has hills."}) == ["Rome#000"]
    assert library.cited({"document_title": "Rome", "cited_text": "The Tiber runs"}) == ["Rome#001"]


def test_a_chunk_over_two_paragraphs_is_of_both() -> None:
    library = documents(ROWS, Grouping.ARTICLES)
    source = {
        "document": {"doc_metadata": {"title": "Rome"}},
        "text": "It has hills.\n\nThe Tiber runs there.",
    }
    assert library.read(source) == ["Rome#000", "Rome#001"]


def test_words_that_do_not_stand_in_the_article_are_a_fault() -> None:
    with pytest.raises(ValueError, match="does not stand in"):
        documents(ROWS, Grouping.ARTICLES).cited({"document_title": "Oslo", "cited_text": "warm"})
