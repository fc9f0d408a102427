"""Another verifier on the same claims: what it keeps and rejects beside the built-in support.

Claims are taken from the half that nothing was fitted on, from both sets and all labels in turn.
Each is put to the judge with the evidence that the product would cite. Answers are recorded one by
one, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.progress import track

from evals.support.cases import Case
from privategpt.domain.verification import Pair, Verifier
from privategpt.grounding.attribution import Evidence, Support
from privategpt.grounding.citations import VERIFIER_FLOOR
from privategpt.grounding.weights import ATTRIBUTION_THRESHOLD, FLOOR

TO_UPHOLD = ("supported", "SUPPORT")
TO_REJECT = ("not_supported", "NOT_ENOUGH_INFO", "CONTRADICT")


@dataclass(frozen=True, slots=True)
class Question:
    """A claim with the best evidence that was found for it, and the built-in score."""

    label: str
    pair: Pair
    support: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the judge said of it."""

    label: str
    claim: str
    support: float
    judged: float


def questions(cases: Sequence[Case], texts: Sequence[str], *, limit: int) -> list[Question]:
    """The first claims of each label in turn; `texts` are the claims' words."""
    by_label: dict[str, list[tuple[Case, str]]] = defaultdict(list)
    for case, text in zip(cases, texts, strict=True):
        if case.half == 1 and case.label in TO_UPHOLD + TO_REJECT:
            by_label[case.label].append((case, text))
    most = max(map(len, by_label.values()), default=0)
    turns = [pairs[at] for at in range(most) for pairs in by_label.values() if at < len(pairs)]
    chosen = turns[:limit]
    return [question for pair in chosen if (question := _question(*pair)) is not None]


def _question(case: Case, text: str) -> Question | None:
    best: Support | None = None
    for candidate in case.candidates:
        if candidate.passage.spans:
            evidence = Evidence(candidate.passage, candidate.vectors, case.rarity)
            found = evidence.support(case.claim)
            best = found if best is None or found.score > best.score else best
    return Question(case.label, Pair(text, best.text), best.score) if best else None


async def ask(asked: Sequence[Question], verifier: Verifier, *, record: Path) -> list[Answer]:
    """The judge's answers; those in `record` are not asked for again."""
    known = {answer.claim: answer for answer in _read(record)}
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a", encoding="utf-8") as lines:
        for question in track(asked, description="judging"):
            if question.pair.claim in known:
                continue
            (judged,) = await verifier.verify([question.pair])
            answer = Answer(question.label, question.pair.claim, question.support, judged)
            known[answer.claim] = answer
            lines.write(json.dumps(asdict(answer), ensure_ascii=False) + "\n")
            lines.flush()
    return [known[question.pair.claim] for question in asked]


def _read(record: Path) -> Iterator[Answer]:
    if record.exists():
        for line in record.read_text(encoding="utf-8").splitlines():
            yield Answer(**json.loads(line))


def compare(answers: Sequence[Answer]) -> Mapping[str, Mapping[str, float]]:
    """For each label: the shares that pass the built-in support, the judge, and both.

    The support is held against the floor for WiCE, whose claims stand for marked sentences, and
    against the attribution threshold for SciFact, as in the report.
    """
    return {
        label: _shares([one for one in answers if one.label == label])
        for label in TO_UPHOLD + TO_REJECT
        if any(one.label == label for one in answers)
    }


def _shares(answers: Sequence[Answer]) -> Mapping[str, float]:
    supported = [one.support >= _least(one.label) for one in answers]
    judged = [one.judged >= VERIFIER_FLOOR for one in answers]
    both = [a and b for a, b in zip(supported, judged, strict=True)]
    count = len(answers)
    return {
        "claims": count,
        "kept_by_support": round(sum(supported) / count, 3),
        "kept_by_judge": round(sum(judged) / count, 3),
        "kept_by_both": round(sum(both) / count, 3),
    }


def _least(label: str) -> float:
    return ATTRIBUTION_THRESHOLD if label.isupper() else FLOOR
