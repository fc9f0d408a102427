"""Threads that share a model and serve whoever asks, in the batches that suit the model.

- Each batch is one thread's alone. Of what one operation does little can be shared out, so that
  two threads with a batch each do more than two that share every operation of one.
- A thread works only while those before it do: a batch that is alone always has the first.
- A caller who gives up is forgotten at the next batch.

Which texts make the next batch is said in `waiting`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from privategpt.backends.embedding.encoder import EncodedText, Encoder
from privategpt.backends.embedding.waiting import Batch, Item, Request, Waiting, Work
from privategpt.domain.errors import EngineFailed, EngineUnavailable, PrivateGptError
from privategpt.domain.ports import Embeddings, Vector

MAX_BATCH_TOKENS = 2048
"""Tokens of one batch, padding counted: about a tenth of a second on one core, and more at once
is hardly faster on a processor."""

TIDY_AFTER = 8
"""Batches before what they leave behind is worth tidying up."""

REST_S = 2.0
"""Without work before that is done: it takes a tenth of a second, and nobody shall wait for it."""

STEPS_BACK = 5
"""Of nice values."""

_Told: TypeAlias = "tuple[asyncio.Future[Embeddings], Embeddings | PrivateGptError]"


class EmbeddingWorker:
    """Runs `encoder` on `threads` threads of its own, started with the first request.

    Before each batch `prepare` is called on its thread, with the thread's number from 0 on and how
    many batches there is work for at this moment. On one of them `tidy` is called when nobody has
    asked for `rest_s` and several batches were embedded since the last time.
    """

    def __init__(
        self,
        *,
        encoder: Encoder,
        batch_size: int,
        max_batch_tokens: int = MAX_BATCH_TOKENS,
        threads: int = 1,
        prepare: Callable[[int, int], None] = lambda _, __: None,
        tidy: Callable[[], None] = lambda: None,
        rest_s: float = REST_S,
    ) -> None:
        self._encoder = encoder
        self._max_batch_tokens = max_batch_tokens
        self._prepare = prepare
        self._tidy = tidy
        self._rest_s = rest_s
        self._threads = [
            threading.Thread(
                target=self._run, args=(number,), name=f"embedding-{number}", daemon=True
            )
            for number in range(threads)
        ]
        # What follows is changed by whoever holds this.
        self._lock = threading.Lock()
        # Each thread's own, so that the one is woken whose turn it is.
        self._changed = [threading.Condition(self._lock) for _ in range(threads)]
        self._started = False
        self._closed = False
        self._untidy_batches = 0
        self._waiting = Waiting(batch_size=batch_size, threads=threads, prompts=encoder.prompts)
        self._running: dict[int, Sequence[Item]] = {}  # by the thread's number

    async def embed(self, texts: Sequence[str], *, query: bool) -> Embeddings:
        """Vectors in the order of `texts`; raises `EngineFailed` or `EngineUnavailable`."""
        if not texts:
            return Embeddings(vectors=(), tokens=0)
        future: asyncio.Future[Embeddings] = asyncio.get_running_loop().create_future()
        count = len(texts)
        request = Request(future=future, vectors=[None] * count, missing=count, waiting=count)
        items = [
            Item(request=request, index=index, text=text, length=len(text))
            for index, text in enumerate(texts)
        ]
        with self._lock:
            if self._closed:
                raise EngineUnavailable("The embedding model has been shut down")
            self._waiting.add(request, items, query=query)
            self._start()
            self._wake_next()
        return await future

    async def close(self) -> None:
        """Let the running batches end; whoever still waits gets `EngineUnavailable`."""
        with self._lock:
            self._closed = True
            self._wake_all()
        for thread in self._threads if self._started else ():
            await asyncio.to_thread(thread.join)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()

    def _run(self, number: int) -> None:
        _step_back()
        try:
            while (work := self._next(number)) is not None:
                if isinstance(work, Batch):
                    self._embed(work, number)
                else:
                    self._embed_items(work, number)
        finally:
            # Also where something broke that nobody foresaw: no caller may wait for ever.
            self._abandon(number)

    def _next(self, number: int) -> Batch | Work | None:
        """What this thread does next, once there is something; None at the end."""
        with self._lock:
            self._running.pop(number, None)
            tidies = self._may_tidy(number)
            if tidies:
                self._running[number] = ()  # What comes meanwhile is for the others.
        if tidies:
            self._tidy()
        with self._lock:
            self._running.pop(number, None)
            self._changed[number].wait_for(partial(self._is_wanted, number))
            if self._closed:
                return None
            work = self._waiting.take(running=len(self._running))
            self._running[number] = work.items
            self._wake_next()
            return work

    def _may_tidy(self, number: int) -> bool:
        if self._untidy_batches < TIDY_AFTER:
            return False
        is_wanted = partial(self._is_wanted, number)
        if self._changed[number].wait_for(is_wanted, self._rest_s) or self._running:
            return False
        untidy, self._untidy_batches = self._untidy_batches, 0
        return untidy >= TIDY_AFTER

    def _is_wanted(self, number: int) -> bool:
        return self._closed or (bool(self._waiting) and len(self._running) >= number)

    def _wake_next(self) -> None:
        """If there is work, wake the first thread that has none; it wakes the one behind it."""
        if self._waiting:
            for number, changed in enumerate(self._changed):
                if number not in self._running:
                    changed.notify()
                    return

    def _wake_all(self) -> None:
        for changed in self._changed:
            changed.notify()

    def _embed_items(self, work: Work, number: int) -> None:
        batches = self._read(work.items, prompt=work.prompt)
        if not work.is_query and len(batches) > 1:
            with self._lock:
                self._waiting.put_back(batches[1:])
                self._wake_next()
            del batches[1:]
        for batch in batches:
            with self._lock:
                self._running[number] = batch.items
            self._embed(batch, number)

    def _read(self, items: Sequence[Item], *, prompt: str) -> list[Batch]:
        """Tokenise, and divide into batches of similar length."""
        wanted = [item for item in items if not item.request.future.done()]
        try:
            texts = self._encoder.tokenize([item.text for item in wanted], prompt=prompt)
        except PrivateGptError as error:
            self._fail(wanted, error)
            return []
        pairs = sorted(
            zip(wanted, texts, strict=True), key=lambda pair: len(pair[1].ids), reverse=True
        )
        return list(self._divide(pairs, prompt=prompt))

    def _divide(self, pairs: Sequence[tuple[Item, EncodedText]], *, prompt: str) -> Iterator[Batch]:
        start = 0
        while start < len(pairs):
            longest = max(1, len(pairs[start][1].ids))
            end = start + max(1, self._max_batch_tokens // longest)
            items, texts = zip(*pairs[start:end], strict=True)
            yield Batch(items=items, texts=texts, prompt=prompt)
            start = end

    def _embed(self, batch: Batch, number: int) -> None:
        if all(item.request.future.done() for item in batch.items):
            return
        self._prepare(number, self._side_by_side())
        try:
            vectors = self._encoder.encode(batch.texts, prompt=batch.prompt)
        except PrivateGptError as error:
            self._fail(batch.items, error)
        except (RuntimeError, ValueError, MemoryError) as error:  # torch's, out of memory included
            failure = EngineFailed("The embedding model failed on this text")
            failure.__cause__ = error
            self._fail(batch.items, failure)
        else:
            with self._lock:
                self._untidy_batches += 1
                # Before anybody is told, who may ask for more at once: that is for this thread.
                del self._running[number]
                whole = [
                    item.request
                    for item, text, vector in zip(batch.items, batch.texts, vectors, strict=True)
                    if _settle(item, vector, tokens=text.tokens)
                ]
            _tell([(request.future, request.embeddings()) for request in whole])

    def _side_by_side(self) -> int:
        with self._lock:
            return min(len(self._running) + bool(self._waiting), len(self._threads))

    def _abandon(self, number: int) -> None:
        with self._lock:
            self._closed = True
            self._wake_all()
            mine = self._running.pop(number, ())
            waiting = [*mine, *self._waiting.take_all()]
        self._fail(waiting, EngineUnavailable("The embedding model has been shut down"))

    def _fail(self, items: Sequence[Item], error: PrivateGptError) -> None:
        _tell([(item.request.future, error) for item in items])


def _settle(item: Item, vector: Vector, *, tokens: int) -> bool:
    """Note a vector; True if it was the last that its request waited for."""
    request = item.request
    request.vectors[item.index] = vector
    request.tokens += tokens
    request.missing -= 1
    return request.missing == 0


def _tell(answers: Sequence[_Told]) -> None:
    """Answer all these at once: to wake a loop takes longer than an answer."""
    for loop in {future.get_loop() for future, _ in answers}:
        told = [one for one in answers if one[0].get_loop() is loop]
        with suppress(RuntimeError):  # It is closed: nobody waits any more.
            loop.call_soon_threadsafe(_answer, told)


def _answer(told: Sequence[_Told]) -> None:
    for future, answer in told:
        if future.done():
            continue  # Given up, or told already that another text of it failed.
        if isinstance(answer, PrivateGptError):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _step_back() -> None:
    """Let this thread come behind the others: who answers requests needs little, and all wait for
    it. Only on Linux has a thread a priority of its own.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        own = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, own + STEPS_BACK)
