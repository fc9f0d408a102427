"""Which words of a text can be searched for."""

from __future__ import annotations

import pytest

from privategpt.backends.vectors.words import WordEncoder


def matches(query: str, passage: str) -> int:
    """How many words of the query the passage has."""
    encoder = WordEncoder()
    asked, held = encoder.query(query), encoder.passage(passage)
    if asked is None or held is None:
        return 0
    return len(set(asked.indices) & set(held.indices))


@pytest.mark.parametrize(
    ("query", "passage", "expected"),
    [
        ("running dogs", "The dog runs", 2),
        ("the and of", "the and of", 0),
        ("2019/679", "Regulation (EU) 2019/679", 2),
        ("§ 5", "siehe § 5 Abs. 2", 1),
        ("§ 5", "siehe § 6 Abs. 2", 0),
        ("42", "１２３ and ４２", 1),
        ("1789", "1789年に", 1),
        ("A4", "A4 paper", 1),
        ("A4", "A5 paper", 0),
        ("4", "A4 paper", 0),
        ("光合作用", "光合作用把光能转化为化学能", 2),
        ("プログラム", "新しいプログラムです", 1),
        ("Müller", "Herr Mu\u0308ller", 1),
        ("ﬁle", "a file", 1),
        ("", "", 0),
        ("7" * 5000, "x", 0),
    ],
)
def test_words_and_numbers_match_across_forms(query: str, passage: str, expected: int) -> None:
    assert matches(query, passage) == expected


def test_each_word_of_a_longer_passage_weighs_less() -> None:
    encoder = WordEncoder()
    short, long = encoder.passage("apple"), encoder.passage("apple " + "pear " * 300)
    assert short is not None
    assert long is not None
    apple = short.indices[0]
    assert short.values[0] > long.values[long.indices.index(apple)]
