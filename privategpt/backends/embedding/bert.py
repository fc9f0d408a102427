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
    from torch import Tensor

    from privategpt.backends.embedding.bert_forward import Forwarding, Layer, Linear, Weights
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
    """Runs a BERT on the processor. Any number of threads may use it at a time."""

    def __init__(
        self,
        *,
        config: BertConfig,
        dimensions: int,
        forward: Forwarding,
        reader: TextReader,
        prompts: Prompts,
    ) -> None:
        self._config = config
        self._dimensions = dimensions
        self._forward = forward
        self._reader = reader
        self._prompts = prompts

    @property
    def dimensions(self) -> int:
        """The width of the hidden state."""
        return self._dimensions

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
            ids = torch.tensor(rows)
            filling = round_rows(ids.numel()) - ids.numel()
            hidden = self._forward(ids, attended, filling).float()
            if self._config.pooling == "cls":
                pooled = hidden[:, 0]
            else:
                pooled = (hidden * mask[:, :, None]).sum(dim=1) / lengths[:, None]
            return unit_rows(pooled.numpy())


def round_rows(count: int) -> int:
    """The number of rows that a matrix of `count` rows is filled up to.

    oneDNN compiles a kernel for every shape that it meets, for 25 ms, and keeps it, with 3 MB;
    texts come in all lengths, and without this a server grew by a gigabyte. So there are some
    fifty shapes: steps of 8 rows for the smallest, of 64 from 512 rows on.
    """
    step = min(64, max(8, 1 << max(0, count.bit_length() - 4)))
    return -(-count // step) * step


def load_bert(folder: Path, *, config: BertConfig, dtype: Dtype, prompts: Prompts) -> BertEncoder:
    """Read weights and tokenizer of a model that `read_config` accepted."""
    import torch
    from safetensors import SafetensorError
    from safetensors import torch as safetensors

    from privategpt.backends.embedding.bert_forward import Forward, scripted

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
    forward = Forward(weights=weights, heads=config.heads, epsilon=config.layer_norm_epsilon)
    return BertEncoder(
        config=config,
        dimensions=int(weights.words.shape[1]),
        forward=scripted(forward),
        reader=reader,
        prompts=prompts,
    )


def _arrange(tensors: Mapping[str, Tensor], *, layers: int) -> Weights:
    from privategpt.backends.embedding.bert_forward import Linear, Weights

    norm = "embeddings.LayerNorm"
    # The type of the only segment is a constant, so it is added to the positions once.
    positions = tensors["embeddings.position_embeddings.weight"]
    segment = tensors["embeddings.token_type_embeddings.weight"][0]
    return Weights(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=positions + segment,
        norm=Linear(tensors[f"{norm}.weight"], tensors[f"{norm}.bias"]),
        layers=[_arrange_layer(tensors, f"encoder.layer.{n}") for n in range(layers)],
    )


def _arrange_layer(tensors: Mapping[str, Tensor], name: str) -> Layer:
    import torch

    from privategpt.backends.embedding.bert_forward import Layer, Linear

    def linear(part: str) -> Linear:
        return Linear(tensors[f"{name}.{part}.weight"], tensors[f"{name}.{part}.bias"])

    inputs = [linear(f"attention.self.{part}") for part in ("query", "key", "value")]
    return Layer(
        attention_in=Linear(
            torch.cat([part.weight for part in inputs]), torch.cat([part.bias for part in inputs])
        ),
        attention_out=linear("attention.output.dense"),
        attention_norm=linear("attention.output.LayerNorm"),
        expand=linear("intermediate.dense"),
        contract=linear("output.dense"),
        norm=linear("output.LayerNorm"),
    )
