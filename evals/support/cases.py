"""Claims held against sources: what the fit learns from and what the report measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rich.progress import track

from evals.support.data import (
    Abstract,
    ScifactClaim,
    WiceClaim,
    scifact_abstracts,
    scifact_claims,
    wice,
)
from evals.support.retrieval import HybridSearch
from evals.support.vectors import VectorCache
from privategpt.domain.answers import Source
from privategpt.domain.documents import DocumentInfo
from privategpt.domain.ports import Vector
from privategpt.grounding.attribution import Claim, Passage, read_claim, read_passage
from privategpt.grounding.gate import read_statement
from privategpt.grounding.lexical import Rarity, read_terms
from privategpt.grounding.sentences import Span

VectorsByText: TypeAlias = Mapping[str, Vector]

DOCUMENTS_PER_CLAIM = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A source with its vectors; `gold` are the sentences that bear on the claim."""

    passage: Passage
    vectors: tuple[Vector, ...]
    gold: frozenset[int]


@dataclass(frozen=True, slots=True)
class Case:
    """A claim and the sources of its answer. `missed` gold sentences are in no source.

    `label` is the data set's own; `half` is 0 (to fit and choose on) or 1 (to report).
    """

    label: str
    half: int
    claim: Claim
    candidates: tuple[Candidate, ...]
    rarity: Rarity
    missed: int = 0

    @property
    def gold_sentences(self) -> int:
        """All that bear on the claim, in its sources or missed."""
        return self.missed + sum(len(candidate.gold) for candidate in self.candidates)


def wice_cases(folder: Path, cache: VectorCache) -> list[Case]:
    """Each claim against the article it cites, cut into sentences as the data set has it."""
    claims = wice(folder)
    texts = [text for claim in claims for text in (claim.claim, *claim.sentences)]
    vectors = cache.vectors(texts, label="WiCE")
    return [
        _case(
            claim.label,
            half=at % 2,
            claim=read_claim(claim.claim, vectors[claim.claim]),
            candidates=[_wice_candidate(claim, vectors)],
        )
        for at, claim in enumerate(track(claims, description="reading WiCE"))
    ]


def scifact_cases(folder: Path, cache: VectorCache) -> list[Case]:
    """Each claim against the five abstracts that retrieval finds for it."""
    claims, abstracts = scifact_claims(folder), scifact_abstracts(folder)
    found = _retrieve(claims, abstracts, cache)
    wanted = sorted({at for places in found for at in places})
    passages = {at: read_passage(_source(abstracts[at])) for at in wanted}
    texts = [text for passage in passages.values() for text in passage.sentences]
    vectors = cache.vectors([*texts, *(claim.claim for claim in claims)], label="SciFact")
    return [
        _scifact_case(claim, at % 2, [passages[place] for place in places], vectors)
        for at, (claim, places) in enumerate(zip(claims, found, strict=True))
    ]


def _retrieve(
    claims: Sequence[ScifactClaim], abstracts: Sequence[Abstract], cache: VectorCache
) -> list[list[int]]:
    texts = [f"{abstract.title} {abstract.text}" for abstract in abstracts]
    vectors = cache.vectors([*texts, *(claim.claim for claim in claims)], label="abstracts")
    search = HybridSearch(texts, [vectors[text] for text in texts])
    return [
        search.best(claim.claim, vectors[claim.claim], limit=DOCUMENTS_PER_CLAIM)
        for claim in track(claims, description="retrieving")
    ]


def _scifact_case(
    claim: ScifactClaim, half: int, passages: Iterable[Passage], vectors: VectorsByText
) -> Case:
    candidates: list[Candidate] = []
    held = 0
    for passage in passages:
        document = passage.source.document
        rationale = claim.gold.get(document.doc_id, ()) if document else ()
        sentences = passage.sentences
        gold = frozenset(
            at
            for at, text in enumerate(sentences)
            if any(text in wanted or wanted in text for wanted in rationale)
        )
        held += len(rationale)
        rows = tuple(vectors[text] for text in sentences)
        candidates.append(Candidate(passage, rows, gold))
    total = sum(len(sentences) for sentences in claim.gold.values())
    return _case(
        claim.label,
        half=half,
        claim=read_claim(claim.claim, vectors[claim.claim]),
        candidates=candidates,
        missed=total - held,
    )


def _case(
    label: str, *, half: int, claim: Claim, candidates: Sequence[Candidate], missed: int = 0
) -> Case:
    rarity = Rarity([terms for one in candidates for terms in one.passage.terms])
    return Case(label, half, claim, tuple(candidates), rarity, missed)


def _wice_candidate(claim: WiceClaim, vectors: VectorsByText) -> Candidate:
    spans: list[Span] = []
    at = 0
    for text in claim.sentences:
        spans.append(Span(at, at + len(text)))
        at += len(text) + 1
    passage = Passage(
        source=_source(Abstract("article", "", "\n".join(claim.sentences))),
        spans=tuple(spans),
        terms=tuple(map(read_terms, claim.sentences)),
        statements=tuple(map(read_statement, claim.sentences)),
    )
    gold = frozenset[int]().union(*claim.gold)
    return Candidate(passage, tuple(vectors[text] for text in claim.sentences), gold)


def _source(abstract: Abstract) -> Source:
    return Source(
        number=1,
        title=abstract.title,
        text=abstract.text,
        document=DocumentInfo(abstract.doc_id, abstract.doc_id, 0, {}),
        start=0,
        end=len(abstract.text),
    )
