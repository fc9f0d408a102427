"""Which weights the tuning chooses, on figures whose best is known by hand."""

from __future__ import annotations

from evals.retrieval.tuning import (
    NEITHER,
    Choice,
    Weights,
    choices,
    merged,
    weights_table,
)

LOW, HIGH = Weights(0.1, 0), Weights(0.4, 0)

FOUND = {
    NEITHER: {"a": 0.5, "b": 0.5, "c": 0.5},
    LOW: {"a": 0.53, "b": 0.51, "c": 0.51},
    HIGH: {"a": 0.48, "b": 0.52, "c": 0.52},
}


def test_every_choice_is_the_best_of_the_sets_that_it_may_see() -> None:
    chosen = list(choices(FOUND))
    assert [(one.weights, one.without) for one in chosen] == [
        (LOW, None),
        (HIGH, "a"),
        (LOW, "b"),
        (LOW, "c"),
    ]


def test_the_gain_is_that_of_the_set_left_out_over_words_alone() -> None:
    lines = [str(one) for one in choices(FOUND)]
    assert lines == [
        "all sets: pairs 0.1, beginnings 0",
        "without a: pairs 0.4, beginnings 0; a -0.0200",
        "without b: pairs 0.1, beginnings 0; b +0.0100",
        "without c: pairs 0.1, beginnings 0; c +0.0100",
    ]


def test_one_set_alone_leaves_none_to_choose_without_it() -> None:
    assert [one.without for one in choices({NEITHER: {"a": 0.5}, LOW: {"a": 0.6}})] == [None]


def test_of_equally_good_weights_the_smallest_are_chosen() -> None:
    found = {HIGH: {"a": 0.5}, NEITHER: {"a": 0.5}, LOW: {"a": 0.5}}
    assert next(iter(choices(found))) == Choice(NEITHER, without=None, gain=None)


def test_a_set_that_was_cut_in_two_ways_counts_as_their_mean() -> None:
    whole = {NEITHER: {"a": 0.25}, LOW: {"a": 0.5}}
    chunks = {NEITHER: {"a": 0.75}, LOW: {"a": 1.0}}
    other = {NEITHER: {"b": 0.5}, LOW: {"b": 0.25}}
    assert merged([whole, chunks, other]) == {
        NEITHER: {"a": 0.5, "b": 0.5},
        LOW: {"a": 0.75, "b": 0.25},
    }


def test_the_table_has_a_row_for_all_weights_and_a_mean_for_all_sets() -> None:
    table = weights_table(FOUND)
    assert table.row_count == len(FOUND)
    assert [column.header for column in table.columns] == [
        "pairs",
        "beginnings",
        "a",
        "b",
        "c",
        "mean",
    ]
    assert list(table.columns[-1].cells) == ["0.5000", "0.5167", "0.5067"]
