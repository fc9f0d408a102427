"""How texts of many callers become batches of one model. The encoder waits for the test."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from array import array
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest

from privategpt.backends.embedding.encoder import EncodedText, Prompts
from privategpt.backends.embedding.worker import STEPS_BACK, TIDY_AFTER, EmbeddingWorker
from privategpt.domain.errors import EngineFailed, EngineUnavailable
from privategpt.domain.ports import Embeddings, Vector
from tests.fakes.embedding import WordTokenizer


class GatedEncoder:
    """A character is a token and the vector is the text's length. `batches` are what was run.

    The gate is open until a test closes it; `started` is set when a batch waits at it.
    """

    dimensions = 1
    prompts = Prompts(query="q:", passage="p:")
    tokenizer = WordTokenizer()

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = threading.Condition()
        self.failure: BaseException | None = None
        self.reading_failure: EngineFailed | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def tokenize(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        if self.reading_failure is not None:
            raise self.reading_failure
        return [
            EncodedText(text=prompt + text, ids=range(len(text)), tokens=len(text))
            for text in texts
        ]

    def encode(self, batch: Sequence[EncodedText], *, prompt: str) -> list[Vector]:
        with self.begun:
            self.batches.append([text.text for text in batch])
            self.begun.notify_all()
        self.started.set()
        assert self.gate.wait(20)
        if self.failure is not None:
            raise self.failure
        return [array("f", [text.tokens]) for text in batch]

    async def waits_for(self, *, batches: int) -> None:
        """Return when so many have been begun."""

        def wait() -> None:
            with self.begun:
                assert self.begun.wait_for(lambda: len(self.batches) >= batches, 20)

        await asyncio.to_thread(wait)

    async def hold(self, worker: EmbeddingWorker) -> asyncio.Task[Embeddings]:
        """Have one text waiting inside the model."""
        self.gate.clear()
        self.started.clear()
        task = asyncio.create_task(worker.embed(["held"], query=False))
        await asyncio.to_thread(self.started.wait, 20)
        return task


@pytest.fixture
def encoder() -> GatedEncoder:
    return GatedEncoder()


@pytest.fixture
async def worker(encoder: GatedEncoder) -> AsyncIterator[EmbeddingWorker]:
    running = EmbeddingWorker(encoder=encoder, batch_size=4, max_batch_tokens=20)
    yield running
    encoder.gate.set()
    await running.close()


def _lengths(embeddings: Embeddings) -> list[float]:
    return [vector[0] for vector in embeddings.vectors]


async def _queue(
    worker: EmbeddingWorker, texts: list[str], *, query: bool = False
) -> asyncio.Task[Embeddings]:
    task = asyncio.create_task(worker.embed(texts, query=query))
    await asyncio.sleep(0)  # lets it run up to its wait
    return task


async def test_texts_that_wait_together_share_a_batch_whoever_sent_them(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    waiting = [await _queue(worker, ["x" * n]) for n in (3, 1, 2)]
    encoder.gate.set()

    assert [_lengths(each) for each in await asyncio.gather(*waiting)] == [[3], [1], [2]]
    assert encoder.batches == [["p:held"], ["p:xxx", "p:xx", "p:x"]]
    await held


async def test_a_request_is_run_in_batches_of_similar_length_and_answered_in_order(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    lengths = [5, 1, 4, 2, 3, 9, 8, 1]

    embeddings = await worker.embed(["x" * n for n in lengths], query=False)

    assert _lengths(embeddings) == lengths
    assert embeddings.tokens == sum(lengths)
    assert [len(batch) for batch in encoder.batches] == [2, 2, 4]
    shortest_and_longest = [(min(map(len, b)), max(map(len, b))) for b in encoder.batches]
    assert all(this[0] >= following[1] for this, following in pairwise(shortest_and_longest))


async def test_a_batch_never_exceeds_the_tokens_allowed_save_for_one_long_text(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    await worker.embed(["x" * 30, "x" * 30, "x" * 10, "x" * 10, "x" * 10], query=False)

    assert sorted(len(batch) for batch in encoder.batches) == [1, 1, 1, 2]


async def test_a_query_goes_before_the_passages_that_wait(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    passages = await _queue(worker, ["x" * 15] * 3)
    query = await _queue(worker, ["why"], query=True)
    encoder.gate.set()

    assert _lengths(await query) == [3]
    await asyncio.gather(held, passages)
    assert encoder.batches[1] == ["q:why"]


async def test_queries_without_end_let_passages_through_now_and_then(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    passages = await _queue(worker, ["x" * 15])
    queries = await _queue(worker, ["why"] * 4 * 12, query=True)
    encoder.gate.set()

    await asyncio.gather(held, passages, queries)

    assert encoder.batches.index(["p:" + "x" * 15]) == 9
    assert len(encoder.batches) == 14


async def test_a_single_text_does_not_wait_for_a_book(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    book = await _queue(worker, ["x" * 20] * 40)
    single = await _queue(worker, ["x"])
    encoder.gate.set()

    await asyncio.gather(held, book, single)

    assert encoder.batches.index(["p:x"]) < 7


async def test_of_two_books_the_first_is_done_while_the_other_is_not(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    first = await _queue(worker, ["x" * length for length in range(60, 100)])
    second = await _queue(worker, ["y" * length for length in range(20, 60)])
    encoder.gate.set()

    await asyncio.gather(held, first, second)

    signs = [text[-1] for batch in encoder.batches[1:] for text in batch]
    assert signs == ["x"] * 40 + ["y"] * 40


async def test_a_caller_who_gives_up_is_not_worked_for(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    left, stays = await _queue(worker, ["gone"] * 9), await _queue(worker, ["here"])
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    encoder.gate.set()

    assert _lengths(await stays) == [4]
    await held
    assert encoder.batches == [["p:held"], ["p:here"]]


async def test_a_caller_who_gives_up_in_the_middle_of_a_batch_harms_nobody(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    encoder.gate.set()

    assert _lengths(await worker.embed(["next"], query=True)) == [4]


async def test_a_request_cancelled_between_its_batches_is_left_there(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    encoder.gate.clear()
    request = await _queue(worker, ["x" * 15] * 4)
    await asyncio.to_thread(encoder.started.wait, 20)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    encoder.gate.set()

    await worker.embed(["next"], query=False)
    assert encoder.batches == [["p:" + "x" * 15], ["p:next"]]


@pytest.mark.parametrize("failure", [RuntimeError("torch"), EngineFailed("nan"), MemoryError()])
async def test_a_failing_batch_fails_its_callers_and_nobody_after_them(
    worker: EmbeddingWorker, encoder: GatedEncoder, failure: Exception
) -> None:
    encoder.failure = failure
    with pytest.raises(EngineFailed):
        await worker.embed(["bad"] * 6, query=False)
    encoder.failure = None

    assert _lengths(await worker.embed(["good"], query=False)) == [4]


async def test_a_text_that_cannot_be_read_fails_its_caller(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    encoder.reading_failure = EngineFailed("unreadable")

    with pytest.raises(EngineFailed, match="unreadable"):
        await worker.embed(["bad"], query=False)


async def test_closing_ends_who_waits_and_refuses_who_comes(
    worker: EmbeddingWorker, encoder: GatedEncoder
) -> None:
    held = await encoder.hold(worker)
    passages, query = await _queue(worker, ["x"] * 9), await _queue(worker, ["why"], query=True)
    closing = asyncio.create_task(worker.close())
    await asyncio.sleep(0)
    encoder.gate.set()

    assert _lengths(await held) == [4]
    for task in (passages, query):
        with pytest.raises(EngineUnavailable):
            await task
    await closing
    with pytest.raises(EngineUnavailable):
        await worker.embed(["late"], query=False)


async def test_closing_a_worker_that_never_worked_is_no_error(encoder: GatedEncoder) -> None:
    await EmbeddingWorker(encoder=encoder, batch_size=4).close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_nobody_waits_for_ever_when_the_thread_dies(encoder: GatedEncoder) -> None:
    class Unforeseen(BaseException):
        pass

    worker = EmbeddingWorker(encoder=encoder, batch_size=4)
    encoder.failure = Unforeseen()

    with pytest.raises(EngineUnavailable):
        await worker.embed(["x"], query=True)
    await worker.close()


async def test_two_threads_share_what_waits(encoder: GatedEncoder) -> None:
    worker = EmbeddingWorker(encoder=encoder, batch_size=4, threads=2)
    encoder.gate.clear()
    first = await _queue(worker, ["x" * n for n in (1, 2, 3, 4, 5, 6)])
    await encoder.waits_for(batches=2)
    encoder.gate.set()

    assert _lengths(await first) == [1, 2, 3, 4, 5, 6]
    assert sorted(len(batch) for batch in encoder.batches) in ([3, 3], [1, 2, 3], [1, 1, 1, 3])
    await worker.close()


async def test_a_second_request_does_not_wait_for_the_first(encoder: GatedEncoder) -> None:
    worker = EmbeddingWorker(encoder=encoder, batch_size=4, threads=2)
    held = await encoder.hold(worker)
    second = await _queue(worker, ["why"], query=True)
    await encoder.waits_for(batches=2)
    encoder.gate.set()

    assert [_lengths(one) for one in await asyncio.gather(held, second)] == [[4], [3]]
    await worker.close()


async def test_a_thread_knows_how_many_batches_there_are_to_work_on(encoder: GatedEncoder) -> None:
    told: list[tuple[int, int]] = []

    def prepare(number: int, batches: int) -> None:
        told.append((number, batches))

    worker = EmbeddingWorker(encoder=encoder, batch_size=4, threads=2, prepare=prepare)
    for _ in range(3):
        await worker.embed(["alone"], query=True)
    assert told == [(0, 1)] * 3
    held = await encoder.hold(worker)
    second = await _queue(worker, ["why"], query=True)
    await encoder.waits_for(batches=5)
    encoder.gate.set()

    await asyncio.gather(held, second)
    assert told[3:] == [(0, 1), (1, 2)]
    await worker.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_what_the_other_thread_works_on_is_answered_when_one_dies(
    encoder: GatedEncoder,
) -> None:
    class Unforeseen(BaseException):
        pass

    def prepare(_: int, batches: int) -> None:
        if batches == 2:
            raise Unforeseen

    worker = EmbeddingWorker(encoder=encoder, batch_size=4, threads=2, prepare=prepare)
    held = await encoder.hold(worker)
    with pytest.raises(EngineUnavailable):
        await worker.embed(["why"], query=True)
    encoder.gate.set()

    assert _lengths(await held) == [4]
    await worker.close()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
async def test_who_embeds_comes_behind_who_answers(encoder: GatedEncoder) -> None:
    told: list[int] = []

    def prepare(*_: int) -> None:
        told.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    worker = EmbeddingWorker(encoder=encoder, batch_size=4, prepare=prepare)
    await worker.embed(["x"], query=True)
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert told == [min(19, own + STEPS_BACK)]
    await worker.close()


async def test_closing_waits_for_every_thread(encoder: GatedEncoder) -> None:
    worker = EmbeddingWorker(encoder=encoder, batch_size=4, threads=3)
    held = await encoder.hold(worker)
    second = await _queue(worker, ["why"], query=True)
    await encoder.waits_for(batches=2)
    closing = asyncio.create_task(worker.close())
    await asyncio.sleep(0)
    encoder.gate.set()

    assert [_lengths(one) for one in await asyncio.gather(held, second)] == [[4], [3]]
    await closing
    names = {thread.name for thread in threading.enumerate()}
    assert not names & {"embedding-0", "embedding-1", "embedding-2"}


@pytest.mark.parametrize("threads", [1, 2, 4])
async def test_every_text_gets_its_own_vector_whoever_works(threads: int) -> None:
    encoder = GatedEncoder()
    worker = EmbeddingWorker(encoder=encoder, batch_size=3, max_batch_tokens=20, threads=threads)
    requests = [[(7 * n + m) % 19 + 1 for m in range(n)] for n in range(1, 24)]

    answers = await asyncio.gather(
        *(worker.embed(["x" * n for n in lengths], query=False) for lengths in requests)
    )

    assert [_lengths(answer) for answer in answers] == requests
    assert [answer.tokens for answer in answers] == [sum(lengths) for lengths in requests]
    await worker.close()


async def test_what_batches_leave_behind_is_tidied_up_once_nobody_waits(
    encoder: GatedEncoder,
) -> None:
    tidied_after: list[int] = []
    tidied = threading.Event()

    def tidy() -> None:
        tidied_after.append(len(encoder.batches))
        tidied.set()

    worker = EmbeddingWorker(encoder=encoder, batch_size=1, tidy=tidy, rest_s=0.0)
    await worker.embed(["passage"] * (TIDY_AFTER - 1), query=False)
    await worker.embed(["query"], query=True)
    assert await asyncio.to_thread(tidied.wait, 20)
    await worker.embed(["passage"] * (TIDY_AFTER - 1), query=False)
    await worker.close()
    assert tidied_after == [TIDY_AFTER]


async def test_who_comes_while_the_model_rests_does_not_wait_for_its_tidying(
    encoder: GatedEncoder,
) -> None:
    tidied: list[int] = []
    worker = EmbeddingWorker(
        encoder=encoder, batch_size=1, tidy=lambda: tidied.append(1), rest_s=60.0
    )
    await worker.embed(["passage"] * TIDY_AFTER, query=False)
    await worker.embed(["query"], query=True)
    await worker.close()
    assert tidied == []


async def test_what_comes_while_one_thread_tidies_up_is_for_the_others(
    encoder: GatedEncoder,
) -> None:
    tidying, tidied = threading.Event(), threading.Event()

    def tidy() -> None:
        tidying.set()
        tidied.wait(20)

    worker = EmbeddingWorker(encoder=encoder, batch_size=1, threads=2, tidy=tidy, rest_s=0.0)
    await worker.embed(["passage"] * TIDY_AFTER, query=False)
    assert await asyncio.to_thread(tidying.wait, 20)
    answered = await asyncio.wait_for(worker.embed(["why"], query=True), 20)
    assert not tidied.is_set()
    tidied.set()
    await worker.close()
    assert _lengths(answered) == [3]
