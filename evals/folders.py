"""Where evals read and write."""

from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).parent

EVAL = Path(os.environ.get("PRIVATEGPT_EVAL") or _HERE.parents[1] / "shared" / "eval")
"""The labelled sets."""

RESULTS = _HERE / "results"
"""Dated results, kept."""

CACHE = _HERE / ".cache"
"""Models, vectors and answers that a later run need not make again; not kept."""
