"""The arithmetic of a BERT, in that part of Python that TorchScript reads.

As a script it runs from its first operation to its last without the interpreter's lock. Run by
Python it would ask for the lock a hundred times a batch, and wait each time for whoever serves
requests meanwhile.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor
from torch.nn import functional

Forwarding: TypeAlias = Callable[[Tensor, Tensor | None, int], Tensor]
"""`Forward.forward`, as whatever runs it."""


class Linear(NamedTuple):
    """Of a product, or of a norm."""

    weight: Tensor
    bias: Tensor


class Layer(NamedTuple):
    """One of the model's equal layers."""

    attention_in: Linear
    attention_out: Linear
    attention_norm: Linear
    expand: Linear
    contract: Linear
    norm: Linear


class Weights(NamedTuple):
    """All of them."""

    words: Tensor
    positions: Tensor
    norm: Linear
    layers: list[Layer]


class Forward(torch.nn.Module):
    """From token ids to the last hidden state."""

    weights: Weights  # the script would not know its names otherwise

    def __init__(self, *, weights: Weights, heads: int, epsilon: float) -> None:
        super().__init__()
        self.weights = weights
        self.heads = heads
        self.epsilon = epsilon

    def forward(self, ids: Tensor, mask: Tensor | None, filling: int) -> Tensor:
        """Texts × tokens × width, of `ids` that are texts × tokens.

        `mask` is true where a token is read, or None where all are. While it is worked on,
        `filling` rows are behind those of the tokens, which stand text after text.
        """
        texts, tokens = ids.shape
        rows = (self.weights.words[ids] + self.weights.positions[:tokens]).flatten(0, 1)
        rows = functional.pad(rows, [0, 0, 0, filling])
        rows = self.normalized(rows, self.weights.norm)
        for layer in self.weights.layers:
            mixed = self.attended(rows, layer, texts, tokens, mask)
            rows = self.normalized(rows + mixed, layer.attention_norm)
            wide = functional.gelu(applied(rows, layer.expand))
            rows = self.normalized(rows + applied(wide, layer.contract), layer.norm)
        return rows[: texts * tokens].view(texts, tokens, rows.shape[1])

    def attended(
        self, rows: Tensor, layer: Layer, texts: int, tokens: int, mask: Tensor | None
    ) -> Tensor:
        """Each token with what it learns of the others of its text."""
        count, width = texts * tokens, rows.shape[1]
        projected = applied(rows, layer.attention_in)[:count]
        three = projected.view(texts, tokens, 3, self.heads, width // self.heads)
        query, key, value = three.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(count, width)
        mixed = functional.pad(mixed, [0, 0, 0, rows.shape[0] - count])
        return applied(mixed, layer.attention_out)

    def normalized(self, rows: Tensor, norm: Linear) -> Tensor:
        """Layer norm."""
        return functional.layer_norm(rows, [rows.shape[1]], norm.weight, norm.bias, self.epsilon)


def applied(rows: Tensor, linear: Linear) -> Tensor:
    """The product."""
    return functional.linear(rows, linear.weight, linear.bias)


def scripted(forward: Forward) -> Forwarding:
    """The same without the interpreter."""
    with warnings.catch_warnings():
        # It is kept, though not worked on any more; what shall replace it needs a C++ compiler.
        warnings.simplefilter("ignore", DeprecationWarning)
        # The function's own annotation is half unknown.
        return cast("Forwarding", cast("Any", torch.jit).script(forward))
