"""The rankings that ours is held against, each a way to fuse the same two legs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, stdev
from uuid import UUID

from privategpt.backends.vectors.fusion import Fuse, IdT, Leg, Ranking, ranked

_RRF_K = 60


def words_alone(meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:  # noqa: ARG001
    """BM25."""
    return list(words.items())


def meaning_alone(meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:  # noqa: ARG001
    """The embedding's cosine."""
    return list(meaning.items())


def reciprocal_ranks(meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:
    """RRF with the usual k of 60, ranks from 1."""
    scores: dict[IdT, float] = {}
    for leg in (meaning, words):
        for rank, id_ in enumerate(leg, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (_RRF_K + rank)
    return ranked(scores)


def distributions(meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:
    """DBSF as the engines have it: the mean plus and minus three deviations become 0 and 1."""
    scores: dict[IdT, float] = {}
    for leg in (meaning, words):
        for id_, score in _by_distribution(leg):
            scores[id_] = scores.get(id_, 0.0) + score
    return ranked(scores)


def _by_distribution(leg: Leg[IdT]) -> Ranking[IdT]:
    values = list(leg.values())
    spread = stdev(values) if len(values) > 1 else 0.0
    if not spread:
        return [(id_, 0.5) for id_ in leg]
    lowest = fmean(values) - 3 * spread
    return [(id_, (score - lowest) / (6 * spread)) for id_, score in leg.items()]


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
        self._legs: tuple[Leg[str], Leg[str]] = ({}, {})

    def __call__(self, meaning: Leg[IdT], words: Leg[IdT]) -> Ranking[IdT]:
        """What the other says."""
        self._legs = _by_chunk(meaning), _by_chunk(words)
        return self._fuse(meaning, words)

    def ranking(self, fuse: Fuse) -> list[str]:
        """Chunk ids of the last search, fused in another way."""
        return [chunk_id for chunk_id, _ in fuse(*self._legs)]


def _by_chunk(leg: Leg[IdT]) -> dict[str, float]:
    """The embedded index ranks points, whose ids are the numbers of their chunks' UUIDs."""
    return {
        str(UUID(int=id_)) if isinstance(id_, int) else id_: score for id_, score in leg.items()
    }
