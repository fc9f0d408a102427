"""The bundled model from an ONNX file, run by ONNX Runtime, as an `Encoder` of the product."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from privategpt.backends.embedding import bundled
from privategpt.backends.embedding.bert import read_config
from privategpt.backends.embedding.encoder import NO_PROMPTS, EncodedText, Prompts
from privategpt.backends.embedding.sentence_transformers import SentenceTransformersModel
from privategpt.backends.embedding.text_reader import TextReader
from privategpt.backends.embedding.tokenizer import load_fast_tokenizer
from privategpt.backends.embedding.vectors import unit_rows
from privategpt.backends.embedding.worker import EmbeddingWorker
from privategpt.domain.ports import Tokenizer, Vector

WIDTH = 384

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Of the files that exporters make of a BERT; the first output is the hidden state."""


class Session(Protocol):
    """What `onnxruntime.InferenceSession`, which has no annotations, is to us."""

    def run(
        self, output_names: None, input_feed: Mapping[str, NDArray[np.int64]]
    ) -> Sequence[NDArray[np.float32]]:
        """The outputs in the order of the file."""
        ...


class OnnxEncoder:
    """Pools the hidden state of `session` by the mean, as the bundled model wants it."""

    def __init__(self, *, session: Session, reader: TextReader) -> None:
        self._session = session
        self._reader = reader

    @property
    def dimensions(self) -> int:
        """The bundled model's."""
        return WIDTH

    @property
    def prompts(self) -> Prompts:
        """It has none."""
        return NO_PROMPTS

    @property
    def tokenizer(self) -> Tokenizer:
        """The bundled model's."""
        return self._reader.tokenizer

    def tokenize(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        """Token ids, cut to the window."""
        return self._reader.read(texts, prompt=prompt)

    def encode(self, batch: Sequence[EncodedText], *, prompt: str) -> list[Vector]:  # noqa: ARG002  the ids have it
        """Unit vectors."""
        lengths = np.array([len(text.ids) for text in batch], dtype=np.int64)
        mask = (np.arange(lengths.max(), dtype=np.int64) < lengths[:, None]).astype(np.int64)
        ids = np.zeros(mask.shape, dtype=np.int64)
        for row, text in enumerate(batch):
            ids[row, : len(text.ids)] = text.ids
        segments = np.zeros(mask.shape, dtype=np.int64)
        inputs: dict[str, NDArray[np.int64]] = dict(zip(INPUTS, (ids, mask, segments), strict=True))
        hidden = self._session.run(None, inputs)[0]
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / lengths[:, None]
        return unit_rows(pooled.astype(np.float32))


def load_onnx_encoder(file: Path, *, threads: int | None = None) -> OnnxEncoder:
    """The model in `file`, with the bundled model's tokenizer."""
    runtime = cast("Any", importlib.import_module("onnxruntime"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or 0  # 0: all cores
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return OnnxEncoder(session=cast("Session", session), reader=bundled_reader())


def bundled_reader() -> TextReader:
    """The bundled model's tokenizer and window."""
    folder = bundled.locate()
    config = read_config(folder)
    assert config is not None  # noqa: S101 - it is ours
    return TextReader(
        fast=load_fast_tokenizer(folder), max_tokens=config.max_tokens, prompts=NO_PROMPTS
    )


def load_onnx_model(file: Path, *, threads: int | None = None) -> SentenceTransformersModel:
    """The model in `file` as the product's services take it."""
    encoder = load_onnx_encoder(file, threads=threads)
    return SentenceTransformersModel(
        name=file.stem,
        fingerprint=f"onnx {bundled.file_sha256(file)}",
        encoder=encoder,
        worker=EmbeddingWorker(encoder=encoder, batch_size=32),
    )
