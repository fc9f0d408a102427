"""What the recorded answers are worth."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MARKER = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question and what the server made of it. `cited` are paragraph ids in order."""

    question_id: str
    answerable: bool
    paragraph: str
    gold: tuple[str, ...]
    answer: str
    cited: tuple[str, ...]
    retrieved: tuple[str, ...]
    grounded: bool
    seconds: float

    @property
    def correct(self) -> bool:
        """The answer contains one of the gold answers, by SQuAD's own normalisation."""
        said = normalised(self.answer)
        return any(normalised(gold) in said for gold in self.gold)


@dataclass(frozen=True, slots=True)
class Scores:
    """Shares are 0–1; over which questions is said beside each.

    `contains_gold`: answerable questions whose answer contains a gold answer.
    `retrieved`: answerable questions whose paragraph the model was given.
    `citation_precision`: citations, of answers to answerable questions, of the right paragraph.
    `citation_recall`: answers that contain a gold answer and cite the right paragraph.
    `cited_share`: all answerable questions whose answer cites the right paragraph.
    `abstention_*`: `grounded: false` as the sign for an unanswerable question.
    """

    questions: int
    answerable: int
    contains_gold: float
    retrieved: float
    citation_precision: float
    citation_recall: float
    cited_share: float
    abstention_precision: float
    abstention_recall: float
    abstention_f1: float
    median_seconds: float


def normalised(text: str) -> str:
    """Lower case, no markers, punctuation or articles, single spaces."""
    text = _MARKER.sub(" ", text.lower()).translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def score(outcomes: Sequence[Outcome]) -> Scores:
    """Score a run; an empty denominator gives 0."""
    answerable = [outcome for outcome in outcomes if outcome.answerable]
    correct = [outcome for outcome in answerable if outcome.correct]
    citations = [cited == outcome.paragraph for outcome in answerable for cited in outcome.cited]
    abstained = [outcome for outcome in outcomes if not outcome.grounded]
    unanswerable = [outcome for outcome in outcomes if not outcome.answerable]
    rightly = sum(not outcome.answerable for outcome in abstained)
    precision = _share(rightly, len(abstained))
    recall = _share(rightly, len(unanswerable))
    seconds = sorted(outcome.seconds for outcome in outcomes)
    return Scores(
        questions=len(outcomes),
        answerable=len(answerable),
        contains_gold=_share(len(correct), len(answerable)),
        retrieved=_mean(outcome.paragraph in outcome.retrieved for outcome in answerable),
        citation_precision=_mean(citations),
        citation_recall=_mean(outcome.paragraph in outcome.cited for outcome in correct),
        cited_share=_mean(outcome.paragraph in outcome.cited for outcome in answerable),
        abstention_precision=precision,
        abstention_recall=recall,
        abstention_f1=2 * precision * recall / (precision + recall) if rightly else 0.0,
        median_seconds=seconds[len(seconds) // 2] if seconds else 0.0,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(values: Iterable[bool]) -> float:
    listed = list(values)
    return _share(sum(listed), len(listed))
