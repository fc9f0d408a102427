"""Orders texts by how well they answer a query: for searches, and behind POST /v1/rerank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privategpt.domain.observing import UNOBSERVED, Observer
from privategpt.domain.ports import Reranker


@dataclass(frozen=True, slots=True)
class Ranked:
    """A text by its place in the request; `score` is between 0 and 1."""

    index: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Texts, best first, and the tokens that were read for it; None where nobody counted."""

    texts: tuple[Ranked, ...]
    tokens: int | None


class Reranking:
    """Ranks with the reranker that the operator chose. A search shows it `candidates` passages."""

    def __init__(
        self, *, model: Reranker, candidates: int, observer: Observer = UNOBSERVED
    ) -> None:
        self._model = model
        self._observer = observer
        self.candidates = candidates

    @property
    def name(self) -> str:
        """What the operator calls the model."""
        return self._model.name

    async def rank(self, query: str, texts: Sequence[str], *, limit: int | None = None) -> Ranking:
        """The best `limit` texts, or all of them; equal ones in their order.

        Raises `Unavailable` where the model does not serve.
        """
        with self._observer.reranking():
            found = await self._model.score(query, texts)
        self._observer.reranked(found.tokens or 0)
        order = sorted(range(len(texts)), key=lambda index: -found.scores[index])
        best = tuple(Ranked(index, found.scores[index]) for index in order[:limit])
        return Ranking(texts=best, tokens=found.tokens)
