"""Cross-encoders as rerankers, on tiny models made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from privategpt.backends.reranking.cross_encoder import (
    CrossEncoderReranker,
    load_cross_encoder_reranker,
)
from privategpt.domain.errors import EngineFailed, InvalidSettings
from tests.fakes.tiny_models import make_cross_encoder

QUERY = "How many ducks are there?"
TEXTS = [
    "There are nine ducks in the pond, and every one of them has a name that I forgot.",
    "Bananas are yellow.",
    "",
    "Nine.",
    "The pond has ten ducks.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cross_encoder(tmp_path_factory.mktemp("models") / "tiny", labels=["LABEL_0"])


@pytest.fixture(scope="module")
def reranker(folder: Path) -> CrossEncoderReranker:
    return load_cross_encoder_reranker(str(folder), batch_size=2)


async def test_scores_are_the_models_own_in_the_order_of_the_texts(
    folder: Path, reranker: CrossEncoderReranker
) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    found = await reranker.score(QUERY, TEXTS)
    bare = cast("Any", CrossEncoder(str(folder), device="cpu"))
    pairs = [(QUERY, text) for text in TEXTS]
    expected = bare.predict(pairs, activation_fn=torch.nn.Sigmoid())
    assert found.scores == pytest.approx([float(one) for one in expected], abs=1e-5)
    assert len(set(found.scores)) == len(TEXTS)
    unpadded = bare.tokenizer([QUERY] * len(TEXTS), TEXTS)["input_ids"]
    assert found.tokens == sum(map(len, unpadded))
    assert reranker.name == "tiny"
    await reranker.close()


async def test_logits_become_probabilities_whatever_the_models_own_configuration_says(
    folder: Path, tmp_path: Path, reranker: CrossEncoderReranker
) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    with_logits = CrossEncoder(str(folder), device="cpu", activation_fn=Identity())
    with_logits.save_pretrained(str(tmp_path / "logits"))
    logits = load_cross_encoder_reranker(str(tmp_path / "logits"))
    found = await logits.score(QUERY, TEXTS)
    assert found.scores == pytest.approx((await reranker.score(QUERY, TEXTS)).scores, abs=1e-5)
    assert all(0 <= score <= 1 for score in found.scores)


async def test_nothing_costs_nothing(reranker: CrossEncoderReranker) -> None:
    found = await reranker.score(QUERY, [])
    assert (found.scores, found.tokens) == ((), 0)


async def test_what_is_beyond_the_window_is_not_read(reranker: CrossEncoderReranker) -> None:
    long = "duck " * 100_000
    found = await reranker.score(QUERY, [long, f"{long} bananas"])
    assert found.scores[0] == pytest.approx(found.scores[1], abs=1e-6)
    assert found.tokens == 2 * 512


async def test_a_model_that_breaks_is_a_failure_of_the_engine() -> None:
    class Broken:
        max_seq_length = None

        def predict(self, pairs: object, **_: object) -> list[float]:
            raise RuntimeError("out of memory")

    reranker = CrossEncoderReranker(
        model=cast("Any", Broken()), name="broken", squash=float, batch_size=1
    )
    with pytest.raises(EngineFailed):
        await reranker.score(QUERY, TEXTS)


def test_a_model_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="nowhere"):
        load_cross_encoder_reranker(str(tmp_path / "nowhere"))


def test_a_classifier_is_refused(tmp_path: Path) -> None:
    folder = make_cross_encoder(tmp_path / "nli", labels=["entailment", "neutral"])
    with pytest.raises(InvalidSettings, match="2 labels"):
        load_cross_encoder_reranker(str(folder))
