"""The documents that a claim is held against: the best by BM25 and by vector together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from privategpt.domain.ports import Vector
from privategpt.grounding.lexical import read_terms

_K1, _B = 1.2, 0.75


class HybridSearch:
    """Ranks by the sum of both scores, each in standard deviations of its hundred best."""

    def __init__(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        self._matrix = np.asarray(vectors, dtype=np.float32)
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        counts = [Counter(read_terms(text).words) for text in texts]
        mean = sum(sum(count.values()) for count in counts) / len(counts)
        for at, count in enumerate(counts):
            length = 1 - _B + _B * sum(count.values()) / mean
            for word, times in count.items():
                self._postings[word].append((at, times * (_K1 + 1) / (times + _K1 * length)))
        self._size = len(texts)

    def best(self, text: str, vector: Vector, *, limit: int) -> list[int]:
        """Positions of the best texts, best first."""
        dense = self._matrix @ np.asarray(vector, dtype=np.float32)
        total = _standard(dense) + _standard(self._lexical(text))
        return [int(at) for at in np.argsort(-total, kind="stable")[:limit]]

    def _lexical(self, text: str) -> npt.NDArray[np.float32]:
        scores = np.zeros(self._size, dtype=np.float32)
        for word in read_terms(text).words:
            found = self._postings.get(word, [])
            weight = math.log(1 + (self._size - len(found) + 0.5) / (len(found) + 0.5))
            for at, score in found:
                scores[at] += weight * score
        return scores


def _standard(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    best = np.sort(scores)[-100:]
    spread = float(best.std()) or 1.0
    return (scores - float(best.mean())) / spread


def by_id(ids: Sequence[str]) -> Mapping[str, int]:
    """Where each id stands."""
    return {one: at for at, one in enumerate(ids)}
