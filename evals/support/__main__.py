"""`python -m evals.support`: measure the support score on the half that it was not fitted on.

`python -m evals.support fit` fits it again, on the other half, and writes grounding/weights.py.
`python -m evals.support --judge qwen --claims 100` puts claims to the language model as judge.
The sets are looked for in `PRIVATEGPT_EVAL`; vectors are cached in `evals/.cache`, so a run
that was stopped goes on where it was. Results go to `evals/results`, dated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from evals.folders import CACHE, EVAL, RESULTS
from evals.models import fetch_qwen
from evals.support.cases import DOCUMENTS_PER_CLAIM, Case, scifact_cases, wice_cases
from evals.support.data import scifact_claims, wice
from evals.support.fit import fit, write_weights
from evals.support.judging import Answer, Question, ask, compare, questions
from evals.support.measures import judge, scifact_figures, wice_figures
from evals.support.vectors import VectorCache
from privategpt.backends.llm.llama_cpp import start_llama_cpp
from privategpt.backends.llm.timeouts import Timeouts
from privategpt.grounding import weights
from privategpt.grounding.weights import (
    ATTRIBUTION_THRESHOLD,
    FLOOR,
    RANKING,
    SUPPORT,
    SUPPORT_BIAS,
)
from privategpt.services.judging import EngineJudge

PATIENT = Timeouts(connect_s=60, first_byte_s=900, between_bytes_s=300)
VECTORS = CACHE / "support-vectors.sqlite"
MODEL = "all-MiniLM-L6-v2 (bundled)"
_PUBLISHED_SUBSET = 400
"""The shared folder's untuned figures are for the first 400 claims of SciFact."""


def main(
    action: Annotated[Literal["report", "fit"], typer.Argument()] = "report",
    judge_model: Annotated[
        Literal["none", "qwen", "bundled"], typer.Option("--judge", help="Engine to ask.")
    ] = "none",
    claims: Annotated[int, typer.Option(help="How many to put to the judge.")] = 100,
) -> None:
    """Report, fit, or ask a judge."""
    cache = VectorCache(VECTORS)
    wice_all, scifact = wice_cases(EVAL, cache), scifact_cases(EVAL, cache)
    if judge_model != "none":
        texts = [one.claim for one in wice(EVAL)] + [one.claim for one in scifact_claims(EVAL)]
        asked = questions([*wice_all, *scifact], texts, limit=claims)
        answers = asyncio.run(_ask(asked, judge_model))
        _write(f"support-judge-{judge_model}", {"claims": len(answers), **compare(answers)})
    elif action == "fit":
        fitted = fit(_half(wice_all, 0), _half(scifact, 0))
        write_weights(fitted, Path(weights.__file__))
        Console().print(fitted)
    else:
        report(wice_all, scifact)


async def _ask(asked: Sequence[Question], judge_model: str) -> list[Answer]:
    path = fetch_qwen() if judge_model == "qwen" else None
    engine = await start_llama_cpp(model_path=path, context_tokens=2048, slots=1, timeouts=PATIENT)
    try:
        record = CACHE / f"support-judge-{judge_model}.jsonl"
        return await ask(asked, EngineJudge(llm=engine), record=record)
    finally:
        await engine.close()


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
    _write("support", results)


def _write(name: str, results: Mapping[str, object]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{name}.json"
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
    typer.run(main)
