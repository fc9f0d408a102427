"""`python -m evals.support`: measure the support score on the half that it was not fitted on.

`python -m evals.support fit` fits it again, on the other half, and writes grounding/weights.py.
The sets are looked for in `PRIVATEGPT_EVAL`; vectors are cached in `evals/.cache`, so a run
that was stopped goes on where it was. Results go to `evals/results`, dated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from evals.folders import CACHE, EVAL, RESULTS
from evals.support.cases import DOCUMENTS_PER_CLAIM, Case, scifact_cases, wice_cases
from evals.support.fit import fit, write_weights
from evals.support.measures import judge, scifact_figures, wice_figures
from evals.support.vectors import VectorCache
from privategpt.grounding import weights
from privategpt.grounding.weights import (
    ATTRIBUTION_THRESHOLD,
    FLOOR,
    RANKING,
    SUPPORT,
    SUPPORT_BIAS,
)

VECTORS = CACHE / "support-vectors.sqlite"
MODEL = "all-MiniLM-L6-v2 (bundled)"
_PUBLISHED_SUBSET = 400
"""The shared folder's untuned figures are for the first 400 claims of SciFact."""


def main(arguments: Sequence[str]) -> None:
    """Report, or fit."""
    folder, cache = EVAL, VectorCache(VECTORS)
    wice, scifact = wice_cases(folder, cache), scifact_cases(folder, cache)
    if "fit" in arguments:
        fitted = fit(_half(wice, 0), _half(scifact, 0))
        write_weights(fitted, Path(weights.__file__))
        Console().print(fitted)
    else:
        report(wice, scifact)


def report(wice: Sequence[Case], scifact: Sequence[Case]) -> None:
    """Measure both halves and write the results."""
    first = scifact[:_PUBLISHED_SUBSET]
    results = {
        "model": MODEL,
        "settings": {
            "floor": FLOOR,
            "attribution_threshold": ATTRIBUTION_THRESHOLD,
            "documents_per_claim": DOCUMENTS_PER_CLAIM,
            "retrieval": "BM25 and vectors, standardised scores added",
        },
        "reported_on": "half 1 (odd positions); fitted and chosen on half 0",
        "wice": [_wice(_half(wice, half)) for half in (0, 1)],
        "scifact": [_scifact(_half(scifact, half)) for half in (0, 1)],
        "scifact_first_400": [_scifact(_half(first, half)) for half in (0, 1)],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-support.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    Console().print_json(data=results)


def _half(cases: Sequence[Case], half: int) -> list[Case]:
    return [case for case in cases if case.half == half]


def _wice(cases: Sequence[Case]) -> dict[str, float]:
    judged = judge(cases, ranking=RANKING, support=SUPPORT, bias=SUPPORT_BIAS)
    return _rounded(asdict(wice_figures(judged, floor=FLOOR)))


def _scifact(cases: Sequence[Case]) -> dict[str, float]:
    judged = judge(cases, ranking=RANKING, support=SUPPORT, bias=SUPPORT_BIAS)
    return _rounded(asdict(scifact_figures(judged, threshold=ATTRIBUTION_THRESHOLD)))


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(figure, 3) for name, figure in figures.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
