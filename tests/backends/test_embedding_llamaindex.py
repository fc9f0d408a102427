"""LlamaIndex classes that are not there, refuse, fail or talk nonsense."""

from __future__ import annotations

import threading

import pytest

from privategpt.backends.embedding.llamaindex import LlamaIndexModel, load_llamaindex
from privategpt.domain.errors import EngineFailed, EngineTimedOut, InvalidSettings
from tests.fakes.llamaindex_embedding import WordEmbedding

WORDS = "tests.fakes.llamaindex_embedding.WordEmbedding"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (None, "dotted path"),
        ("WordEmbedding", "dotted path"),
        ("no.such.module.Class", "no embedding class"),
        ("tests.fakes.llamaindex_embedding.Missing", "no embedding class"),
        ("tests.fakes.embedding.FakeEmbeddingModel", "not a LlamaIndex embedding class"),
        ("tests.fakes.embedding.bag_of_words", "not a LlamaIndex embedding class"),
        (WORDS, "llamaindex_args"),
    ],
)
def test_what_is_no_embedding_class_is_refused_at_start(path: str | None, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        load_llamaindex(path, {"width": "wide"})


def test_a_class_that_does_not_embed_is_found_at_start() -> None:
    with pytest.raises(EngineFailed, match="RuntimeError"):
        load_llamaindex(WORDS, {"width": 8, "failing": True})


async def test_a_failing_class_is_an_engine_failure() -> None:
    model = load_llamaindex(WORDS, {"width": 8, "failing": True}, dimensions=8)

    with pytest.raises(EngineFailed, match="RuntimeError"):
        await model.embed_passages(["a"])


async def test_vectors_of_the_wrong_length_are_an_engine_failure() -> None:
    model = load_llamaindex(WORDS, {"width": 8}, dimensions=9)

    with pytest.raises(EngineFailed, match="8 dimensions instead of 9"):
        await model.embed_query("a")


async def test_too_few_vectors_are_an_engine_failure() -> None:
    class Forgetful(WordEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return []

    model = LlamaIndexModel(embedding=Forgetful(width=8), name="forgetful", dimensions=8)

    with pytest.raises(EngineFailed, match="0 vectors for 2 texts"):
        await model.embed_passages(["a", "b"])


async def test_a_class_that_does_not_return_times_out() -> None:
    leaving = threading.Event()

    class Silent(WordEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            leaving.wait(20)
            return [1.0]

    model = LlamaIndexModel(embedding=Silent(width=8), name="silent", dimensions=8, timeout_s=0.01)

    with pytest.raises(EngineTimedOut):
        await model.embed_query("a")
    leaving.set()


async def test_a_timeout_of_the_class_itself_is_one() -> None:
    class Late(WordEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            raise ConnectionError from TimeoutError()

    model = LlamaIndexModel(embedding=Late(width=8), name="late", dimensions=8)

    with pytest.raises(EngineFailed, match="ConnectionError"):
        await model.embed_passages(["a"])


def test_the_model_is_named_by_its_name_or_else_its_class() -> None:
    named = load_llamaindex(WORDS, {"width": 8, "model_name": "words-8"}, max_tokens=77)
    nameless = load_llamaindex(WORDS, {"width": 8})

    assert (named.name, nameless.name) == ("words-8", "WordEmbedding")
    assert (named.tokenizer.max_tokens, nameless.tokenizer.max_tokens) == (77, 512)
    assert named.fingerprint != nameless.fingerprint
