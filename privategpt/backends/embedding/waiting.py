"""What waits to be embedded, and what is next.

- Texts that wait together are embedded together, whoever sent them, with others of their length:
  a batch costs as much as its longest text times their number.
- Queries go before passages. A batch of passages is kept small, so that a query which arrives
  in the middle of an ingestion waits for one of them only.
- The oldest request and the one that is nearest to its end take turns: a single text does not
  wait for a book, and of two books one is done, and stored, while the other is embedded.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from privategpt.backends.embedding.encoder import EncodedText, Prompts
from privategpt.domain.ports import Embeddings, Vector

QUERIES_AT_ONCE = 8
"""In one batch: more cost hardly less each, and would leave the other threads without work."""

_QUERY_BATCHES_PER_PASSAGE_BATCH = 8  # so that queries without end do not stop an ingestion

_length = attrgetter("length")


@dataclass(slots=True, eq=False)
class Request:
    """Whoever asked, and the answer so far."""

    future: asyncio.Future[Embeddings]
    vectors: list[Vector | None]
    missing: int
    waiting: int
    tokens: int = 0
    items: deque[Item] = field(default_factory=deque["Item"])

    def embeddings(self) -> Embeddings:
        """The whole answer, once nothing is missing."""
        vectors = tuple(vector for vector in self.vectors if vector is not None)
        return Embeddings(vectors=vectors, tokens=self.tokens)


@dataclass(slots=True, eq=False)
class Item:
    """One text of a request."""

    request: Request
    index: int
    text: str
    length: int
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """Texts that have not been read yet."""

    items: Sequence[Item]
    prompt: str
    is_query: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts that have."""

    items: Sequence[Item]
    texts: Sequence[EncodedText]
    prompt: str


class Waiting:
    """Every text that waits. It is for one thread at a time: whoever holds the worker's lock.

    A batch has at most `batch_size` texts, and is taken by one of `threads`.
    """

    def __init__(self, *, batch_size: int, threads: int, prompts: Prompts) -> None:
        self._batch_size = batch_size
        self._threads = threads
        self._prompts = prompts
        self._queries: deque[Item] = deque()
        self._requests: list[Request] = []
        self._oldest_is_next = False
        self._by_length: list[Item] = []
        self._ready: deque[Batch] = deque()
        self._query_batches_in_row = 0

    def __bool__(self) -> bool:
        return bool(self._queries or self._by_length or self._ready)

    def add(self, request: Request, items: list[Item], *, query: bool) -> None:
        """All texts of a request."""
        if query:
            self._queries.extend(items)
            return
        items.sort(key=_length, reverse=True)
        request.items.extend(items)
        self._requests.append(request)
        self._by_length.extend(items)
        self._by_length.sort(key=_length)

    def put_back(self, batches: Sequence[Batch]) -> None:
        """Batches of what was taken, for whoever is free; they go before other passages."""
        self._ready.extend(batches)

    def take(self, *, running: int) -> Batch | Work:
        """What is next, for a thread that is free while `running` others are not."""
        if self._queries_are_next():
            self._query_batches_in_row += 1
            # Shared among the threads that are free: together they cost less, up to so many.
            idle = self._threads - running
            count = min(self._batch_size, QUERIES_AT_ONCE, -(-len(self._queries) // idle))
            items = [self._queries.popleft() for _ in range(count)]
            return Work(items=items, prompt=self._prompts.query, is_query=True)
        self._query_batches_in_row = 0
        if self._ready:
            return self._ready.popleft()
        return Work(items=self._take_passages(), prompt=self._prompts.passage)

    def _queries_are_next(self) -> bool:
        passages_wait = bool(self._ready or self._by_length)
        if not self._queries:
            return False
        return not passages_wait or self._query_batches_in_row < _QUERY_BATCHES_PER_PASSAGE_BATCH

    def _take_passages(self) -> list[Item]:
        """The next text of the request whose turn it is, and those nearest to it in length."""
        anchor = self._next_in_turn()
        first = bisect_left(self._by_length, anchor.length, key=_length)
        position = self._by_length.index(anchor, first)
        # So many that all threads have some.
        size = min(self._batch_size, -(-len(self._by_length) // self._threads))
        start = max(0, position - size + 1)
        taken = self._by_length[start : start + size]
        del self._by_length[start : start + size]
        for item in taken:
            item.taken = True
            item.request.waiting -= 1
        return taken

    def _next_in_turn(self) -> Item:
        self._requests = [request for request in self._requests if request.waiting]
        self._oldest_is_next = not self._oldest_is_next
        if self._oldest_is_next:
            request = self._requests[0]
        else:
            request = min(self._requests, key=attrgetter("waiting"))
        while request.items[0].taken:
            request.items.popleft()
        return request.items.popleft()

    def take_all(self) -> list[Item]:
        """Whatever there is: nothing waits any more."""
        batches = [item for batch in self._ready for item in batch.items]
        waiting = [*self._queries, *self._by_length, *batches]
        for queue in (self._queries, self._by_length, self._ready, self._requests):
            queue.clear()
        return waiting
