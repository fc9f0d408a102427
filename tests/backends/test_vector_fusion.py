"""How the ranking by meaning and the ranking by words become one."""

from __future__ import annotations

from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.vectors.fusion import fuse


def leg(**scores: float) -> dict[str, float]:
    """These scores, best first."""
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def ids(ranking: list[tuple[str, float]]) -> list[str]:
    return [chunk_id for chunk_id, _ in ranking]


def any_leg(lowest: float, highest: float) -> st.SearchStrategy[dict[str, float]]:
    scores = st.dictionaries(
        st.sampled_from("abcdefghij"), st.floats(lowest, highest, width=32), max_size=10
    )
    return scores.map(lambda found: leg(**found))


@given(any_leg(-1, 1), any_leg(0, 60))
def test_every_chunk_comes_once_and_scores_descend(
    meaning: dict[str, float], words: dict[str, float]
) -> None:
    fused = fuse(meaning, words)
    assert sorted(ids(fused)) == sorted({*meaning, *words})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(isfinite(score) and -1 <= score <= 1 + 1e-9 for score in scores)


@given(any_leg(-1, 1), any_leg(0, 60))
def test_what_both_legs_put_before_another_stays_before_it(
    meaning: dict[str, float], words: dict[str, float]
) -> None:
    score = dict(fuse(meaning, words))
    both = meaning.keys() & words.keys()
    for one in both:
        for other in both:
            if meaning[one] >= meaning[other] and words[one] >= words[other]:
                assert score[one] >= score[other] - 1e-9


def test_without_words_the_ranking_is_that_of_meaning() -> None:
    meaning = leg(a=0.9, b=0.5)
    assert fuse(meaning, {}) == [("a", 0.9), ("b", 0.5)]


def test_without_a_meaning_the_ranking_is_that_of_words() -> None:
    assert ids(fuse({}, leg(a=12.0, b=7.0))) == ["a", "b"]


def test_a_leg_that_cannot_tell_chunks_apart_leaves_it_to_the_other() -> None:
    alike = leg(a=0.501, b=0.504, c=0.502, d=0.503, e=0.5)
    words = leg(a=20.0, b=8.0, c=7.0, d=6.0)
    assert ids(fuse(alike, words))[0] == "a"


def test_what_stands_out_by_meaning_wins_over_a_common_word() -> None:
    meaning = leg(a=0.8, b=0.2, c=0.19, d=0.18, e=0.17)
    words = leg(b=1.3, c=1.25, d=1.2, e=1.15, a=1.1)
    assert ids(fuse(meaning, words))[0] == "a"


def test_a_chunk_that_both_legs_list_comes_before_one_that_one_lists() -> None:
    assert ids(fuse(leg(a=0.6, b=0.6, c=0.2), leg(b=9.0, d=8.0, c=3.0)))[0] == "b"


def test_equal_scores_are_ordered_by_id() -> None:
    assert ids(fuse(leg(b=0.5, a=0.5), leg(a=3.0, b=3.0))) == ["a", "b"]


def test_words_that_weigh_nothing_change_no_order() -> None:
    assert ids(fuse(leg(a=0.7, b=0.3), leg(b=0.0, a=0.0))) == ["a", "b"]
