"""Conversations made from questions that name their article's title."""

from __future__ import annotations

import pytest

from evals.retrieval.followups import FollowUp, condensed, follow_ups, with_pronoun
from evals.retrieval.sets import EvaluationSet, Passage


@pytest.mark.parametrize(
    ("question", "title", "made"),
    [
        ("What kingdom annexed Warsaw in 1796?", "Warsaw", "What kingdom annexed it in 1796?"),
        ("What was Warsaw's name?", "Warsaw", "What was its name?"),
        ("When did the Normans settle?", "Normans", "When did they settle?"),
        ("Who fought the Normans?", "Normans", "Who fought them?"),
        ("Which were the Normans' lands?", "Normans", "Which were their lands?"),
        ("Who led the Warsaw Uprising?", "Warsaw", None),
        ("How far is the sea?", "Warsaw", None),
        ("Where do Warsawians live?", "Warsaw", None),
    ],
)
def test_a_pronoun_stands_for_the_title(question: str, title: str, made: str | None) -> None:
    assert with_pronoun(question, title) == made


def test_the_turn_before_is_of_the_same_article_and_of_another_passage() -> None:
    titles = {"n1": "Normans", "w1": "Warsaw", "w2": "Warsaw"}
    passages = {id_: Passage(title, "") for id_, title in titles.items()}
    queries = {
        "a": "Who were the Normans?",
        "b": "How many people live in Warsaw?",
        "c": "Which river is near Warsaw?",
        "d": "Who lived in Warsaw before?",
        "e": "How deep is the sea?",
    }
    relevant = {"a": {"n1": 1.0}, "b": {"w1": 1.0}, "c": {"w1": 1.0}, "d": {"w2": 1.0}}
    collection = EvaluationSet("s", passages, queries, {**relevant, "e": {"w2": 1.0}})
    assert follow_ups(collection) == [
        FollowUp("d", queries["c"], queries["a"], queries["d"], "Who lived in it before?")
    ]


def test_what_is_searched_for_is_what_the_product_makes_of_the_conversation() -> None:
    assert condensed("Which river is near Warsaw?", "Who annexed it?").endswith("Who annexed it?")
    assert "Warsaw" in condensed("Which river is near Warsaw?", "Who annexed it?")
