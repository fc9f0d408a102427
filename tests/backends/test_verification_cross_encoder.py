"""Cross-encoders as verifiers, on tiny models made here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from privategpt.backends.verification.cross_encoder import load_cross_encoder, support_label
from privategpt.domain.errors import InvalidSettings
from privategpt.domain.verification import Pair
from tests.fakes.tiny_models import make_cross_encoder

NLI = ("contradiction", "entailment", "neutral")
PAIRS = [
    Pair("The pond has nine ducks.", "There are nine ducks in the pond."),
    Pair("The pond has ten ducks.", "There are nine ducks in the pond."),
    Pair("Bananas are yellow.", "There are nine ducks in the pond."),
]


@pytest.mark.parametrize("labels", [NLI, ("LABEL_0",), ("LABEL_0", "LABEL_1")])
async def test_scores_are_the_models_own_probability_of_support(
    tmp_path: Path, labels: Sequence[str]
) -> None:
    folder = make_cross_encoder(tmp_path / "tiny", labels=labels)
    verifier = load_cross_encoder(str(folder))
    scores = await verifier.verify(PAIRS)

    from sentence_transformers import CrossEncoder

    bare = cast("Any", CrossEncoder(str(folder), device="cpu"))
    inputs = [(pair.evidence, pair.claim) for pair in PAIRS]
    many = len(labels) > 1
    expected = bare.predict(inputs, apply_softmax=many)
    wanted = [float(row[1]) if many else float(row) for row in expected]
    assert scores == pytest.approx(wanted, abs=1e-5)
    assert len(set(scores)) == len(PAIRS)
    assert verifier.method == "cross-encoder tiny"


async def test_nothing_to_verify_needs_no_model(tmp_path: Path) -> None:
    verifier = load_cross_encoder(str(make_cross_encoder(tmp_path / "tiny", labels=NLI)))
    assert await verifier.verify([]) == []


def test_a_model_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="nowhere"):
        load_cross_encoder(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        ({0: "entailment", 1: "neutral", 2: "contradiction"}, 0),
        ({0: "NEUTRAL", 1: "CONTRADICTION", 2: "ENTAILMENT"}, 2),
        ({0: "LABEL_0", 1: "LABEL_1"}, 1),
        ({0: "LABEL_0"}, None),
    ],
)
def test_the_label_for_support_is_found_by_name(labels: dict[int, str], index: int | None) -> None:
    assert support_label(labels) == index


def test_labels_that_say_nothing_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="none of the labels"):
        support_label({0: "A", 1: "B", 2: "C"})
