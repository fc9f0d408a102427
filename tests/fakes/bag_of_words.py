"""An embedding for tests: texts that share words are near each other."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from hashlib import sha256

from privategpt.domain.ports import Vector

DIMENSIONS = 256


def bag_of_words(text: str) -> Vector:
    """A unit vector with one place per word (by its hash)."""
    counts = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()) or [""]:
        counts[int.from_bytes(sha256(word.encode()).digest()[:2], "big") % DIMENSIONS] += 1
    length = math.sqrt(sum(count * count for count in counts))
    return array("f", [count / length for count in counts])


class BagOfWords:
    """Embeds by words and remembers each batch it was asked for."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, ...]] = []

    async def __call__(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.batches.append(tuple(texts))
        return [bag_of_words(text) for text in texts]
