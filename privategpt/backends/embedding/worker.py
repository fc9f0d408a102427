"""One thread that owns a model and serves whoever asks, in the batches that suit the model.

- Texts that wait together are embedded together, whoever sent them, with others of their length:
  a batch costs as much as its longest text times their number.
- Queries go before passages. A batch of passages is kept small, so that a query which arrives
  in the middle of an ingestion waits for one of them only.
- The oldest request and the one that is nearest to its end take turns: a single text does not
  wait for a book, and of two books one is done, and stored, while the other is embedded.
- A caller who gives up is forgotten at the next batch.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from operator import attrgetter

from privategpt.backends.embedding.encoder import EncodedText, Encoder
from privategpt.domain.errors import EngineFailed, EngineUnavailable, PrivateGptError
from privategpt.domain.ports import Embeddings, Vector

MAX_BATCH_TOKENS = 2048
"""Tokens of one batch, padding counted: about a tenth of a second on two cores, and more at once
is hardly faster on a processor."""

TIDY_AFTER = 8
"""Batches before what they leave behind is worth tidying up."""

REST_S = 2.0
"""Without work before that is done: it takes a tenth of a second, and nobody shall wait for it."""

_QUERY_BATCHES_PER_PASSAGE_BATCH = 8  # so that queries without end do not stop an ingestion

_length = attrgetter("length")


@dataclass(slots=True, eq=False)
class _Request:
    """Whoever asked, and the answer so far."""

    future: Future[Embeddings]
    vectors: list[Vector | None]
    missing: int
    waiting: int
    tokens: int = 0
    items: deque[_Item] = field(default_factory=deque["_Item"])


@dataclass(slots=True, eq=False)
class _Item:
    """One text of a request."""

    request: _Request
    index: int
    text: str
    length: int
    taken: bool = False


@dataclass(frozen=True, slots=True)
class _Batch:
    items: Sequence[_Item]
    texts: Sequence[EncodedText]


class EmbeddingWorker:
    """Runs `encoder` on a thread of its own, started with the first request.

    On that thread `prepare` is called once, before anything else, and `tidy` when nobody
    has asked for `rest_s` and several batches were embedded since the last time.
    """

    def __init__(
        self,
        *,
        encoder: Encoder,
        batch_size: int,
        max_batch_tokens: int = MAX_BATCH_TOKENS,
        prepare: Callable[[], None] = lambda: None,
        tidy: Callable[[], None] = lambda: None,
        rest_s: float = REST_S,
    ) -> None:
        self._encoder = encoder
        self._batch_size = batch_size
        self._max_batch_tokens = max_batch_tokens
        self._prepare = prepare
        self._tidy = tidy
        self._rest_s = rest_s
        self._untidy_batches = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._queries: deque[_Item] = deque()
        self._requests: list[_Request] = []
        self._oldest_is_next = False
        self._by_length: list[_Item] = []
        self._ready: deque[_Batch] = deque()
        self._running: Sequence[_Item] = ()
        self._query_batches_in_row = 0

    async def embed(self, texts: Sequence[str], *, query: bool) -> Embeddings:
        """Vectors in the order of `texts`; raises `EngineFailed` or `EngineUnavailable`."""
        if not texts:
            return Embeddings(vectors=(), tokens=0)
        future: Future[Embeddings] = Future()
        count = len(texts)
        request = _Request(future=future, vectors=[None] * count, missing=count, waiting=count)
        items = [
            _Item(request=request, index=index, text=text, length=len(text))
            for index, text in enumerate(texts)
        ]
        with self._changed:
            if self._closed:
                raise EngineUnavailable("The embedding model has been shut down")
            self._enqueue(request, items, query=query)
            self._start()
            self._changed.notify()
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Let the running batch end; whoever still waits gets `EngineUnavailable`."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _enqueue(self, request: _Request, items: list[_Item], *, query: bool) -> None:
        if query:
            self._queries.extend(items)
            return
        items.sort(key=_length, reverse=True)
        request.items.extend(items)
        self._requests.append(request)
        self._by_length.extend(items)
        self._by_length.sort(key=_length)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._prepare()
            while self._wait():
                if self._queries_are_next():
                    self._run_queries()
                else:
                    self._run_passages()
        finally:
            # Also where something broke that nobody foresaw: no caller may wait for ever.
            self._abandon()

    def _wait(self) -> bool:
        if self._untidy_batches >= TIDY_AFTER and not self._is_wanted_within(self._rest_s):
            self._untidy_batches = 0
            self._tidy()
        self._is_wanted_within(None)
        return not self._closed

    def _is_wanted_within(self, seconds: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(self._is_wanted, seconds)

    def _is_wanted(self) -> bool:
        return bool(self._closed or self._queries or self._by_length or self._ready)

    def _queries_are_next(self) -> bool:
        passages_wait = bool(self._ready or self._by_length)
        if not self._queries:
            return False
        return not passages_wait or self._query_batches_in_row < _QUERY_BATCHES_PER_PASSAGE_BATCH

    def _run_queries(self) -> None:
        self._query_batches_in_row += 1
        with self._changed:
            count = min(self._batch_size, len(self._queries))
            items = [self._queries.popleft() for _ in range(count)]
        for batch in self._read(items, prompt=self._encoder.prompts.query):
            self._embed(batch, prompt=self._encoder.prompts.query)

    def _run_passages(self) -> None:
        self._query_batches_in_row = 0
        prompt = self._encoder.prompts.passage
        if not self._ready:
            with self._changed:
                items = self._take_passages()
            self._ready.extend(self._read(items, prompt=prompt))
        if self._ready:
            self._embed(self._ready.popleft(), prompt=prompt)

    def _take_passages(self) -> list[_Item]:
        """The next text of the request whose turn it is, and those nearest to it in length."""
        anchor = self._next_in_turn()
        first = bisect_left(self._by_length, anchor.length, key=_length)
        position = self._by_length.index(anchor, first)
        start = max(0, position - self._batch_size + 1)
        taken = self._by_length[start : start + self._batch_size]
        del self._by_length[start : start + self._batch_size]
        for item in taken:
            item.taken = True
            item.request.waiting -= 1
        return taken

    def _next_in_turn(self) -> _Item:
        self._requests = [request for request in self._requests if request.waiting]
        self._oldest_is_next = not self._oldest_is_next
        if self._oldest_is_next:
            request = self._requests[0]
        else:
            request = min(self._requests, key=attrgetter("waiting"))
        while request.items[0].taken:
            request.items.popleft()
        return request.items.popleft()

    def _read(self, items: Sequence[_Item], *, prompt: str) -> list[_Batch]:
        """Tokenise, and divide into batches of similar length."""
        wanted = [item for item in items if not item.request.future.done()]
        self._running = wanted
        try:
            texts = self._encoder.tokenize([item.text for item in wanted], prompt=prompt)
        except PrivateGptError as error:
            _fail(wanted, error)
            return []
        pairs = sorted(
            zip(wanted, texts, strict=True), key=lambda pair: len(pair[1].ids), reverse=True
        )
        return list(self._divide(pairs))

    def _divide(self, pairs: Sequence[tuple[_Item, EncodedText]]) -> Iterator[_Batch]:
        start = 0
        while start < len(pairs):
            longest = max(1, len(pairs[start][1].ids))
            end = start + max(1, self._max_batch_tokens // longest)
            items, texts = zip(*pairs[start:end], strict=True)
            yield _Batch(items=items, texts=texts)
            start = end

    def _embed(self, batch: _Batch, *, prompt: str) -> None:
        self._running = batch.items
        self._untidy_batches += 1
        if all(item.request.future.done() for item in batch.items):
            return
        try:
            vectors = self._encoder.encode(batch.texts, prompt=prompt)
        except PrivateGptError as error:
            _fail(batch.items, error)
        except (RuntimeError, ValueError, MemoryError) as error:  # torch's, out of memory included
            failure = EngineFailed("The embedding model failed on this text")
            failure.__cause__ = error
            _fail(batch.items, failure)
        else:
            for item, text, vector in zip(batch.items, batch.texts, vectors, strict=True):
                _settle(item, vector, tokens=text.tokens)

    def _abandon(self) -> None:
        with self._changed:
            self._closed = True
            batches = [item for batch in self._ready for item in batch.items]
            waiting = [*self._running, *self._queries, *self._by_length, *batches]
            for queue in (self._queries, self._by_length, self._ready, self._requests):
                queue.clear()
        _fail(waiting, EngineUnavailable("The embedding model has been shut down"))


def _settle(item: _Item, vector: Vector, *, tokens: int) -> None:
    request = item.request
    request.vectors[item.index] = vector
    request.tokens += tokens
    request.missing -= 1
    # A caller who has just gone has cancelled the future; nobody else sets it.
    if request.missing == 0 and request.future.set_running_or_notify_cancel():
        vectors = tuple(vector for vector in request.vectors if vector is not None)
        request.future.set_result(Embeddings(vectors=vectors, tokens=request.tokens))


def _fail(items: Sequence[_Item], error: PrivateGptError) -> None:
    for item in items:
        future = item.request.future
        if not future.done() and future.set_running_or_notify_cancel():
            future.set_exception(error)
