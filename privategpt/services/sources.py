"""From retrieved chunks to numbered sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from privategpt.domain.answers import Source
from privategpt.domain.conversation import Attachment
from privategpt.domain.documents import Chunk, DocumentInfo, RetrievedChunk
from privategpt.domain.errors import NotFound
from privategpt.domain.library import StateStore
from privategpt.domain.websearch import WebResult


def number_attachments(attachments: Sequence[Attachment]) -> tuple[Source, ...]:
    """Number what came with the request, from 1."""
    return tuple(
        Source(
            number=number,
            title=attachment.title,
            text=attachment.text,
            document=None,
            start=0,
            end=len(attachment.text),
            url=attachment.url,
        )
        for number, attachment in enumerate(attachments, start=1)
    )


async def number_sources(
    retrieved: Sequence[RetrievedChunk], *, tenant: str, state: StateStore, after: int = 0
) -> tuple[Source, ...]:
    """Number what was retrieved, best first, behind the `after` attachments; adjacent chunks of a
    document become one, and what says the same word for word is read once.

    A merged source stands where its best chunk stood. What was deleted since it was found is left
    out, where that shows.
    """
    sources: list[Source] = []
    taken: set[str] = set()
    said: set[str] = set()
    for hit in retrieved:
        words = " ".join(hit.chunk.passage.split())
        if hit.chunk.chunk_id in taken or words in said:
            continue
        said.add(words)
        run = _run_around(hit.chunk, retrieved)
        taken.update(chunk.chunk_id for chunk in run)
        source = _source(hit.document, run, number=after + len(sources) + 1)
        if len(run) > 1:
            try:
                document = await state.document(tenant, hit.document.doc_id)
            except NotFound:
                continue
            source = replace(source, text=document.text[source.start : source.end])
        sources.append(source)
    return tuple(sources)


def number_results(results: Sequence[WebResult], *, after: int) -> tuple[Source, ...]:
    """Number what was found on the web, behind the `after` other sources."""
    return tuple(
        Source(
            number=number,
            title=result.title or result.url,
            text=result.text,
            document=None,
            start=0,
            end=len(result.text),
            url=result.url,
            year=result.published.year if result.published else None,
        )
        for number, result in enumerate(results, start=after + 1)
    )


def title_of(document: DocumentInfo) -> str:
    """The title that a person would recognise: the document's own, else the file's name."""
    return str(document.metadata.get("title") or document.metadata.get("file_name") or "Untitled")


def _run_around(chunk: Chunk, retrieved: Sequence[RetrievedChunk]) -> list[Chunk]:
    """The longest run of adjacent retrieved chunks that `chunk` is part of, in reading order."""
    same = sorted(
        (hit.chunk for hit in retrieved if hit.chunk.doc_id == chunk.doc_id),
        key=lambda other: other.position,
    )
    at = same.index(chunk)
    first = last = at
    gaps = [after.position - before.position for before, after in pairwise(same)]
    while first > 0 and gaps[first - 1] == 1:
        first -= 1
    while last < len(same) - 1 and gaps[last] == 1:
        last += 1
    return same[first : last + 1]


def _source(document: DocumentInfo, run: Sequence[Chunk], *, number: int) -> Source:
    return Source(
        number=number,
        title=title_of(document),
        text=run[0].text,
        document=document,
        start=run[0].start,
        end=run[-1].end,
        heading_path=run[0].heading_path,
        context=run[0].context,
        url=_address(document),
    )


def _address(document: DocumentInfo) -> str | None:
    """The `url` given at ingestion, if a browser may be sent there."""
    given = document.metadata.get("url")
    is_web = isinstance(given, str) and given.lower().startswith(("http://", "https://"))
    return str(given) if is_web else None
