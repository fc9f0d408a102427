"""The BERT family on torch alone: MiniLM, bge, e5, gte and whatever shares their plan.

sentence-transformers would do the same arithmetic, but importing it takes four seconds and
200 MB more than torch (scikit-learn, distributed tensors, trainers), which is most of the time
in which our server has to be ready. A model is read here only if its own configuration says that
it is exactly this architecture (`read_config`); the tests compare the vectors of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from privategpt.backends.embedding.encoder import EncodedText, Prompts
from privategpt.backends.embedding.text_reader import TextReader
from privategpt.backends.embedding.tokenizer import load_fast_tokenizer
from privategpt.backends.embedding.vectors import unit_rows
from privategpt.domain.errors import InvalidSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from privategpt.backends.embedding.cpu import Dtype
    from privategpt.domain.ports import Tokenizer, Vector

WEIGHTS = "model.safetensors"
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_POOLING_MODES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The numbers of a BERT that its weights do not tell."""

    heads: int
    layers: int
    layer_norm_epsilon: float
    pad_token_id: int
    max_tokens: int
    pooling: Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_in: _Linear
    attention_out: _Linear
    attention_norm: _Linear
    expand: _Linear
    contract: _Linear
    norm: _Linear


@dataclass(frozen=True, slots=True)
class _Weights:
    words: Tensor
    positions: Tensor
    norm: _Linear
    layers: tuple[_Layer, ...]


def read_config(folder: Path) -> BertConfig | None:
    """The configuration of a model that this module can run; None for any other."""
    config = read_json(folder / "config.json")
    pooling = _read_pooling(folder)
    limits = read_json(folder / "sentence_bert_config.json")
    plain = (
        config.get("model_type") == "bert"
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and not limits.get("do_lower_case")
        and (folder / WEIGHTS).is_file()
        and (folder / "tokenizer.json").is_file()
    )
    if not plain or pooling is None:
        return None
    positions = int(config["max_position_embeddings"])
    return BertConfig(
        heads=int(config["num_attention_heads"]),
        layers=int(config["num_hidden_layers"]),
        layer_norm_epsilon=float(config.get("layer_norm_eps", 1e-12)),
        pad_token_id=int(config.get("pad_token_id") or 0),
        max_tokens=min(int(limits.get("max_seq_length") or positions), positions),
        pooling=pooling,
    )


def _read_pooling(folder: Path) -> Literal["mean", "cls"] | None:
    modules = cast("list[dict[str, str]]", read_json(folder / "modules.json", empty=[]))
    if [module["type"].rsplit(".", 1)[-1] for module in modules] not in _MODULES:
        return None
    config = read_json(folder / modules[1]["path"] / "config.json")
    chosen = {name for name, value in config.items() if name.startswith("pooling_mode_") and value}
    if config.get("include_prompt") is False or len(chosen) != 1:
        return None
    return cast("Literal['mean', 'cls'] | None", _POOLING_MODES.get(chosen.pop()))


