"""Which embedding model the settings name."""

from __future__ import annotations

import pytest

from privategpt.domain.errors import InvalidSettings
from privategpt.settings import EmbeddingSettings
from privategpt.wiring.engines import load_embedding
from tests.fakes.llamaindex_embedding import CountingEmbedding


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        # The client would send every document to OpenAI.
        (EmbeddingSettings(mode="openai", model="m"), r"embedding\.base_url"),
        (EmbeddingSettings(mode="openai", base_url="http://127.0.0.1:9/v1"), r"embedding\.model"),
        (EmbeddingSettings(mode="llamaindex"), r"embedding\.llamaindex_class"),
    ],
)
async def test_what_a_mode_needs_is_asked_for_by_name(
    settings: EmbeddingSettings, missing: str
) -> None:
    with pytest.raises(InvalidSettings, match=missing):
        await load_embedding(settings)


async def test_a_llamaindex_class_gets_as_many_texts_at_once_as_the_operator_says() -> None:
    model = await load_embedding(
        EmbeddingSettings(
            mode="llamaindex",
            llamaindex_class="tests.fakes.llamaindex_embedding.CountingEmbedding",
            llamaindex_args={"width": 8},
            batch_size=2,
        )
    )
    CountingEmbedding.batches.clear()
    await model.embed_passages(["a", "b", "c"])
    assert CountingEmbedding.batches == [2, 1]
