"""Whether evidence supports a claim: the port, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Verdict(StrEnum):
    """What a verifier makes of a claim and its evidence."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence of an answer, without its markers, and the passage it cites."""

    claim: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Verification:
    """A verdict on one citation. `score` is 0–1, `method` names who gave it."""

    verdict: Verdict
    score: float
    method: str


class Verifier(Protocol):
    """Judges claims by their evidence alone."""

    @property
    def method(self) -> str:
        """What is named in `citations[].verification.method`."""
        ...

    async def verify(self, pairs: Sequence[Pair]) -> list[float]:
        """For each pair, in order, the probability (0–1) that the evidence supports the claim.

        Raises `Unavailable` where the judge cannot be asked.
        """
        ...
