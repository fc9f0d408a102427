"""Test collections in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/*.tsv in a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Passage:
    """A document of a collection."""

    title: str
    text: str

    @property
    def whole(self) -> str:
        """As BEIR and MTEB index it: the title, a space, the text."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """A collection; `relevant` has, for each judged query, the gain of each relevant document."""

    name: str
    corpus: Mapping[str, Passage]
    queries: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, float]]


def find_sets(folder: Path) -> list[str]:
    """Names of the collections below `folder`: paths relative to it, sorted."""
    return sorted(
        str(file.parent.relative_to(folder))
        for file in folder.rglob("corpus.jsonl")
        if (file.parent / "queries.jsonl").is_file() and (file.parent / "qrels").is_dir()
    )


def read_set(folder: Path, name: str) -> EvaluationSet:
    """The collection `name` in `folder`, with the queries that have a relevant document.

    Judgements are those of the first of qrels/test.tsv and qrels/train.tsv that is there.
    """
    home = folder / name
    corpus = {
        row["_id"]: Passage(title=row.get("title") or "", text=row.get("text") or "")
        for row in _rows(home / "corpus.jsonl")
    }
    relevant = _judgements(home / "qrels")
    queries = {
        row["_id"]: row["text"] for row in _rows(home / "queries.jsonl") if row["_id"] in relevant
    }
    judged = {query: relevant[query] for query in queries}
    return EvaluationSet(name=name, corpus=corpus, queries=queries, relevant=judged)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield cast("dict[str, Any]", json.loads(line))


def _judgements(folder: Path) -> dict[str, dict[str, float]]:
    files = (folder / "test.tsv", folder / "train.tsv")
    file = next(file for file in files if file.is_file())
    relevant: dict[str, dict[str, float]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            gain = float(row["score"])
            if gain > 0:
                relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = gain
    return relevant
