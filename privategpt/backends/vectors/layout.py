"""What an embedded index was made for: our own note in its folder, beside the engine's files."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from privategpt.backends.durable import make_durable
from privategpt.backends.vectors.quantization import Quantization
from privategpt.backends.vectors.words import WORDS_LAYOUT
from privategpt.domain.errors import EmbeddingModelChanged, EngineFailed

LAYOUT_FILE = "layout.json"

REBUILD = "`privategpt reindex` rebuilds it from the stored documents"

Precision: TypeAlias = Literal["float16", "float32"]
"""Of the stored vectors: 16 bits halve them, and change a cosine by less than .0001. A shard keeps
what it was made with."""

NO_CODES: Quantization = "none"

_OLDEST: dict[str, Any] = {"quantization": NO_CODES, "precision": "float32"}
"""What a note means that was written before it said so."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a shard is made for. Other codes or another precision answer as well, only not as
    quickly or in as little memory; of other dimensions or word weights it is of no use.
    """

    dimensions: int
    quantization: Quantization = NO_CODES
    precision: Precision = "float16"
    words: str = WORDS_LAYOUT


def opened_as(path: Path, wanted: Layout) -> Layout:
    """What the shard really is. Raises `EmbeddingModelChanged` where it is of no use."""
    found = read_layout(path)
    if _needed(found) != _needed(wanted):
        raise EmbeddingModelChanged(
            f"The vector index was made for {_needed(found)!r}, the configured embedding model "
            f"needs {_needed(wanted)!r}; {REBUILD}"
        )
    if found.quantization != wanted.quantization:
        _log.warning(
            "the vector index still has quantization %r; `privategpt optimize` gives it %r",
            found.quantization,
            wanted.quantization,
        )
    return found


def _needed(layout: Layout) -> dict[str, Any]:
    return {"dimensions": layout.dimensions, "words": layout.words}


def read_layout(path: Path) -> Layout:
    """Of the shard in that folder. Raises `EngineFailed` where it is not to be read."""
    try:
        return Layout(**(_OLDEST | json.loads((path / LAYOUT_FILE).read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError) as error:
        raise EngineFailed(f"The vector index cannot be read; {REBUILD}") from error


def write_layout(path: Path, layout: Layout) -> None:
    """Whole or not at all."""
    fresh = path / f"{LAYOUT_FILE}.new"
    fresh.write_text(json.dumps(asdict(layout)), encoding="utf-8")
    make_durable(fresh)
    fresh.rename(path / LAYOUT_FILE)
    make_durable(path)
