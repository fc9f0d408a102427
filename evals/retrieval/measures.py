"""How good a ranking is, as BEIR and MTEB count it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Quality:
    """Measures of one ranking, or their means over many; each between 0 and 1."""

    ndcg_10: float
    recall_10: float
    recall_100: float
    mrr_10: float


def quality(ranking: Sequence[str], gains: Mapping[str, float]) -> Quality:
    """Of document ids, best first, where `gains` has the relevant ones, of which there are some."""
    return Quality(
        ndcg_10=_ndcg(ranking[:10], gains),
        recall_10=_recall(ranking[:10], gains),
        recall_100=_recall(ranking[:100], gains),
        mrr_10=_reciprocal_rank(ranking[:10], gains),
    )


def mean(qualities: Sequence[Quality]) -> Quality:
    """The mean of each measure over queries, of which there is at least one."""
    return Quality(
        **{
            field.name: fmean(getattr(one, field.name) for one in qualities)
            for field in fields(Quality)
        }
    )


def _ndcg(ranking: Sequence[str], gains: Mapping[str, float]) -> float:
    best = sorted(gains.values(), reverse=True)[:10]
    return _discounted([gains.get(one, 0.0) for one in ranking]) / _discounted(best)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _recall(ranking: Sequence[str], gains: Mapping[str, float]) -> float:
    return sum(one in gains for one in ranking) / len(gains)


def _reciprocal_rank(ranking: Sequence[str], gains: Mapping[str, float]) -> float:
    return next((1 / rank for rank, one in enumerate(ranking, start=1) if one in gains), 0.0)
