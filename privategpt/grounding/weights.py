"""The fitted numbers of the support score, and the thresholds.

Written by `python -m evals.support fit`, from one half of the claims of WiCE (development set) and
SciFact (training set); what they do on the other half is in evals/results. Do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RANKING: Final[Mapping[str, float]] = {
    "cosine": 5.654,
    "cosine around": 2.514,
    "recall": 7.880,
    "recall around": 2.551,
    "numbers": 1.045,
    "names": 1.323,
    "length": 0.679,
    "direction reversed": -0.497,
    "asks": -2.769,
    "reports": 0.598,
}
"""What makes a sentence the best support of a claim."""

SUPPORT: Final[Mapping[str, float]] = {
    "cosine": 4.603,
    "recall": 0.000,
    "recall of three": 0.000,
    "recall around": 2.279,
    "recall of passage": 2.609,
    "pairs": 2.037,
    "numbers": 0.517,
    "names": 0.641,
    "asks": -0.742,
    "figures denied": -1.123,
    "denied in the same words": -12.000,
}
"""What makes the support enough: log odds."""

SUPPORT_BIAS: Final = -6.128

FLOOR: Final = 0.330
"""Below this a marker that the model wrote is removed."""

ATTRIBUTION_THRESHOLD: Final = 0.760
"""From this on a sentence without a marker gets one."""
