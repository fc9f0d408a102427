"""Which words of a text can be searched for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.vectors.words import WordEncoder

FIRST_PAIR, FIRST_BEGINNING = 0b10 << 30, 0b11 << 30
"""Terms below the first of these are words."""


def shared_terms(query: str, passage: str) -> set[int]:
    encoder = WordEncoder()
    asked, held = encoder.query(query), encoder.passage(passage)
    if asked is None or held is None:
        return set()
    return set(asked.indices) & set(held.indices)


def matches(query: str, passage: str) -> int:
    """How many words of the query the passage has."""
    return sum(term < FIRST_PAIR for term in shared_terms(query, passage))


def matching_pairs(query: str, passage: str) -> int:
    return sum(FIRST_PAIR <= term < FIRST_BEGINNING for term in shared_terms(query, passage))


def matching_beginnings(query: str, passage: str) -> int:
    return sum(term >= FIRST_BEGINNING for term in shared_terms(query, passage))


def score(query: str, passage: str) -> float:
    """The product of the two, where every term is equally rare."""
    encoder = WordEncoder()
    asked, held = encoder.query(query), encoder.passage(passage)
    assert asked is not None
    assert held is not None
    weights = dict(zip(held.indices, held.values, strict=True))
    return sum(
        value * weights.get(term, 0.0)
        for term, value in zip(asked.indices, asked.values, strict=True)
    )


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


@pytest.mark.parametrize(
    ("query", "passage", "expected"),
    [
        ("interest rate", "a change of interest rates", 1),
        ("rate interest", "a change of interest rates", 0),
        ("change of interest", "the interest changes; a change of the interest", 1),
        ("interest rate", "the interest, and the rate of it", 1),
        ("interest rate", "interest was low and rates were", 0),
        ("ABC-123", "valve abc 123", 1),
        ("ABC-123", "valve ABC-124, page 123", 0),
        ("CVE-2024-1234", "see CVE-2024-1234.", 2),
        ("CVE-2024-1234", "see CVE-2024-9999 of 1234", 1),
        ("erste Frage", "ERSTE FRAGE", 1),
        ("光合作用と葉", "光合作用と葉", 0),
    ],
)
def test_words_that_stand_together_are_a_term_whatever_stop_words_are_between(
    query: str, passage: str, expected: int
) -> None:
    assert matching_pairs(query, passage) == expected


@pytest.mark.parametrize(
    ("query", "passage", "expected"),
    [
        ("Kündigungsfrist", "die Kündigung", 1),
        ("Buches", "die Bücher", 0),
        ("Häuser", "das Häuserne", 1),
        ("договора", "договор", 1),
        ("rates", "rating", 0),
        ("word", "words", 0),
        ("2019000", "2019000", 0),
        ("光合作用光合作用", "光合作用光合作用", 0),
    ],
)
def test_long_words_with_a_common_beginning_share_a_term(
    query: str, passage: str, expected: int
) -> None:
    assert matching_beginnings(query, passage) == expected


def test_an_identifier_scores_highest_where_its_parts_stand_together() -> None:
    together = score("ABC-123", "valve ABC-123 and pump XYZ-456")
    assert together > score("ABC-123", "valve ABC-456 and pump XYZ-123")


def test_the_word_itself_scores_higher_than_its_beginning_or_its_neighbours_alone() -> None:
    assert score("Frist", "eine Frist") > score("Frist", "eine Fristverlängerung") > 0


def test_a_text_of_one_endless_word_is_read_without_its_pairs() -> None:
    assert matching_pairs("a" * 65 + " tail", "a" * 65 + " tail") == 0


@given(st.text(max_size=200))
def test_every_text_finds_itself_and_no_term_comes_twice(text: str) -> None:
    encoder = WordEncoder()
    asked, held = encoder.query(text), encoder.passage(text)
    assert (asked is None) == (held is None)
    if asked is not None and held is not None:
        assert sorted(asked.indices) == sorted(set(held.indices))
        assert len(asked.indices) == len(set(asked.indices)) == len(held.indices)
        assert all(0 <= term < 1 << 32 for term in held.indices)
        assert all(value > 0 for value in [*held.values, *asked.values])
