"""Finds the words of a source that support a sentence, and says how well they do.

For each sentence of the source: how near it is in meaning (cosine), how many of the claim's words
it has (rare ones count more), alone and with its neighbours, and how the figures and names of the
claim fare there. The best by these is the anchor; a neighbour joins it where it brings words of
the claim that the anchor lacks. The support of the claim is a logistic function of what the anchor,
its neighbours, the three best sentences and the whole source with its title say, less what the gate
found denied.

The weights are fitted by `python -m evals.support fit` on one half of the claims of WiCE and
SciFact and kept in `grounding/weights.py`, with the thresholds and what they were measured to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from privategpt.domain.answers import Source
from privategpt.domain.ports import Vector
from privategpt.grounding.gate import (
    Comparison,
    Contradiction,
    Ground,
    Statement,
    compare,
    read_statement,
    replaced_names,
)
from privategpt.grounding.lexical import Rarity, Terms, pair_recall, read_terms
from privategpt.grounding.lexicon import STOPS_AT_ONCE, STOPS_BEFORE_SPACE
from privategpt.grounding.sentences import Span, split_sentences
from privategpt.grounding.weights import RANKING, SUPPORT, SUPPORT_BIAS

_BEST_SENTENCES = 3
_WORTH_ADDING = 0.12
"""Share of the claim's words that a neighbour must bring to join the cited run."""
_SAME_WORDS = 0.6
"""From this share of the claim's words on, its figures left out, what differs is denied outright;
below it the two sentences may just speak of different things."""

_FEWEST_WORDS_OF_A_STATEMENT = 2

_NEAR_THE_QUESTION = 0.45
"""Cosine of a question and what is cited for its answer; chosen on the tuning half of SQuAD 2.0."""

_FIGURES = (Ground.NUMBER, Ground.UNIT, Ground.YEAR, Ground.DATE)

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """A source cut into sentences; `spans` count within the source's own text."""

    source: Source
    spans: tuple[Span, ...]
    terms: tuple[Terms, ...]
    statements: tuple[Statement, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences' texts, in order."""
        return tuple(self.source.text[span.start : span.end] for span in self.spans)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, read for comparison.

    A source without all of the `required` words does not support it, whatever else it has; nor
    one whose sentences that have them all say the opposite. `denied`: these words deny something.
    """

    terms: Terms
    statement: Statement
    vector: Vector
    required: frozenset[str] = frozenset()
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Where in a source a claim is best supported: sentences `first` to `last`, around `anchor`."""

    anchor: int
    first: int
    last: int
    features: Mapping[str, float]
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, slots=True)
class Support:
    """The best that a source has for a claim: `document_text[start:end]` of its document.

    `first`, `last` and `anchor` are indices of sentences: those cited, and the one that supports
    most; `score` is 0–1.
    """

    source: Source
    start: int
    end: int
    first: int
    last: int
    anchor: int
    score: float
    contradictions: tuple[Contradiction, ...]

    @property
    def text(self) -> str:
        """The evidence itself, as stored."""
        return self.source.text[self.start - self.source.start : self.end - self.source.start]


def read_passage(source: Source) -> Passage:
    """Cut and read a source, once per answer."""
    spans = tuple(split_sentences(source.text))
    texts = [source.text[span.start : span.end] for span in spans]
    return Passage(
        source=source,
        spans=spans,
        terms=tuple(map(read_terms, texts)),
        statements=tuple(map(read_statement, texts)),
    )


def read_claim(text: str, vector: Vector, *, required: str = "") -> Claim:
    """Read a sentence of the answer; its markers must be gone."""
    return Claim(
        terms=read_terms(text),
        statement=read_statement(text),
        vector=vector,
        required=read_terms(required).words,
        denied=read_statement(required).negated,
    )


