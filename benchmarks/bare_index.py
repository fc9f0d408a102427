"""Qdrant Edge asked directly, on a copy of the files that our index has open."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import qdrant_edge as qe

from privategpt.backends.vectors.points import DENSE, WORDS
from privategpt.backends.vectors.quantization import Quantization, edge_search
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.ports import Vector

CANDIDATES = 100
LIMIT = 10


@dataclass(frozen=True, slots=True)
class BareIndex:
    """The engine with a plain hybrid query: no tenant, no filter, no payload, no adapter.

    By meaning it searches with our `params`: what codes find is scored again for both.
    """

    shard: qe.EdgeShard
    words: WordEncoder
    params: qe.SearchParams

    def query(self, text: str, vector: Vector) -> list[qe.ScoredPoint]:
        """The ten best by both legs, fused by the engine; blocks."""
        weights = self.words.query(text) or qe.SparseVector([], [])
        legs = [
            qe.Prefetch(
                limit=CANDIDATES,
                query=qe.Query.Nearest(vector.tolist(), using=DENSE),
                params=self.params,
            ),
            qe.Prefetch(limit=CANDIDATES, query=qe.Query.Nearest(weights, using=WORDS)),
        ]
        # The engine's stubs do not know that a variant of `Fusion` is a `Fusion`.
        fusion = cast("qe.Fusion", qe.Fusion.Dbsf())
        return self.shard.query(qe.QueryRequest(limit=LIMIT, query=fusion, prefetches=legs))

    def close(self) -> None:
        """Release the copy."""
        self.shard.close()


def open_copy(vectors: Path, copy: Path, *, quantization: Quantization = "none") -> BareIndex:
    """Copy the index in the folder `vectors` to the folder `copy` and open that."""
    shutil.copytree(vectors, copy)
    return BareIndex(
        shard=qe.EdgeShard.load(str(copy)),
        words=WordEncoder(),
        params=edge_search(quantization),
    )
