"""The labelled sets, read from the evaluation folder (`PRIVATEGPT_EVAL`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class WiceClaim:
    """A claim of Wikipedia with the article it cites, sentence by sentence.

    `gold` has one set of sentence indices per annotator; `label` is supported,
    partially_supported or not_supported.
    """

    claim: str
    label: str
    sentences: tuple[str, ...]
    gold: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class ScifactClaim:
    """A scientific claim. `gold` maps the abstracts that bear on it to their rationales.

    `label` is SUPPORT, CONTRADICT or NOT_ENOUGH_INFO.
    """

    claim_id: str
    claim: str
    label: str
    gold: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Abstract:
    """A document of SciFact."""

    doc_id: str
    title: str
    text: str


def wice(folder: Path) -> list[WiceClaim]:
    """The development claims."""
    return [
        WiceClaim(
            claim=row["claim"],
            label=row["label"],
            sentences=tuple(row["evidence"]),
            gold=tuple(frozenset(group) for group in row["supporting_sentences"]),
        )
        for row in _rows(folder / "wice" / "dev.jsonl")
    ]


def scifact_claims(folder: Path) -> list[ScifactClaim]:
    """The training claims with their evidence."""
    return [
        ScifactClaim(
            claim_id=row["claim_id"],
            claim=row["claim"],
            label=row["label"],
            gold=_rationales(row["evidence"]),
        )
        for row in _rows(folder / "scifact" / "evidence.jsonl")
    ]


def _rationales(evidence: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The sentences of each abstract; it has one item for each rationale, often several."""
    found: dict[str, dict[str, None]] = {}
    for item in evidence:
        found.setdefault(item["doc_id"], {}).update(dict.fromkeys(item["sentences"]))
    return {doc_id: tuple(sentences) for doc_id, sentences in found.items()}


def scifact_abstracts(folder: Path) -> list[Abstract]:
    """The corpus."""
    return [
        Abstract(doc_id=row["_id"], title=row["title"], text=row["text"])
        for row in _rows(folder / "scifact" / "corpus.jsonl")
    ]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
