"""What is reported: how the product's own scores fare against the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evals.support.cases import Case
from privategpt.grounding.attribution import Evidence


@dataclass(frozen=True, slots=True)
class Judgement:
    """The best support found for a claim: its score, and whether its anchor is a gold sentence.

    `cited` counts the sentences of the cited run, `cited_gold` the gold ones among them.
    """

    score: float
    gold: bool
    cited: int = 0
    cited_gold: int = 0


Judged: TypeAlias = Sequence[tuple[Case, Judgement]]


@dataclass(frozen=True, slots=True)
class WiceFigures:
    """`cited_is_gold` is over all claims that have gold sentences, whatever their score."""

    claims: int
    cited_is_gold: float
    supported: int
    supported_kept: float
    unsupported: int
    unsupported_rejected: float


@dataclass(frozen=True, slots=True)
class ScifactFigures:
    """One citation per claim at most, right if its anchor is a gold sentence.

    `recall` is over claims with evidence, for or against. The `sentence_` figures count sentences
    instead: those of the cited run against all gold sentences, found by retrieval or not.
    """

    claims: int
    precision: float
    recall: float
    f1: float
    sentence_precision: float
    sentence_recall: float
    sentence_f1: float
    without_evidence_uncited: float
    contradicted_uncited: float


def judge(
    cases: Sequence[Case],
    *,
    ranking: Mapping[str, float],
    support: Mapping[str, float],
    bias: float,
) -> Judged:
    """Hold every claim against its sources with these weights."""
    return [(case, _judge(case, ranking, support, bias)) for case in cases]


def _judge(
    case: Case, ranking: Mapping[str, float], support: Mapping[str, float], bias: float
) -> Judgement:
    best = Judgement(0.0, gold=False)
    for candidate in case.candidates:
        if not candidate.passage.spans:
            continue
        evidence = Evidence(candidate.passage, candidate.vectors, case.rarity, ranking=ranking)
        found = evidence.examine(case.claim)
        total = bias + sum(weight * found.features[name] for name, weight in support.items())
        score = 1 / (1 + math.exp(-total))
        if score > best.score:
            run = range(found.first, found.last + 1)
            best = Judgement(
                score,
                gold=found.anchor in candidate.gold,
                cited=len(run),
                cited_gold=len(candidate.gold.intersection(run)),
            )
    return best


def wice_figures(judged: Judged, *, floor: float) -> WiceFigures:
    """At this floor."""
    with_gold = [one for case, one in judged if case.candidates[0].gold]
    supported = [one for case, one in judged if case.label == "supported"]
    unsupported = [one for case, one in judged if case.label == "not_supported"]
    return WiceFigures(
        claims=len(judged),
        cited_is_gold=_share(sum(one.gold for one in with_gold), len(with_gold)),
        supported=len(supported),
        supported_kept=_share(sum(one.score >= floor for one in supported), len(supported)),
        unsupported=len(unsupported),
        unsupported_rejected=_share(
            sum(one.score < floor for one in unsupported), len(unsupported)
        ),
    )


def scifact_figures(judged: Judged, *, threshold: float) -> ScifactFigures:
    """At this threshold."""
    cited = [one for _, one in judged if one.score >= threshold]
    right = sum(one.gold for one in cited)
    evident = sum(case.label != "NOT_ENOUGH_INFO" for case, _ in judged)
    sentences = sum(one.cited for one in cited)
    found = sum(one.cited_gold for one in cited)
    gold = sum(case.gold_sentences for case, _ in judged)
    return ScifactFigures(
        claims=len(judged),
        precision=_share(right, len(cited)),
        recall=_share(right, evident),
        f1=_share(2 * right, len(cited) + evident),
        sentence_precision=_share(found, sentences),
        sentence_recall=_share(found, gold),
        sentence_f1=_share(2 * found, sentences + gold),
        without_evidence_uncited=_uncited(judged, "NOT_ENOUGH_INFO", threshold),
        contradicted_uncited=_uncited(judged, "CONTRADICT", threshold),
    )


def _uncited(judged: Judged, label: str, threshold: float) -> float:
    scores = [one.score for case, one in judged if case.label == label]
    return _share(sum(score < threshold for score in scores), len(scores))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
