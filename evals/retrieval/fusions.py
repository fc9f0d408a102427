"""The rankings that ours is held against, each a way to fuse the same two legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from privategpt.backends.vectors.fusion import Fuse, ranked
from privategpt.domain.ports import Hit

_RRF_K = 60


def words_alone(meaning: Sequence[Hit], words: Sequence[Hit]) -> list[Hit]:  # noqa: ARG001
    """BM25."""
    return list(words)


def meaning_alone(meaning: Sequence[Hit], words: Sequence[Hit]) -> list[Hit]:  # noqa: ARG001
    """The embedding's cosine."""
    return list(meaning)


def reciprocal_ranks(meaning: Sequence[Hit], words: Sequence[Hit]) -> list[Hit]:
    """RRF with the usual k of 60, ranks from 1."""
    scores: dict[str, float] = {}
    for leg in (meaning, words):
        for rank, hit in enumerate(leg, start=1):
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + 1 / (_RRF_K + rank)
    return ranked(scores)


def distributions(meaning: Sequence[Hit], words: Sequence[Hit]) -> list[Hit]:
    """DBSF as the engines have it: the mean plus and minus three deviations become 0 and 1."""
    scores: dict[str, float] = {}
    for leg in (meaning, words):
        for hit in _by_distribution(leg):
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + hit.score
    return ranked(scores)


def _by_distribution(leg: Sequence[Hit]) -> list[Hit]:
    values = [hit.score for hit in leg]
    spread = stdev(values) if len(values) > 1 else 0.0
    if not spread:
        return [Hit(chunk_id=hit.chunk_id, score=0.5) for hit in leg]
    lowest = fmean(values) - 3 * spread
    return [Hit(chunk_id=h.chunk_id, score=(h.score - lowest) / (6 * spread)) for h in leg]


OURS = "ours"

OTHERS: Mapping[str, Fuse] = {
    "BM25": words_alone,
    "dense": meaning_alone,
    "RRF k=60": reciprocal_ranks,
    "DBSF": distributions,
}
"""By the name in the table, in its order."""

FUSIONS = (*OTHERS, OURS)


class RememberingFusion:
    """Fuses as another does, and keeps the two legs of the last search."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self._meaning: Sequence[Hit] = ()
        self._words: Sequence[Hit] = ()

    def __call__(self, meaning: Sequence[Hit], words: Sequence[Hit]) -> list[Hit]:
        """What the other says."""
        self._meaning, self._words = meaning, words
        return self._fuse(meaning, words)

    def ranking(self, fuse: Fuse) -> list[str]:
        """Chunk ids of the last search, fused in another way."""
        return [hit.chunk_id for hit in fuse(self._meaning, self._words)]
