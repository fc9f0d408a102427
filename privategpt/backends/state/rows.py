"""Rows of the library's tables to the domain's nouns and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from privategpt.backends.state.tables import chunks, documents, files, inner_documents
from privategpt.domain.documents import Chunk, Document, DocumentInfo, File, Heading

FILE_COLUMNS = (
    files.c.file_id,
    files.c.tenant,
    files.c.name,
    files.c.sha256,
    files.c.size_bytes,
    files.c.media_type,
    files.c.created_at,
)
INFO_COLUMNS = (
    documents.c.doc_id,
    documents.c.file_id,
    documents.c.position,
    documents.c.metadata,
    inner_documents.c.inner_file_id,
)
CHUNK_COLUMNS = (
    chunks.c.chunk_id,
    chunks.c.doc_id,
    chunks.c.position,
    chunks.c.start,
    chunks.c.end,
    chunks.c.text,
    chunks.c.heading_path,
    chunks.c.context,
)


def read_file(columns: Sequence[Any]) -> File:
    """From the values of `FILE_COLUMNS`."""
    return File(*columns)


def read_info(columns: Sequence[Any]) -> DocumentInfo:
    """From the values of `INFO_COLUMNS`."""
    return DocumentInfo(*columns)


def read_chunk(columns: Sequence[Any]) -> Chunk:
    """From the values of `CHUNK_COLUMNS`."""
    chunk_id, doc_id, position, start, end, text, heading_path, context = columns
    return Chunk(chunk_id, doc_id, position, start, end, text, tuple(heading_path), context)


def read_document(row: Row[Any]) -> Document:
    """From a row of the whole documents table and its `inner_file_id`."""
    return Document(
        doc_id=row.doc_id,
        file_id=row.file_id,
        position=row.position,
        text=row.text,
        headings=tuple(Heading(*heading) for heading in row.headings),
        metadata=row.metadata,
        inner_file_id=row.inner_file_id,
    )


def file_row(file: File) -> dict[str, Any]:
    """The columns of a file, its state and its place in the order left out."""
    return {
        "file_id": file.file_id,
        "tenant": file.tenant,
        "name": file.name,
        "sha256": file.sha256,
        "size_bytes": file.size_bytes,
        "media_type": file.media_type,
        "created_at": file.created_at,
    }


def document_row(document: Document) -> dict[str, Any]:
    """The columns of a document, its state and the file inside the upload left out."""
    return {
        "doc_id": document.doc_id,
        "file_id": document.file_id,
        "position": document.position,
        "metadata": dict(document.metadata),
        "headings": [[h.start, h.level, h.title] for h in document.headings],
        "text": document.text,
    }


def inner_document_row(document: Document) -> dict[str, Any]:
    """Which file inside the upload a document is of."""
    return {"doc_id": document.doc_id, "inner_file_id": document.inner_file_id}


def chunk_row(chunk: Chunk) -> dict[str, Any]:
    """The columns of a chunk."""
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.doc_id,
        "position": chunk.position,
        "start": chunk.start,
        "end": chunk.end,
        "text": chunk.text,
        "heading_path": list(chunk.heading_path),
        "context": chunk.context,
    }


def info_of(document: Document) -> DocumentInfo:
    """A document as lists show it."""
    return DocumentInfo(
        doc_id=document.doc_id,
        file_id=document.file_id,
        position=document.position,
        metadata=document.metadata,
        inner_file_id=document.inner_file_id,
    )
