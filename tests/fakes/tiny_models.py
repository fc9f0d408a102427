"""Small sentence-transformers models with random weights, made on the spot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from privategpt.backends.embedding import bundled

WIDTH = 32


def make_distilbert(folder: Path, *, prompts: dict[str, str] | None = None) -> Path:
    """A model that is no plain BERT, so that sentence-transformers has to run it."""
    import torch
    import transformers

    cast("Any", torch).manual_seed(7)
    config = cast("Any", transformers).DistilBertConfig(
        vocab_size=30522, dim=WIDTH, hidden_dim=WIDTH, n_layers=1, n_heads=2
    )
    cast("Any", transformers).DistilBertModel(config).save_pretrained(folder)
    _write_pipeline(folder, prompts=prompts, pooling="mean")
    return folder


def make_bert(
    folder: Path, *, pooling: str = "mean", prompts: dict[str, str] | None = None
) -> Path:
    """A BERT of one layer."""
    import torch
    import transformers

    cast("Any", torch).manual_seed(7)
    config = cast("Any", transformers).BertConfig(
        vocab_size=30522,
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    cast("Any", transformers).BertModel(config).save_pretrained(folder)
    _write_pipeline(folder, prompts=prompts, pooling=pooling)
    return folder


def _write_pipeline(folder: Path, *, prompts: dict[str, str] | None, pooling: str) -> None:
    source = bundled.locate()
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "modules.json"):
        shutil.copyfile(source / name, folder / name)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps(
            {
                "word_embedding_dimension": WIDTH,
                "pooling_mode_mean_tokens": pooling == "mean",
                "pooling_mode_cls_token": pooling == "cls",
            }
        )
    )
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))


def make_cross_encoder(folder: Path, *, labels: Sequence[str]) -> Path:
    """A BERT of one layer that reads two texts and scores `labels`."""
    import torch
    import transformers

    cast("Any", torch).manual_seed(7)
    config = cast("Any", transformers).BertConfig(
        vocab_size=30522,
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        # Far from the start, so that different texts get different scores.
        initializer_range=0.5,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
    )
    cast("Any", transformers).BertForSequenceClassification(config).save_pretrained(folder)
    source = bundled.locate()
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copyfile(source / name, folder / name)
    return folder
