"""What pairs of words and beginnings of words weigh in BM25, chosen on some sets only.

The others, SciFact and XQuAD, have no part in it. How far the choice can be trusted is shown by
leaving one set out at a time: what the rest choose is measured on the one that they did not see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TypeAlias

from rich.table import Table

from evals.retrieval.library import Library
from evals.retrieval.measures import quality
from evals.retrieval.sets import EvaluationSet
from privategpt.backends.vectors.fusion import fuse
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.services.retrieval import Retrieval

TUNED_ON = ("cacm", "cisi", "cranfield", "squad2")

DEPTH = 100
"""Chunks, so that there are ten documents among them; as deep as when the result is measured."""


@dataclass(frozen=True, slots=True, order=True)
class Weights:
    """Of a pair and of a beginning, where a word weighs 1."""

    pair: float
    beginning: float


NEITHER = Weights(0, 0)

GRID = tuple(
    Weights(pair, beginning)
    for pair, beginning in product((0, 0.1, 0.2, 0.3, 0.4), (0, 0.1, 0.2, 0.3))
)

Found: TypeAlias = Mapping[Weights, Mapping[str, float]]
"""nDCG@10 by set."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is best for all sets, or for all `without` one, and what that one gains by it."""

    weights: Weights
    without: str | None
    gain: float | None

    def __str__(self) -> str:
        """A line of the report."""
        chosen = f"pairs {self.weights.pair}, beginnings {self.weights.beginning}"
        if self.without is None or self.gain is None:
            return f"all sets: {chosen}"
        return f"without {self.without}: {chosen}; {self.without} {self.gain:+.4f}"


async def measure(
    collection: EvaluationSet, library: Library, *, advance: Callable[[float], None]
) -> Found:
    """The product's search of one collection with all weights of the grid."""
    found: dict[Weights, Mapping[str, float]] = {}
    for weights in GRID:
        words = WordEncoder(pair=weights.pair, beginning=weights.beginning)
        retrieval = library.retrieval(fuse, words=words)
        found[weights] = {
            collection.name: await _mean_ndcg(collection, retrieval, names=library.names)
        }
        advance(1 / len(GRID))
    return found


async def _mean_ndcg(
    collection: EvaluationSet, retrieval: Retrieval, *, names: Mapping[str, str]
) -> float:
    every: list[float] = []
    for query, text in collection.queries.items():
        found = await retrieval.search(
            retrieval.fit_query(text), tenant=DEFAULT_TENANT, limit=DEPTH
        )
        ranking = dict.fromkeys(names[one.chunk.chunk_id] for one in found.chunks)
        every.append(quality(list(ranking), collection.relevant[query]).ndcg_10)
    return fmean(every)


def merged(found: Sequence[Found]) -> Found:
    """All sets together; one that was measured more than once, cut in two ways, has its mean."""
    names = dict.fromkeys(name for one in found for name in one[NEITHER])
    return {
        weights: {
            name: fmean(one[weights][name] for one in found if name in one[weights])
            for name in names
        }
        for weights in found[0]
    }


def choices(found: Found) -> Iterable[Choice]:
    """The choice of all sets, and then those without one. Every set counts alike, however many
    queries it has: a query of CACM has many answers, one of SQuAD has one.
    """
    yield Choice(_best(found, without=None), without=None, gain=None)
    names = list(found[NEITHER])
    for name in names if len(names) > 1 else ():
        weights = _best(found, without=name)
        yield Choice(weights, without=name, gain=found[weights][name] - found[NEITHER][name])


def _best(found: Found, *, without: str | None) -> Weights:
    """With the highest mean; of equal ones the smallest weights."""
    return min(
        found,
        key=lambda weights: (
            -fmean(value for name, value in found[weights].items() if name != without),
            weights,
        ),
    )


def weights_table(found: Found) -> Table:
    """All that was measured, and the mean by which it is chosen."""
    names = list(found[NEITHER])
    table = Table("pairs", "beginnings", *names, "mean", title="nDCG@10, mean of both cuts")
    for weights, by_set in found.items():
        values = [*(by_set[name] for name in names), fmean(by_set.values())]
        shown = (f"{value:.4f}" for value in values)
        table.add_row(str(weights.pair), str(weights.beginning), *shown)
    return table