def read_json(path: Path, *, empty: Any = None) -> Any:
    """A model's own settings file, or `empty` (None: {}) if it has none; `InvalidSettings`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {} if empty is None else empty
    except ValueError as error:
        raise InvalidSettings(f"{path.name!r} of the embedding model is not JSON") from error


class BertEncoder:
    """Runs a BERT on the processor. `encode` may be called from one thread at a time."""

    def __init__(
        self, *, config: BertConfig, weights: _Weights, reader: TextReader, prompts: Prompts
    ) -> None:
        self._config = config
        self._weights = weights
        self._reader = reader
        self._prompts = prompts

    @property
    def dimensions(self) -> int:
        """The width of the hidden state."""
        return int(self._weights.words.shape[1])

    @property
    def prompts(self) -> Prompts:
        """The model's own."""
        return self._prompts

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own."""
        return self._reader.tokenizer

    def tokenize(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        """Token ids, cut to the window."""
        return self._reader.read(texts, prompt=prompt)

    def encode(self, batch: Sequence[EncodedText], *, prompt: str) -> list[Vector]:  # noqa: ARG002  the ids have it
        """Unit vectors; pooled in float32 whatever the weights are."""
        import torch

        longest = max(len(text.ids) for text in batch)
        pad = self._config.pad_token_id
        rows = [[*text.ids, *[pad] * (longest - len(text.ids))] for text in batch]
        lengths = torch.tensor([len(text.ids) for text in batch])
        with torch.inference_mode():
            mask = torch.arange(longest) < lengths[:, None]
            attended = None if bool(mask.all()) else mask[:, None, None, :]
            hidden = self._hidden(torch.tensor(rows), attended).float()
            if self._config.pooling == "cls":
                pooled = hidden[:, 0]
            else:
                pooled = (hidden * mask[:, :, None]).sum(dim=1) / lengths[:, None]
            return unit_rows(pooled.numpy())

    def _hidden(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Rows of all tokens, text after text, filled up to a number that `round_rows` allows."""
        from torch.nn import functional

        weights = self._weights
        hidden = weights.words[ids] + weights.positions[: ids.shape[1]]
        rows = hidden.flatten(0, 1)
        rows = functional.pad(rows, (0, 0, 0, round_rows(len(rows)) - len(rows)))
        rows = self._normalize(rows, weights.norm)
        for layer in weights.layers:
            rows = self._normalize(
                rows + self._attend(rows, layer, ids.shape, mask), layer.attention_norm
            )
            rows = self._normalize(rows + _feed_forward(rows, layer), layer.norm)
        return rows[: ids.numel()].view(*ids.shape, -1)

    def _attend(
        self, rows: Tensor, layer: _Layer, shape: torch.Size, mask: Tensor | None
    ) -> Tensor:
        from torch.nn import functional

        texts, tokens = shape
        width, heads = rows.shape[1], self._config.heads
        projected = _apply(rows, layer.attention_in)[: texts * tokens]
        query, key, value = projected.view(texts, tokens, 3, heads, width // heads).permute(
            2, 0, 3, 1, 4
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(texts * tokens, width)
        mixed = functional.pad(mixed, (0, 0, 0, len(rows) - len(mixed)))
        return _apply(mixed, layer.attention_out)

    def _normalize(self, hidden: Tensor, norm: _Linear) -> Tensor:
        from torch.nn import functional

        epsilon = self._config.layer_norm_epsilon
        return functional.layer_norm(hidden, hidden.shape[-1:], norm.weight, norm.bias, epsilon)


def round_rows(count: int) -> int:
    """The number of rows that a matrix of `count` rows is filled up to.

    oneDNN compiles a kernel for every shape that it meets, for 25 ms, and keeps it, with 3 MB;
    texts come in all lengths, and without this a server grew by a gigabyte. So there are some
    fifty shapes: steps of 8 rows for the smallest, of 64 from 512 rows on.
    """
    step = min(64, max(8, 1 << max(0, count.bit_length() - 4)))
    return -(-count // step) * step


def _feed_forward(hidden: Tensor, layer: _Layer) -> Tensor:
    from torch.nn import functional

    return _apply(functional.gelu(_apply(hidden, layer.expand)), layer.contract)


def _apply(hidden: Tensor, linear: _Linear) -> Tensor:
    from torch.nn import functional

    return functional.linear(hidden, linear.weight, linear.bias)


def load_bert(folder: Path, *, config: BertConfig, dtype: Dtype, prompts: Prompts) -> BertEncoder:
    """Read weights and tokenizer of a model that `read_config` accepted."""
    import torch
    from safetensors import SafetensorError
    from safetensors import torch as safetensors

    number_type = getattr(torch, dtype)
    try:
        # The function's own annotation is half unknown.
        stored: dict[str, Tensor] = cast("Any", safetensors).load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise InvalidSettings(f"The weights of {folder.name!r} cannot be read") from error
    tensors = {
        name.removeprefix("bert."): tensor.to(number_type)
        for name, tensor in stored.items()
        if tensor.is_floating_point()
    }
    try:
        weights = _arrange(tensors, layers=config.layers)
    except KeyError as error:
        raise InvalidSettings(
            f"The weights of {folder.name!r} have no {error.args[0]!r}"
        ) from error
    reader = TextReader(
        fast=load_fast_tokenizer(folder), max_tokens=config.max_tokens, prompts=prompts
    )
    return BertEncoder(config=config, weights=weights, reader=reader, prompts=prompts)


def _arrange(tensors: Mapping[str, Tensor], *, layers: int) -> _Weights:
    def linear(name: str) -> _Linear:
        return _Linear(tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    # The type of the only segment is a constant, so it is added to the positions once.
    positions = tensors["embeddings.position_embeddings.weight"]
    segment = tensors["embeddings.token_type_embeddings.weight"][0]
    return _Weights(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=positions + segment,
        norm=linear("embeddings.LayerNorm"),
        layers=tuple(_arrange_layer(tensors, f"encoder.layer.{n}") for n in range(layers)),
    )


def _arrange_layer(tensors: Mapping[str, Tensor], name: str) -> _Layer:
    import torch

    def linear(part: str) -> _Linear:
        return _Linear(tensors[f"{name}.{part}.weight"], tensors[f"{name}.{part}.bias"])

    inputs = [linear(f"attention.self.{part}") for part in ("query", "key", "value")]
    return _Layer(
        attention_in=_Linear(
            torch.cat([part.weight for part in inputs]), torch.cat([part.bias for part in inputs])
        ),
        attention_out=linear("attention.output.dense"),
        attention_norm=linear("attention.output.LayerNorm"),
        expand=linear("intermediate.dense"),
        contract=linear("output.dense"),
        norm=linear("output.LayerNorm"),
    )
