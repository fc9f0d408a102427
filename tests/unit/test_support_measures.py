"""What the support evals read and count, on claims whose figures are known by hand."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals.support.cases import Candidate, Case
from evals.support.data import scifact_claims
from evals.support.judging import Answer, Question, ask, compare, questions
from evals.support.measures import Judgement, scifact_figures
from privategpt.domain.answers import Source
from privategpt.domain.verification import Pair
from privategpt.grounding.attribution import read_claim, read_passage
from privategpt.grounding.lexical import Rarity

TEXT = "Water boils at 100 °C. Copper conducts heat. Wood burns."


def case(label: str, claim: str, *, gold: frozenset[int], missed: int = 0) -> Case:
    passage = read_passage(Source(number=1, title="", text=TEXT, document=None, start=0, end=56))
    vectors = tuple(array("f", [float(at == place) for at in range(3)]) for place in range(3))
    return Case(
        label=label,
        half=1,
        claim=read_claim(claim, array("f", [0.0, 1.0, 0.0])),
        candidates=(Candidate(passage, vectors, gold),),
        rarity=Rarity(passage.terms),
        missed=missed,
    )


class CountingVerifier:
    """Believes whatever speaks of copper, and remembers what it was asked."""

    method = "counting"

    def __init__(self) -> None:
        self.asked: list[Pair] = []

    async def verify(self, pairs: Sequence[Pair]) -> list[float]:
        self.asked += pairs
        return [float("Copper" in pair.claim) for pair in pairs]


def test_every_rationale_of_an_abstract_is_gold(tmp_path: Path) -> None:
    rationales = [["First."], ["Second.", "Third."], ["First."]]
    row = {
        "claim_id": "1",
        "claim": "It holds.",
        "label": "SUPPORT",
        "evidence": [{"doc_id": "d", "sentences": sentences} for sentences in rationales],
    }
    (tmp_path / "scifact").mkdir()
    (tmp_path / "scifact" / "evidence.jsonl").write_text(json.dumps(row) + "\n")
    assert scifact_claims(tmp_path)[0].gold == {"d": ("First.", "Second.", "Third.")}


def test_citations_and_cited_sentences_are_counted_apart() -> None:
    judged = [
        (case("SUPPORT", "a", gold=frozenset({0, 1}), missed=1), Judgement(0.9, True, 2, 1)),
        (case("SUPPORT", "b", gold=frozenset({2})), Judgement(0.1, True, 1, 1)),
        (case("CONTRADICT", "c", gold=frozenset({1})), Judgement(0.9, False, 1, 0)),
        (case("NOT_ENOUGH_INFO", "d", gold=frozenset()), Judgement(0.9, False, 1, 0)),
        (case("NOT_ENOUGH_INFO", "e", gold=frozenset()), Judgement(0.1, False, 1, 0)),
    ]
    found = scifact_figures(judged, threshold=0.5)
    assert (found.precision, found.recall) == pytest.approx((1 / 3, 1 / 3))
    assert found.f1 == pytest.approx(1 / 3)
    assert (found.sentence_precision, found.sentence_recall) == pytest.approx((1 / 4, 1 / 5))
    assert found.sentence_f1 == pytest.approx(2 / 9)
    assert (found.without_evidence_uncited, found.contradicted_uncited) == (0.5, 0.0)


def test_claims_of_all_labels_are_put_to_the_judge_with_what_would_be_cited() -> None:
    cases = [
        case("supported", "Copper conducts heat", gold=frozenset({1})),
        case("supported", "Copper conducts", gold=frozenset({1})),
        case("partially_supported", "Copper", gold=frozenset({1})),
        case("CONTRADICT", "Copper conducts no heat", gold=frozenset({1})),
    ]
    texts = ["Copper conducts heat", "Copper conducts", "Copper", "Copper conducts no heat"]
    asked = questions(cases, texts, limit=2)
    assert [question.pair for question in asked] == [
        Pair("Copper conducts heat", "Copper conducts heat."),
        Pair("Copper conducts no heat", "Copper conducts heat."),
    ]
    assert asked[0].support > asked[1].support


async def test_a_stopped_judge_goes_on_where_it_was(tmp_path: Path) -> None:
    record = tmp_path / "cache" / "judge.jsonl"
    asked = [Question("supported", Pair(claim, "…"), 0.9) for claim in ("Copper is", "Wood is")]
    first = await ask(asked[:1], CountingVerifier(), record=record)
    again = CountingVerifier()
    answers = await ask(asked, again, record=record)
    assert [pair.claim for pair in again.asked] == ["Wood is"]
    assert answers == [*first, Answer("supported", "Wood is", 0.9, 0.0)]


def test_what_the_judge_adds_to_the_support_is_told_label_by_label() -> None:
    answers = [
        Answer("supported", "a", 0.9, 0.9),
        Answer("supported", "b", 0.9, 0.1),
        Answer("CONTRADICT", "c", 0.5, 0.9),
    ]
    assert compare(answers) == {
        "supported": {
            "claims": 2, "kept_by_support": 1.0, "kept_by_judge": 0.5, "kept_by_both": 0.5,
        },
        "CONTRADICT": {
            "claims": 1, "kept_by_support": 0.0, "kept_by_judge": 1.0, "kept_by_both": 0.0,
        },
    }  # fmt: skip