class Attributor:
    """Holds claims against the sources of one answer."""

    def __init__(self, passages: Sequence[Passage], vectors: Sequence[Sequence[Vector]]) -> None:
        """`vectors` has, for each passage, one vector for each of its sentences."""
        self._rarity = Rarity([terms for passage in passages for terms in passage.terms])
        self._evidence = {
            passage.source.number: Evidence(passage, rows, self._rarity)
            for passage, rows in zip(passages, vectors, strict=True)
            if passage.spans
        }

    def support(self, claim: Claim, *, number: int) -> Support | None:
        """What the source of that number has for the claim; None if it has no text."""
        evidence = self._evidence.get(number)
        return evidence.support(claim) if evidence else None

    def quotes(self, text: str, *, number: int) -> bool:
        """Whether `text` is, word for word, a sentence of the source of that number."""
        evidence = self._evidence.get(number)
        return evidence is not None and evidence.has_sentence(text)

    def answers(self, question: Claim, support: Support) -> bool:
        """Whether what supports a claim has to do with what was asked."""
        return self._evidence[support.source.number].answers(question, support)

    def best(self, claim: Claim) -> Support | None:
        """The best that any source has for the claim; of equals the first."""
        found = [evidence.support(claim) for evidence in self._evidence.values()]
        return max(found, key=lambda support: support.score, default=None)


