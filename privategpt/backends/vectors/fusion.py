"""One ranking from two: by meaning (cosine) and by words (BM25), fused here for every engine.

The engines' own fusions see ranks, or scores in units of their own spread, and so let a leg that
knows nothing speak as loudly as one that does. A language that the embedding model cannot read
gives cosines that are all alike, and none that stands out: here such a leg has little to say.
What was measured is in docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, sqrt
from typing import TypeAlias

from privategpt.domain.ports import Hit

Fuse: TypeAlias = Callable[[Sequence[Hit], Sequence[Hit]], list[Hit]]
"""Hits by meaning and hits by words, each best first, to one list, best first."""

_ROUNDING = 1e-6

MEANING = 0.75
"""The share of the cosine in the score where both legs stand out alike; the rest is BM25's."""


def fuse(meaning: Sequence[Hit], words: Sequence[Hit]) -> list[Hit]:
    """Every chunk of either leg once: a mean of its cosine and its BM25 over the best BM25.

    A leg weighs as much as its best stands out from the others that it lists, in standard
    deviations. A chunk that a leg does not list counts there as the last that it lists: it is no
    better, and how much worse is unknown. Equal scores are ordered by id.
    """
    if not words:
        return list(meaning)
    best = words[0].score or 1.0
    cosine = {hit.chunk_id: hit.score for hit in meaning}
    bm25 = {hit.chunk_id: hit.score / best for hit in words}
    share = _share(list(cosine.values()), list(bm25.values()))
    last_cosine, last_bm25 = min(cosine.values(), default=0.0), min(bm25.values())
    return ranked(
        {
            chunk_id: share * cosine.get(chunk_id, last_cosine)
            + (1 - share) * bm25.get(chunk_id, last_bm25)
            for chunk_id in cosine | bm25
        }
    )


def _share(cosines: Sequence[float], bm25: Sequence[float]) -> float:
    if not cosines:
        return 0.0
    by_meaning = MEANING * _prominence(cosines)
    by_words = (1 - MEANING) * _prominence(bm25)
    return by_meaning / (by_meaning + by_words)


def _prominence(scores: Sequence[float]) -> float:
    mean = fsum(scores) / len(scores)
    spread = sqrt(fsum((score - mean) ** 2 for score in scores) / len(scores))
    # Below this the scores differ by the rounding of float32 only, and none stands out.
    return (max(scores) - mean) / spread if spread > _ROUNDING else 1.0


def ranked(scores: Mapping[str, float]) -> list[Hit]:
    """Hits of these scores by chunk id, best first, equal ones by id."""
    order = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [Hit(chunk_id=chunk_id, score=score) for chunk_id, score in order]
