"""Vectors as the port wants them: float32 arrays of unit length."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from typing import TYPE_CHECKING

import numpy as np

from privategpt.domain.errors import EngineFailed
from privategpt.domain.ports import Vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def unit_rows(matrix: NDArray[np.float32]) -> list[Vector]:
    """Each row scaled to length 1. Raises `EngineFailed` for a row that is no direction."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise EngineFailed("The embedding engine answered with a vector that has no direction")
    return [array("f", row.tobytes()) for row in (matrix / lengths).astype(np.float32)]


def unit_vector(values: Sequence[float], *, dimensions: int | None = None) -> Vector:
    """Scaled to length 1. Raises `EngineFailed` for a wrong length or what is no direction."""
    if dimensions is not None and len(values) != dimensions:
        raise EngineFailed(
            f"The embedding engine answered with {len(values)} dimensions instead of {dimensions}"
        )
    try:
        row = np.asarray(values, dtype=np.float32).reshape(1, -1)
    except (TypeError, ValueError) as error:
        raise EngineFailed("The embedding engine answered with something else") from error
    return unit_rows(row)[0]


def decode_base64(text: str) -> Vector:
    """Little-endian float32 values, as OpenAI-compatible servers send them."""
    try:
        vector = array("f", b64decode(text, validate=True))
    except ValueError as error:
        raise EngineFailed("The embedding engine answered with broken base64") from error
    if sys.byteorder == "big":
        vector.byteswap()
    return vector