class Evidence:
    """One source, ready to be asked about claims. `ranking` weighs what makes an anchor."""

    def __init__(
        self,
        passage: Passage,
        vectors: Sequence[Vector],
        rarity: Rarity,
        *,
        ranking: Mapping[str, float] = RANKING,
    ) -> None:
        self._ranking = ranking
        self._passage = passage
        self._rarity = rarity
        title = read_terms(passage.source.title)
        self._everything = reduce(Terms.__or__, passage.terms, title)
        self._stated = reduce(
            Statement.__add__, passage.statements, read_statement(passage.source.title)
        )
        self._matrix: Matrix = np.asarray(vectors, dtype=np.float32)

    def support(self, claim: Claim) -> Support:
        """The best that this source has for the claim."""
        found = self.examine(claim)
        source, spans = self._passage.source, self._passage.spans
        return Support(
            source=source,
            start=source.start + spans[found.first].start,
            end=source.start + spans[found.last].end,
            first=found.first,
            last=found.last,
            anchor=found.anchor,
            score=support_score(found.features) if self._allows(claim) else 0.0,
            contradictions=found.contradictions,
        )

    def answers(self, question: Claim, support: Support) -> bool:
        """Whether `support`, which is from here, has to do with what was asked.

        The source has the question's names and figures, and what is cited is near the question
        in meaning, denies what it denies and goes where it goes. A small model that is asked who
        does *not* enforce a law, or about Hollywood instead of Holyrood, says what it has read.
        """
        cited = range(support.first, support.last + 1)
        near = max(float(self._matrix[at] @ np.asarray(question.vector)) for at in cited)
        asked, said = question.statement, self._statement(cited)
        found = compare(asked, self._stated)
        return (
            near >= _NEAR_THE_QUESTION
            and (found.names, found.numbers) == (found.names_found, found.numbers_found)
            and (said.negated or not asked.negated)
            and not compare(asked, said).denies(Ground.DIRECTION)
        )

    def has_sentence(self, text: str) -> bool:
        """Whether one of its sentences is `text`, but for spaces and the full stop."""
        return _bare(text) in map(_bare, self._passage.sentences)

    def _allows(self, claim: Claim) -> bool:
        """Whether the few words that the claim is about are here, and not only said otherwise."""
        if not claim.required:
            return True
        if not claim.required <= self._everything.words:
            return False
        read = zip(self._passage.terms, self._passage.statements, strict=True)
        said = {statement.negated for terms, statement in read if claim.required <= terms.words}
        if claim.denied:
            return not said or True in said
        # A name or a number says nothing by itself, and a question may ask for what is not.
        states = len(claim.required) >= _FEWEST_WORDS_OF_A_STATEMENT
        return not states or claim.statement.negated or not said or False in said

    def examine(self, claim: Claim) -> Finding:
        """Where the claim is best supported, and what speaks for and against it there."""
        features = self.sentence_features(claim)
        rank = sum(weight * features[name] for name, weight in self._ranking.items())
        order = np.argsort(-np.asarray(rank), kind="stable")
        anchor = int(order[0])
        first, last = self._run(claim, anchor)
        in_run = compare(claim.statement, self._statement(range(first, last + 1)))
        best = [int(at) for at in order[:_BEST_SENTENCES]]
        return Finding(
            anchor=anchor,
            first=first,
            last=last,
            features=self._claim_features(claim, features, best=best, in_run=in_run),
            contradictions=in_run.contradictions,
        )

    def sentence_features(self, claim: Claim) -> Mapping[str, npt.NDArray[np.float64]]:
        """For each sentence of the passage: what ranks it."""
        terms, count = self._passage.terms, len(self._passage.terms)
        around = [range(max(0, at - 1), min(count, at + 2)) for at in range(count)]
        cosine = (self._matrix @ np.asarray(claim.vector, dtype=np.float32)).astype(np.float64)
        compared = [compare(claim.statement, one) for one in self._passage.statements]
        return {
            "cosine": cosine,
            "cosine around": np.array([max(cosine[at] for at in places) for places in around]),
            "recall": np.array([self._rarity.recall(claim.terms, one) for one in terms]),
            "recall around": np.array(
                [self._rarity.recall(claim.terms, self._terms(places)) for places in around]
            ),
            "numbers": np.array([_share(one.numbers_found, one.numbers) for one in compared]),
            "names": np.array([_share(one.names_found, one.names) for one in compared]),
            "length": np.array([math.log1p(len(one.words)) for one in terms]),
            "direction reversed": _denied(compared, Ground.DIRECTION),
            "asks": np.array([float(one.asks) for one in self._passage.statements]),
            "reports": np.array([float(one.reports) for one in self._passage.statements]),
        }

    def _claim_features(
        self,
        claim: Claim,
        features: Mapping[str, npt.NDArray[np.float64]],
        *,
        best: Sequence[int],
        in_run: Comparison,
    ) -> dict[str, float]:
        """What tells whether the claim as a whole is supported."""
        anchor = best[0]
        statement = self._passage.statements[anchor]
        whole = compare(claim.statement, self._statement(best))
        best_terms = self._terms(best)
        return {
            "cosine": float(features["cosine"][anchor]),
            "recall": float(features["recall"][anchor]),
            "recall of three": self._rarity.recall(claim.terms, best_terms),
            "recall around": float(features["recall around"][anchor]),
            "recall of passage": self._rarity.recall(claim.terms, self._everything),
            "pairs": pair_recall(claim.terms, best_terms),
            "numbers": _share(whole.numbers_found, whole.numbers),
            "names": _share(whole.names_found, whole.names),
            "asks": float(statement.asks),
            "reports": float(statement.reports),
            "figures denied": float(in_run.denies(*_FIGURES)),
            "denied in the same words": float(self._denies(claim, anchor, in_run=in_run)),
        }

    def _denies(self, claim: Claim, anchor: int, *, in_run: Comparison) -> bool:
        """Whether the anchor says the same but for a figure, a name, a "not" or the direction."""
        statement = self._passage.statements[anchor]
        at_anchor = compare(claim.statement, statement)
        replaced = replaced_names(claim.statement, place=statement, passage=self._stated)
        if not (
            replaced
            or in_run.denies(*_FIGURES)
            or at_anchor.denies(Ground.NEGATION, Ground.DIRECTION)
        ):
            return False
        given = self._passage.terms[anchor]
        wanted = claim.terms.without_figures.without(read_terms(" ".join(replaced)).words)
        return self._rarity.recall(wanted, given) >= _SAME_WORDS

    def _run(self, claim: Claim, anchor: int) -> tuple[int, int]:
        """The anchor with those neighbours that bring enough of what it lacks."""
        count = len(self._passage.terms)
        first = last = anchor
        recall = self._rarity.recall(claim.terms, self._passage.terms[anchor])
        for at in (anchor - 1, anchor + 1):
            if not 0 <= at < count:
                continue
            wider = range(min(first, at), max(last, at) + 1)
            gained = self._rarity.recall(claim.terms, self._terms(wider))
            if gained - recall >= _WORTH_ADDING:
                first, last, recall = wider[0], wider[-1], gained
        return first, last

    def _terms(self, places: Sequence[int]) -> Terms:
        return reduce(Terms.__or__, (self._passage.terms[at] for at in places))

    def _statement(self, places: Sequence[int]) -> Statement:
        return reduce(Statement.__add__, (self._passage.statements[at] for at in places))


def support_score(features: Mapping[str, float]) -> float:
    """The features as one number, 0–1."""
    total = SUPPORT_BIAS + sum(weight * features[name] for name, weight in SUPPORT.items())
    return 1 / (1 + math.exp(-total))


def _bare(sentence: str) -> str:
    return " ".join(sentence.split()).rstrip(f".。{STOPS_BEFORE_SPACE}{STOPS_AT_ONCE} ")


def _share(found: int, all_: int) -> float:
    return found / all_ if all_ else 1.0


def _denied(compared: Sequence[Comparison], ground: Ground) -> npt.NDArray[np.float64]:
    return np.array([float(one.denies(ground)) for one in compared])
