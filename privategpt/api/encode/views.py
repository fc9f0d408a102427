"""The ways of showing what an answer rests on; one set of facts, translated.

The seeds are the contracts: chunks are PrivateGPT's (004), citations Magisterium's (000),
annotations and numbered sources Shannon's (003).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from privategpt.api.profiles import CitationStyle
from privategpt.domain.answers import AnswerStarted, Citation, Source
from privategpt.domain.documents import (
    Chunk,
    DocumentInfo,
    Metadata,
    RetrievedChunk,
    UnreadFile,
)

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Views:
    """What one reply shows. `base_url` is where clients reach this server."""

    styles: frozenset[CitationStyle]
    base_url: str
    include_sources: bool = True
    web_search: bool = False
    verification: bool = False

    def choice_sources(self, started: AnswerStarted) -> list[Json] | None:
        """The chunks that were retrieved, for `choices[].sources`: `[]` where no context was
        asked for, null where the client does not want them.
        """
        if not self.include_sources:
            return None
        if started.retrieved is None:
            return []
        if CitationStyle.CHUNKS not in self.styles:
            return None
        return [chunk_json(found) for found in started.retrieved]

    def finish(
        self, started: AnswerStarted, citations: Sequence[Citation], *, grounded: bool | None
    ) -> Json:
        """The top-level fields of a finish chunk and of a reply in one piece."""
        fields: Json = {}
        if CitationStyle.CITATIONS in self.styles and citations:
            fields["citations"] = [self._citation(citation) for citation in citations]
        fields.update(self.numbered_sources(started, grounded=grounded))
        if grounded is not None:
            fields["grounded"] = grounded
        return fields

    def numbered_sources(self, started: AnswerStarted, *, grounded: bool | None) -> Json:
        """The top-level `sources`, cited or not; no key where nothing was found.

        An answer from documents that none of them supports shows none; a web search's results
        are shown whatever the answer made of them (seed 003).
        """
        if CitationStyle.ANNOTATIONS not in self.styles or not started.sources:
            return {}
        if grounded is False and not self.web_search:
            return {}
        return {
            "sources": [
                {"index": source.number, "title": source.title, "url": self._source_url(source)}
                for source in started.sources
            ]
        }

    def annotations(self, citations: Iterable[Citation]) -> list[Json]:
        """One `url_citation` for each cited source, at its first marker."""
        if CitationStyle.ANNOTATIONS not in self.styles:
            return []
        first: dict[int, Citation] = {}
        for citation in citations:
            first.setdefault(citation.source.number, citation)
        return [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": citation.marker_start,
                    "end_index": citation.marker_end,
                    # The address of the source, as `sources` has it: clients match the two.
                    "url": self._source_url(citation.source),
                    "title": citation.source.title,
                },
            }
            for citation in first.values()
        ]

    def place_url(self, citation: Citation) -> str:
        """Where the cited place can be read."""
        return self._url(citation.source, start=citation.start, end=citation.end)

    def _citation(self, citation: Citation) -> Json:
        source = citation.source
        metadata: Metadata = source.document.metadata if source.document else {}
        fields: Json = {
            "cited_text": citation.cited_text,
            "cited_text_heading": citation.heading_path[-1] if citation.heading_path else None,
            "document_title": source.title,
            "document_index": source.number - 1,
            "document_author": _text(metadata.get("author")),
            "document_year": _text(metadata.get("year", source.year)),
            "document_reference": _text(metadata.get("page_label")) or citation.reference,
            "source_url": self.place_url(citation),
        }
        if self.verification and citation.verification is not None:
            fields["verification"] = {
                "verdict": citation.verification.verdict.value,
                "score": round(citation.verification.score, 4),
                "method": citation.verification.method,
            }
        return fields

    def _source_url(self, source: Source) -> str:
        return self._url(source, start=source.start, end=source.end)

    def _url(self, source: Source, *, start: int, end: int) -> str:
        """The source's own address, else ours of the document at that place."""
        if source.url is not None or source.document is None:
            return source.url or ""
        doc_id = quote(source.document.doc_id, safe="")
        return f"{self.base_url}/v1/documents/{doc_id}?start={start}&end={end}"


def chunk_json(found: RetrievedChunk, *, neighbours: bool = False) -> Json:
    """A chunk as seed 004 has it. Without `neighbours`, the lists of neighbours are null."""
    return {
        "object": "context.chunk",
        "score": found.score,
        "document": document_json(found.document),
        "text": found.chunk.text,
        "previous_texts": _texts(found.previous) if neighbours else None,
        "next_texts": _texts(found.next) if neighbours else None,
    }


def document_json(document: DocumentInfo) -> Json:
    """A document in lists, as seed 004 has it."""
    return {
        "object": "ingest.document",
        "doc_id": document.doc_id,
        "doc_metadata": dict(document.metadata),
    }


def skipped_json(file_name: str, unread: Iterable[UnreadFile]) -> list[Json]:
    """The files inside the upload of that name that could not be read."""
    return [{"file_name": f"{file_name}/{one.path}", "reason": one.reason} for one in unread]


def _texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
