"""The fitted numbers of the support score, and the thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RANKING: Final[Mapping[str, float]] = {
    "cosine": 4.5,
    "recall": 12.3,
    "pairs": 3.8,
    "recall around": 9.4,
    "numbers": 2.3,
    "names": 0.3,
    "direction": -1.7,
    "length": 0.3,
    "cosine around": 3.1,
}
SUPPORT: Final[Mapping[str, float]] = {
    "cosine": 2.0,
    "recall": 3.0,
    "recall of three": 5.0,
    "pairs": 1.0,
    "numbers": 1.0,
    "names": 1.0,
    "figures denied": -1.0,
    "negation differs": -0.5,
    "direction reversed": -1.0,
}
SUPPORT_BIAS: Final = -6.0
FLOOR: Final = 0.35
ATTRIBUTION_THRESHOLD: Final = 0.5
