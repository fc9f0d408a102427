"""The script does what the Python that it was made of does."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from privategpt.backends.embedding.bert_forward import Forward, Layer, Linear, Weights, scripted

WIDTH, HEADS, WORDS, TOKENS = 8, 2, 30, 6


def _linear(out: int, into: int) -> Linear:
    return Linear(torch.randn(out, into), torch.randn(out))


def _norm() -> Linear:
    return Linear(torch.randn(WIDTH), torch.randn(WIDTH))


def _layer() -> Layer:
    return Layer(
        attention_in=_linear(3 * WIDTH, WIDTH),
        attention_out=_linear(WIDTH, WIDTH),
        attention_norm=_norm(),
        expand=_linear(4 * WIDTH, WIDTH),
        contract=_linear(WIDTH, 4 * WIDTH),
        norm=_norm(),
    )


@pytest.fixture(scope="module")
def forward() -> Forward:
    cast("Any", torch).manual_seed(1)  # its own annotation is half unknown
    weights = Weights(
        words=torch.randn(WORDS, WIDTH),
        positions=torch.randn(TOKENS, WIDTH),
        norm=_norm(),
        layers=[_layer(), _layer()],
    )
    return Forward(weights=weights, heads=HEADS, epsilon=1e-12)


@pytest.mark.parametrize("filling", [0, 3])
@pytest.mark.parametrize("lengths", [[6], [6, 6], [2, 5, 6]])
def test_the_script_and_its_python_agree(
    forward: Forward, lengths: list[int], filling: int
) -> None:
    ids = torch.arange(len(lengths) * TOKENS).remainder(WORDS).view(-1, TOKENS)
    read = torch.arange(TOKENS) < torch.tensor(lengths)[:, None]
    mask = None if bool(read.all()) else read[:, None, None, :]
    script = scripted(forward)
    for _ in range(3):  # it is compiled anew once it knows what it is given
        assert torch.equal(script(ids, mask, filling), forward(ids, mask, filling))


def test_what_fills_up_changes_nothing(forward: Forward) -> None:
    ids = torch.arange(2 * TOKENS).view(2, TOKENS)
    torch.testing.assert_close(forward(ids, None, 0), forward(ids, None, 5))


def test_what_is_masked_is_not_read(forward: Forward) -> None:
    ids = torch.arange(TOKENS).view(1, TOKENS)
    other = ids.clone()
    other[0, 4:] = 29
    mask = (torch.arange(TOKENS) < 4)[None, None, None, :]
    rows, others = forward(ids, mask, 0), forward(other, mask, 0)
    torch.testing.assert_close(rows[:, :4], others[:, :4])
    assert not torch.allclose(rows[:, 4:], others[:, 4:])
