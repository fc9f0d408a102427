"""What decides whether ONNX Runtime would be the faster engine: its encoder and the stopwatch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from evals.onnx_engine.encoder import WIDTH, OnnxEncoder, bundled_reader
from evals.onnx_engine.speed import BATCHES, LENGTHS, compare, texts
from privategpt.backends.embedding.encoder import NO_PROMPTS, EncodedText, Prompts
from privategpt.domain.ports import Tokenizer, Vector


@dataclass
class OneHotSession:
    """A hidden state that is 1 at the token's id, for padding too."""

    fed: list[Mapping[str, NDArray[np.int64]]] = field(
        default_factory=list[Mapping[str, NDArray[np.int64]]]
    )

    def run(
        self, output_names: None, input_feed: Mapping[str, NDArray[np.int64]]
    ) -> Sequence[NDArray[np.float32]]:
        """As `onnxruntime.InferenceSession` does."""
        self.fed.append(input_feed)
        return [np.eye(WIDTH, dtype=np.float32)[input_feed["input_ids"]]]


def encoded(*ids: int) -> EncodedText:
    """A text of these token ids."""
    return EncodedText(text="", ids=ids, tokens=len(ids))


def test_padding_has_no_part_in_a_vector() -> None:
    session = OneHotSession()
    encoder = OnnxEncoder(session=session, reader=bundled_reader())
    short, long = encoder.encode([encoded(3, 4), encoded(5, 5, 5, 6)], prompt="")
    assert {at: round(value, 4) for at, value in enumerate(short) if value} == {
        3: pytest.approx(0.7071),
        4: pytest.approx(0.7071),
    }
    assert long[5] == pytest.approx(3 * long[6])
    assert session.fed[0]["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_texts_are_read_as_the_product_reads_them() -> None:
    encoder = OnnxEncoder(session=OneHotSession(), reader=bundled_reader())
    (text,) = encoder.tokenize(["word " * 400], prompt="")
    assert (len(text.ids), text.tokens) == (256, 254)


class SteppingEncoder:
    """Takes `seconds` of its own clock for a batch."""

    dimensions = 1
    prompts: Prompts = NO_PROMPTS

    def __init__(self, clock: list[float], *, seconds: float, name: str, began: list[str]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._name = name
        self._began = began

    @property
    def tokenizer(self) -> Tokenizer:
        """Never asked for."""
        raise AssertionError

    def tokenize(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        """Never asked for."""
        raise AssertionError

    def encode(self, batch: Sequence[EncodedText], *, prompt: str) -> list[Vector]:
        """Time passes."""
        self._began.append(self._name)
        self._clock[0] += self._seconds
        return []


def test_both_engines_are_timed_on_every_shape_and_take_turns() -> None:
    clock, began = [0.0], list[str]()
    engines = {
        name: SteppingEncoder(clock, seconds=seconds, name=name, began=began)
        for name, seconds in (("a", 2.0), ("b", 0.5))
    }
    found = list(compare(engines, clock=lambda: clock[0]))
    assert [(one.length, one.batch) for one in found] == [
        (length, batch) for length in LENGTHS for batch in BATCHES
    ]
    assert all(one.seconds == {"a": 2.0, "b": 0.5} for one in found)
    assert began[:8] == ["a", "b", "a", "b", "b", "a", "a", "b"]


def test_texts_differ_from_each_other_and_from_those_of_another_turn() -> None:
    def ids(start: int) -> Iterator[tuple[int, ...]]:
        return (tuple(text.ids) for text in texts(length=16, batch=8, start=start))

    made = [*ids(0), *ids(8)]
    assert len(set(made)) == 16
    assert {len(one) for one in made} == {16}
