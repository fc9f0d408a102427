"""What the use cases tell whoever counts and times them; nothing of it names a person's words."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from privategpt.domain.answers import Usage
from privategpt.domain.jobs import JobState
from privategpt.domain.websearch import SearchOutcome


class ObservedAnswer(Protocol):
    """One answer under way."""

    def text_began(self) -> None:
        """The first piece of text or of a tool call is there; later calls change nothing."""
        ...

    def counted(self, usage: Usage) -> None:
        """What it cost, at its end."""
        ...


class Observer(Protocol):
    """Is told what happens. The context managers time what runs inside them and never raise."""

    def answering(self) -> AbstractContextManager[ObservedAnswer]:
        """An answer, from its request to its last event."""
        ...

    def retrieving(self) -> AbstractContextManager[None]:
        """A search in the library."""
        ...

    def reranking(self) -> AbstractContextManager[None]:
        """The scoring of texts by the reranker, in a search or for a client."""
        ...

    def ingesting(self) -> AbstractContextManager[None]:
        """The ingestion of one file; an exception that passes through is its failure."""
        ...

    def indexed(self, chunks: int) -> None:
        """A file has become ready, with so many chunks."""
        ...

    def job_moved(self, before: JobState | None, after: JobState) -> None:
        """A background ingestion has changed its state; None before it had one in this process."""
        ...

    def embedded(self, tokens: int) -> None:
        """A client's texts were embedded."""
        ...

    def reranked(self, tokens: int) -> None:
        """A reranker has read so many tokens."""
        ...

    def markers_removed(self, count: int) -> None:
        """An answer's markers that named no source, or one that says something else."""
        ...

    def searched(self, outcome: SearchOutcome) -> None:
        """A web search has ended."""
        ...


class Unobserved:
    """An `Observer` that lets everything pass."""

    @contextmanager
    def answering(self) -> Generator[ObservedAnswer]:
        yield self

    @contextmanager
    def retrieving(self) -> Generator[None]:
        yield

    @contextmanager
    def reranking(self) -> Generator[None]:
        yield

    @contextmanager
    def ingesting(self) -> Generator[None]:
        yield

    def text_began(self) -> None:
        """Let it pass."""

    def counted(self, usage: Usage) -> None:
        """Let it pass."""

    def indexed(self, chunks: int) -> None:
        """Let it pass."""

    def job_moved(self, before: JobState | None, after: JobState) -> None:
        """Let it pass."""

    def embedded(self, tokens: int) -> None:
        """Let it pass."""

    def reranked(self, tokens: int) -> None:
        """Let it pass."""

    def markers_removed(self, count: int) -> None:
        """Let it pass."""

    def searched(self, outcome: SearchOutcome) -> None:
        """Let it pass."""


UNOBSERVED = Unobserved()
