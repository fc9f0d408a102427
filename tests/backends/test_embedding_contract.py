"""What every embedding model promises, over all of them and the fake."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from privategpt.backends.embedding.llamaindex import load_llamaindex
from privategpt.backends.embedding.openai_compatible import connect_openai_compatible
from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers
from privategpt.domain.ports import EmbeddingModel, Vector
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.tiny_models import make_distilbert

CAT = "The cat sleeps on the sofa."
KITTEN = "The cat sleeps on the warm sofa all day."
SHARES = "Quarterly profits of steel producers collapsed."


async def _make(kind: str, folder: Path, server: EmbeddingServer) -> EmbeddingModel:
    match kind:
        case "bundled":
            return load_sentence_transformers(batch_size=4)
        case "modules":
            return load_sentence_transformers(str(make_distilbert(folder)), batch_size=4)
        case "openai":
            return await connect_openai_compatible(
                base_url=server.url, api_key=None, model="words", batch_size=4
            )
        case "llamaindex":
            return load_llamaindex(
                "tests.fakes.llamaindex_embedding.WordEmbedding", {"width": 64}, batch_size=4
            )
        case _:
            return FakeEmbeddingModel()


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer() as running:
        yield running


@pytest.fixture(scope="module", params=["fake", "bundled", "modules", "openai", "llamaindex"])
async def model(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    server: EmbeddingServer,
) -> AsyncIterator[EmbeddingModel]:
    made = await _make(request.param, tmp_path_factory.mktemp("model"), server)
    yield made
    await made.close()


def _similarity(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


async def test_every_vector_is_a_float32_array_of_the_stated_length_and_of_unit_norm(
    model: EmbeddingModel,
) -> None:
    embeddings = await model.embed_passages([CAT, SHARES, "x", "é漢😀"])

    assert [vector.typecode for vector in embeddings.vectors] == ["f"] * 4
    assert [len(vector) for vector in embeddings.vectors] == [model.dimensions] * 4
    norms = [_similarity(vector, vector) for vector in embeddings.vectors]
    assert norms == pytest.approx([1.0] * 4, abs=1e-5)


async def test_vectors_come_in_the_order_of_texts_of_very_different_lengths(
    model: EmbeddingModel,
) -> None:
    texts = [f"{CAT} " * (index * 7 % 10 + 1) + f"number {index}" for index in range(10)]

    together = await model.embed_passages(texts)

    for text, vector in zip(texts, together.vectors, strict=True):
        alone = await model.embed_passages([text])
        assert _similarity(alone.vectors[0], vector) > 0.999


async def test_a_repeated_text_has_the_same_vector_each_time(model: EmbeddingModel) -> None:
    embeddings = await model.embed_passages([CAT, SHARES, CAT])

    assert _similarity(embeddings.vectors[0], embeddings.vectors[2]) > 0.9999


async def test_a_query_is_one_vector_nearest_to_the_text_it_means(model: EmbeddingModel) -> None:
    query = await model.embed_query(CAT)
    passages = await model.embed_passages([SHARES, KITTEN])

    assert len(query.vectors) == 1
    scores = [_similarity(query.vectors[0], vector) for vector in passages.vectors]
    assert scores[1] > scores[0]


async def test_no_texts_are_no_vectors(model: EmbeddingModel) -> None:
    embeddings = await model.embed_passages([])

    assert (embeddings.vectors, embeddings.tokens) == ((), 0)


async def test_text_beyond_the_window_is_cut_off_and_not_counted(model: EmbeddingModel) -> None:
    long = "word " * (model.tokenizer.max_tokens + 50)

    embeddings = await model.embed_passages([long])
    cut = await model.embed_passages([long + "and more that nobody reads"])

    assert 0 < embeddings.tokens <= model.tokenizer.max_tokens
    assert _similarity(embeddings.vectors[0], cut.vectors[0]) > 0.9999


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\ud800", "\x00", "\u200b", "[SEP] [CLS]"])
async def test_odd_texts_have_vectors_too(model: EmbeddingModel, text: str) -> None:
    passages = await model.embed_passages([text])
    query = await model.embed_query(text)

    assert [len(vector) for vector in (*passages.vectors, *query.vectors)] == [
        model.dimensions,
        model.dimensions,
    ]


async def test_tokens_end_within_the_text_in_ascending_order(model: EmbeddingModel) -> None:
    for text in (CAT, "", "漢字かな交じり文。", "naïve 😀 café\u0301", "a\n\n b\tc"):
        ends = list(model.tokenizer.ends(text))

        assert ends == sorted(ends)
        assert len(ends) == model.tokenizer.count(text)
        assert all(0 < end <= len(text) for end in ends)


async def test_name_and_fingerprint_say_something(model: EmbeddingModel) -> None:
    assert model.name
    assert str(model.dimensions) in model.fingerprint
