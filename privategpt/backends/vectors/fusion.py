"""One ranking from two: by meaning (cosine) and by words (BM25), fused here for every engine.

The engines' own fusions see ranks, or scores in units of their own spread, and so let a leg that
knows nothing speak as loudly as one that does. A language that the embedding model cannot read
gives cosines that are all alike, and none that stands out: here such a leg has little to say.
What was measured is in docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from operator import mul, neg
from typing import Protocol, TypeAlias, TypeVar

IdT = TypeVar("IdT", str, int)
"""A chunk's or a point's id: what an engine reads quickly. It orders equal scores."""

Leg: TypeAlias = Mapping[IdT, float]
"""Scores by id, best first."""

Ranking: TypeAlias = list[tuple[IdT, float]]
"""Ids with their scores, best first."""


class Fuse(Protocol):
    """A way to make one ranking of two."""

    def __call__(self, meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:
        """Fuse the hits by meaning with those by words; either may be empty."""
        ...


_ROUNDING = 1e-6

MEANING = 0.75
"""The share of the cosine in the score where both legs stand out alike; the rest is BM25's."""


def fuse(meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:
    """Every chunk of either leg once: a mean of its cosine and its BM25 over the best BM25.

    A leg weighs as much as its best stands out from the others that it lists, in standard
    deviations. A chunk that a leg does not list counts there as the last that it lists: it is no
    better, and how much worse is unknown. Equal scores are ordered by id.
    """
    if not words:
        return list(meaning.items())
    best = next(iter(words.values())) or 1.0
    bm25 = {id_: score / best for id_, score in words.items()}
    share = _share(list(meaning.values()), list(bm25.values()))
    rest = 1 - share
    least_by_meaning = share * min(meaning.values(), default=0.0)
    least_by_words = min(bm25.values())
    fused = {
        id_: share * cosine + rest * bm25.get(id_, least_by_words)
        for id_, cosine in meaning.items()
    }
    for id_, score in bm25.items():
        if id_ not in fused:
            fused[id_] = least_by_meaning + rest * score
    return ranked(fused)


def _share(cosines: Sequence[float], bm25: Sequence[float]) -> float:
    if not cosines:
        return 0.0
    by_meaning = MEANING * _prominence(cosines)
    by_words = (1 - MEANING) * _prominence(bm25)
    return by_meaning / (by_meaning + by_words)


def _prominence(scores: Sequence[float]) -> float:
    mean = fsum(scores) / len(scores)
    spread = sqrt(max(0.0, fsum(map(mul, scores, scores)) / len(scores) - mean * mean))
    # Below this the scores differ by the rounding of float32 only, and none stands out.
    return (max(scores) - mean) / spread if spread > _ROUNDING else 1.0


def ranked(scores: Mapping[IdT, float]) -> Ranking[IdT]:
    """These scores, best first, equal ones by id."""
    return [
        (id_, -falling)
        for falling, id_ in sorted(zip(map(neg, scores.values()), scores, strict=True))
    ]
