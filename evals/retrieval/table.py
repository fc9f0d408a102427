"""Results as a file per day and as a table beside the last ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

from rich.table import Table

from evals.retrieval.fusions import FUSIONS, OURS
from evals.retrieval.measures import Quality

_SUFFIX = "-retrieval.json"
_MEASURES = ("nDCG@10", "recall@10", "recall@100", "MRR@10")


@dataclass(frozen=True, slots=True)
class Measured:
    """One collection, cut one way, ranked one way."""

    collection: str
    cut: str
    ranking: str
    quality: Quality


def read_last(folder: Path, *, before: date) -> list[Measured]:
    """The newest results of an earlier day than `before`; empty where there are none."""
    files = sorted(folder.glob(f"*{_SUFFIX}"), reverse=True)
    last = next((file for file in files if file.name < before.isoformat()), None)
    return _read(last) if last is not None else []


def write(folder: Path, measured: Sequence[Measured], *, model: str, day: date) -> Path:
    """Write the results of `day`; those of the same day for other collections are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{day.isoformat()}{_SUFFIX}"
    kept = {_key(one): one for one in (_read(file) if file.is_file() else [])}
    kept |= {_key(one): one for one in measured}
    rows = [asdict(one) for one in kept.values()]
    content = {"date": day.isoformat(), "embedding_model": model, "results": rows}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return file


def tables(measured: Sequence[Measured], last: Iterable[Measured]) -> Iterable[Table]:
    """nDCG@10 of every ranking, then all measures of ours."""
    before = {_key(one): one.quality for one in last}
    by_key = {_key(one): one.quality for one in measured}
    rows = list(dict.fromkeys((one.collection, one.cut) for one in measured))
    every = Table("set", "cut", *FUSIONS, "last", title="nDCG@10")
    for row in rows:
        values = [_shown(by_key.get((*row, ranking))) for ranking in FUSIONS]
        every.add_row(*row, *values, _shown(before.get((*row, OURS))))
    return every, measures_table([one for one in measured if one.ranking == OURS], title=OURS)


def measures_table(measured: Sequence[Measured], *, title: str) -> Table:
    """All measures, a row for each."""
    table = Table("set", "cut", "ranking", *_MEASURES, title=title)
    for one in measured:
        values = (f"{value:.4f}" for value in asdict(one.quality).values())
        table.add_row(one.collection, one.cut, one.ranking, *values)
    return table


def _read(file: Path) -> list[Measured]:
    content = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
    return [
        Measured(row["collection"], row["cut"], row["ranking"], Quality(**row["quality"]))
        for row in content["results"]
    ]


def _key(one: Measured) -> tuple[str, str, str]:
    return one.collection, one.cut, one.ranking


def _shown(quality: Quality | None) -> str:
    return f"{quality.ndcg_10:.4f}" if quality else "–"
