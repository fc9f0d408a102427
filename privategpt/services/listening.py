"""How far an ingestion is, told to whoever wants to know."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from privategpt.domain.documents import Chunk, Document
from privategpt.domain.jobs import Progress
from privategpt.domain.library import StoredFile


class Listener(Protocol):
    """Is told how an ingestion goes on. Its methods return at once and never raise."""

    def advanced(self, progress: Progress) -> None:
        """The file has been read, or more of it is in the index."""
        ...

    def stored(self, file: StoredFile) -> None:
        """The file is ready, whatever happens from here on; not called for one that was there."""
        ...


class Unheard:
    """A `Listener` that lets everything pass."""

    def advanced(self, progress: Progress) -> None:
        """Let it pass."""

    def stored(self, file: StoredFile) -> None:
        """Let it pass."""


UNHEARD = Unheard()


class ProgressOf:
    """How far a file is once so many of its chunks, in order, are indexed."""

    def __init__(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        sizes = Counter(chunk.doc_id for chunk in chunks)
        self._ends = list(accumulate(sizes[document.doc_id] for document in documents))
        self._chunks = len(chunks)

    def after(self, chunks_done: int) -> Progress:
        """Its progress then."""
        return Progress(
            pages_done=bisect_right(self._ends, chunks_done),
            pages_total=len(self._ends),
            chunks_done=chunks_done,
            chunks_total=self._chunks,
        )
