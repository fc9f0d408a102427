"""Ids of documents, chunks and files inside files, derived from the file's: a repeat makes no
twins.

The file's id is random and new at every ingestion; it comes from the caller. What lies below it
is a function of it: an ingestion that is tried again writes over its own traces.
"""

from __future__ import annotations

from uuid import UUID, uuid5

_INNER_FILES = UUID("c1e0a7d4-2f57-4b8e-9d0a-64b7c5f38a16")
_DOCUMENTS = UUID("5f0c3f0e-6c1b-4d3c-9d52-3a1f3a7a4b10")
_CHUNKS = UUID("0b7f8a52-0f5d-4f0a-8f6e-6e0b5a0c9d21")


def inner_file_id(file_id: str, path: str) -> str:
    """The id of the file that lies at `path` inside a file."""
    return str(uuid5(_INNER_FILES, f"{file_id}/{path}"))


def document_id(file_id: str, position: int) -> str:
    """The id of the document at 0-based `position` in a file."""
    return str(uuid5(_DOCUMENTS, f"{file_id}/{position}"))


def chunk_id(doc_id: str, position: int) -> str:
    """The id of the chunk at 0-based `position` in a document."""
    return str(uuid5(_CHUNKS, f"{doc_id}/{position}"))
