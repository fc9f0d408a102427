"""ONNX files of the bundled model: exported, its operators fused, quantised in several ways.

Fused and quantised as Optimum and sentence-transformers do it, by ONNX Runtime's own tools:
weights to 8 bits per channel beforehand, activations per matrix while it runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evals.onnx_engine.encoder import INPUTS, WIDTH
from privategpt.backends.embedding import bundled

OPSET = 17
OUTPUT = "last_hidden_state"
HEADS = 12
_FLOAT = 1  # onnx.TensorProto.FLOAT


@dataclass(frozen=True, slots=True)
class Quantisation:
    """A way to make 8 bits of the model; `name` is the file's."""

    name: str
    operators: tuple[str, ...]
    contracting: bool = True
    """The second half of each feed-forward too, whose activations have the widest range."""


QUANTISATIONS = (
    Quantisation("int8", ("MatMul", "Attention", "EmbedLayerNormalization")),
    Quantisation("int8-but-contracting", ("MatMul", "Attention"), contracting=False),
)


def make_files(folder: Path) -> Iterator[Path]:
    """Write float32.onnx and one file for each quantisation."""
    folder.mkdir(parents=True, exist_ok=True)
    exported, fused = folder / "exported.onnx", folder / "float32.onnx"
    _export(exported)
    optimizer = cast("Any", importlib.import_module("onnxruntime.transformers.optimizer"))
    optimizer.optimize_model(
        str(exported), model_type="bert", num_heads=HEADS, hidden_size=WIDTH, opt_level=0
    ).save_model_to_file(str(fused))
    exported.unlink()
    yield fused
    for quantisation in QUANTISATIONS:
        yield _quantise(fused, quantisation)


def _export(file: Path) -> None:
    import torch
    import transformers

    class HiddenState(torch.nn.Module):
        """A BERT whose arguments have names, for the exporter passes them by place."""

        def __init__(self) -> None:
            super().__init__()
            self.bert = cast("Any", transformers).AutoModel.from_pretrained(
                bundled.locate(), attn_implementation="eager"
            )

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            named = dict(zip(INPUTS, inputs, strict=True))
            return cast("torch.Tensor", self.bert(**named).last_hidden_state)

    ids = torch.full((2, 16), 1000)
    axes = {0: "batch", 1: "sequence"}
    # The older exporter: the fusions know its patterns, not those of the newer one.
    cast("Any", torch.onnx).export(
        HiddenState().eval(),
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),
        str(file),
        dynamo=False,
        opset_version=OPSET,
        input_names=list(INPUTS),
        output_names=[OUTPUT],
        dynamic_axes=dict.fromkeys((*INPUTS, OUTPUT), axes),
    )


def _quantise(fused: Path, quantisation: Quantisation) -> Path:
    onnx = cast("Any", importlib.import_module("onnx"))
    tools = cast("Any", importlib.import_module("onnxruntime.quantization"))
    graph = onnx.load(str(fused)).graph
    shapes = {weights.name: tuple(weights.dims) for weights in graph.initializer}
    contracting = [
        node.name
        for node in graph.node
        if node.op_type == "MatMul" and shapes.get(node.input[1]) == (4 * WIDTH, WIDTH)
    ]
    file = fused.with_name(f"{quantisation.name}.onnx")
    tools.quantize_dynamic(
        str(fused),
        str(file),
        per_channel=True,
        weight_type=tools.QuantType.QInt8,
        op_types_to_quantize=list(quantisation.operators),
        nodes_to_exclude=[] if quantisation.contracting else contracting,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": _FLOAT},
    )
    return file
