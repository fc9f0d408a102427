"""What POST /v1/embeddings may be asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from privategpt.domain.errors import (
    EngineUnavailable,
    InvalidRequest,
    UnsupportedParameter,
)
from privategpt.services.embeddings import MAX_INPUTS, EmbeddingService
from tests.fakes.embedding import FakeEmbeddingModel


@pytest.fixture
def model() -> FakeEmbeddingModel:
    return FakeEmbeddingModel(dimensions=16, max_tokens=4)


@pytest.fixture
def service(model: FakeEmbeddingModel) -> EmbeddingService:
    return EmbeddingService(model=model)


async def test_every_text_has_its_vector_in_order_repeated_ones_too(
    service: EmbeddingService, model: FakeEmbeddingModel
) -> None:
    texts = ["cat", "dog and cat", "cat"]

    embeddings = await service.embed(texts)

    assert embeddings == await model.embed_passages(texts)
    assert embeddings.vectors[0] == embeddings.vectors[2] != embeddings.vectors[1]
    assert embeddings.tokens == 5


async def test_a_text_beyond_the_window_is_cut_to_it(service: EmbeddingService) -> None:
    long, cut = (await service.embed(["a b c d e f", "a b c d"])).vectors

    assert long == cut


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "at least one"),
        (["a", ""], "text 1 is empty"),
        (["a"] * (MAX_INPUTS + 1), "2049 texts; at most 2048"),
    ],
    ids=["none", "empty", "many"],
)
async def test_what_cannot_be_embedded_is_refused_before_the_model_is_asked(
    service: EmbeddingService, model: FakeEmbeddingModel, texts: Sequence[str], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as refusal:
        await service.embed(texts)

    assert refusal.value.param == "input"
    assert model.calls == []


async def test_as_many_texts_as_openai_takes_are_taken(service: EmbeddingService) -> None:
    assert len((await service.embed(["a"] * MAX_INPUTS)).vectors) == MAX_INPUTS


async def test_the_models_own_dimensions_may_be_named_and_no_others(
    service: EmbeddingService,
) -> None:
    assert len((await service.embed(["a"], dimensions=16)).vectors[0]) == 16

    for dimensions in (8, 17):
        with pytest.raises(UnsupportedParameter, match="has 16 dimensions") as refusal:
            await service.embed(["a"], dimensions=dimensions)
        assert refusal.value.param == "dimensions"


async def test_a_model_that_does_not_serve_is_not_hidden(
    service: EmbeddingService, model: FakeEmbeddingModel
) -> None:
    model.failure = EngineUnavailable("gone")

    with pytest.raises(EngineUnavailable, match="gone"):
        await service.embed(["a"])
