"""Vectors kept a second time as short codes, which are searched in their place.

What the codes find is scored again with the vectors themselves, so scores are theirs, and what is
lost is only what the codes did not find. What each kind costs and gains is in docs/scale.md.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

import qdrant_edge as qe

Quantization: TypeAlias = Literal["none", "int8", "turbo", "binary"]
"""Bits a dimension: 16 (the vectors), 8, 4, 1. The embedded engine searches int8 codes only behind
its graph."""

GRAPH_REACH = 400
"""Of how many an optimized index's graph follows the neighbours (`hnsw_ef`). On 22,894 real chunks
.999 of the ten nearest are found, and .991 of the hundred that are fused; with the engine's own
choice, .985 and .903."""


def oversampling(quantization: Quantization) -> float:
    """How many times the hits that are wanted are scored again; more where codes say less."""
    match quantization:
        case "none" | "int8":
            return 1.0
        case "turbo":
            return 2.0
        case "binary":
            return 4.0
        case _:
            assert_never(quantization)


def edge_config(quantization: Quantization) -> qe.QuantizationConfigType | None:
    """In Qdrant Edge's words. Codes stay in memory; the vectors may leave it."""
    match quantization:
        case "none":
            return None
        case "int8":
            return qe.ScalarQuantizationConfig(qe.ScalarType.Int8, memory=qe.Memory.Cached)
        case "turbo":
            bits = qe.TurboQuantBitSize.Bits4
            return qe.TurboQuantQuantizationConfig(bits=bits, memory=qe.Memory.Cached)
        case "binary":
            return qe.BinaryQuantizationConfig(memory=qe.Memory.Cached)
        case _:
            assert_never(quantization)


def edge_search(quantization: Quantization) -> qe.SearchParams:
    """How Qdrant Edge searches by meaning."""
    rescored = None
    if quantization != "none":
        rescored = qe.QuantizationSearchParams(
            rescore=True, oversampling=oversampling(quantization)
        )
    return qe.SearchParams(hnsw_ef=GRAPH_REACH, quantization=rescored)
