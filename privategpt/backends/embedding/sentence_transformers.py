"""Any sentence-transformers model in this process: the bundled one, a folder, a name on the hub.

Nothing is fetched unless the operator names a model that is neither bundled nor a folder, and
then the usual variables of huggingface_hub (HF_HUB_OFFLINE, HF_HOME, HF_TOKEN) apply.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import httpx

from privategpt.backends.embedding import bundled
from privategpt.backends.embedding.bert import BertEncoder, load_bert, read_config, read_json
from privategpt.backends.embedding.cpu import Dtype, choose_dtype, read_cpuinfo
from privategpt.backends.embedding.encoder import EncodedText, Encoder, Prompts
from privategpt.backends.embedding.memory import bound_kernel_caches, release_unused, share_arenas
from privategpt.backends.embedding.processors import (
    bound_spinning,
    one_torch_thread,
    share_processors,
)
from privategpt.backends.embedding.text_reader import TextReader
from privategpt.backends.embedding.vectors import unit_rows
from privategpt.backends.embedding.worker import EmbeddingWorker
from privategpt.domain.errors import InvalidSettings
from privategpt.domain.ports import Embeddings, Tokenizer, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer as FastTokenizer

_PASSAGE_PROMPTS = ("document", "passage", "corpus")  # sentence-transformers' own order
_OTHER_RUNTIMES = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf"]
_LOADING_ERRORS = (OSError, ValueError, LookupError, ImportError, AttributeError, RuntimeError)
_FALLBACK_WINDOW = 512

BATCHES_AT_ONCE = 4
"""Where there are more processors, each batch has several: it must not wait too long for one."""


class SentenceTransformersModel:
    """An `EmbeddingModel` over a loaded `Encoder`."""

    def __init__(
        self, *, name: str, fingerprint: str, encoder: Encoder, worker: EmbeddingWorker
    ) -> None:
        self._name = name
        self._fingerprint = fingerprint
        self._encoder = encoder
        self._worker = worker

    @property
    def name(self) -> str:
        """As the operator wrote it, or the bundled model's."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """From the weights, pooling and prompts; not from the number type, which only rounds."""
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._encoder.dimensions

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own."""
        return self._encoder.tokenizer

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """Embed what is searched; text beyond the window is cut off."""
        return await self._worker.embed(texts, query=False)

    async def embed_query(self, text: str) -> Embeddings:
        """Embed what is searched for, ahead of waiting passages."""
        return await self._worker.embed([text], query=True)

    async def close(self) -> None:
        """Stop the thread."""
        await self._worker.close()


def load_sentence_transformers(
    model: str | None = None,
    *,
    dtype: Literal["auto", "float32", "bfloat16"] = "auto",
    batch_size: int = 32,
    threads: int | None = None,
    batches_at_once: int = BATCHES_AT_ONCE,
    query_prompt: str | None = None,
    passage_prompt: str | None = None,
) -> SentenceTransformersModel:
    """Load `model` (None: the bundled one). Takes seconds and blocks: call it from a thread.

    At most `batches_at_once` are embedded side by side, if the model allows it. A prompt of None is
    the model's own, as its configuration has it; "" is none.

    Raises `InvalidSettings` where there is no such model or it cannot be loaded.
    """
    bound_kernel_caches()
    bound_spinning()
    share_arenas()
    folder = bundled.locate() if model is None else _find_folder(model)
    weights = bundled.WEIGHTS_SHA256 if model is None else None
    number_type = choose_dtype(dtype, cpuinfo=read_cpuinfo())
    own = read_prompts(folder)
    prompts = Prompts(
        query=own.query if query_prompt is None else query_prompt,
        passage=own.passage if passage_prompt is None else passage_prompt,
    )
    with one_torch_thread() as all_threads:
        encoder = _load_encoder(folder, dtype=number_type, prompts=prompts)
    processors = all_threads if threads is None else threads
    workers = min(processors, batches_at_once) if isinstance(encoder, BertEncoder) else 1
    return SentenceTransformersModel(
        name=bundled.NAME if model is None else _display_name(model),
        fingerprint=make_fingerprint(folder_identity(folder, weights_sha256=weights), encoder),
        encoder=encoder,
        worker=EmbeddingWorker(
            encoder=encoder,
            batch_size=batch_size,
            threads=workers,
            prepare=partial(share_processors, processors, workers),
            tidy=release_unused,
        ),
    )


def _display_name(model: str) -> str:
    """A hub name as it is; of a folder only its own name."""
    return Path(model).name if Path(model).expanduser().is_dir() else model


def _find_folder(model: str) -> Path:
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise InvalidSettings(f"Setting 'embedding.model': there is no folder {str(folder)!r}")
    return _fetch(model if "/" in model else f"sentence-transformers/{model}")


def _fetch(repository: str) -> Path:
    """The hub's files of a model, from the cache where they are; nothing that torch cannot use."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    # The function's own annotation is half unknown.
    fetch = cast("Callable[..., str]", cast("Any", huggingface_hub).snapshot_download)
    try:
        folder = Path(fetch(repository, ignore_patterns=[*_OTHER_RUNTIMES, "*.bin"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(fetch(repository, ignore_patterns=_OTHER_RUNTIMES))
    except (HfHubHTTPError, httpx.HTTPError, OSError, ValueError) as error:
        raise InvalidSettings(
            f"The embedding model {repository!r} cannot be fetched: {error}"
        ) from error
    return folder


def read_prompts(folder: Path) -> Prompts:
    """The prompts of a model's own config_sentence_transformers.json."""
    config = read_json(folder / "config_sentence_transformers.json")
    return choose_prompts(config.get("prompts") or {}, config.get("default_prompt_name"))


def choose_prompts(prompts: dict[str, str], default_name: str | None) -> Prompts:
    """Which of a model's named prompts go before queries and passages."""
    default = prompts.get(default_name or "", "")
    passage = next((prompts[name] for name in _PASSAGE_PROMPTS if name in prompts), default)
    return Prompts(query=prompts.get("query", default), passage=passage)


def folder_identity(folder: Path, *, weights_sha256: str | None = None) -> str:
    """A digest of what decides the vectors: weights, architecture, pooling, tokenizer.

    `weights_sha256` spares reading weights that are known.
    """
    digest = hashlib.sha256()
    for file in sorted(_identity_files(folder)):
        known = weights_sha256 if file.name == bundled.WEIGHTS else None
        digest.update(f"{file.relative_to(folder)}\0".encode())
        digest.update((known or bundled.file_sha256(file)).encode())
    return f"sha256:{digest.hexdigest()[:32]}"


def _identity_files(folder: Path) -> Iterator[Path]:
    weights = list(folder.rglob("*.safetensors")) or list(folder.rglob("*.bin"))
    yield from weights
    for pattern in ("modules.json", "sentence_bert_config.json", "tokenizer.json"):
        yield from folder.glob(pattern)
    yield from folder.rglob("config.json")


def make_fingerprint(identity: str, encoder: Encoder) -> str:
    """Identity, dimensions and prompts in one line."""
    prompts = json.dumps([encoder.prompts.query, encoder.prompts.passage])
    return f"sentence-transformers {identity} {encoder.dimensions} {prompts}"


def _load_encoder(folder: Path, *, dtype: Dtype, prompts: Prompts) -> Encoder:
    config = read_config(folder)
    if config is not None and not _has_accelerator():
        return load_bert(folder, config=config, dtype=dtype, prompts=prompts)
    return _ModuleEncoder(model=_load_modules(folder, dtype=dtype), prompts=prompts)


def _has_accelerator() -> bool:
    import torch

    return torch.cuda.is_available() or torch.backends.mps.is_available()


class _Module(Protocol):
    """What `SentenceTransformer` is to us; its own annotations leave much unknown."""

    @property
    def tokenizer(self) -> object: ...
    @property
    def max_seq_length(self) -> int | None: ...
    def get_embedding_dimension(self) -> int | None: ...
    def encode(self, inputs: list[str], **options: Any) -> NDArray[np.float32]: ...


def _load_modules(folder: Path, *, dtype: Dtype) -> _Module:
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": getattr(torch, dtype)},
        )
    except (*_LOADING_ERRORS, SafetensorError) as error:
        raise InvalidSettings(
            f"Setting 'embedding.model': {folder.name!r} cannot be loaded: {error}"
        ) from error
    return cast("_Module", model)


class _ModuleEncoder:
    """Any pipeline of sentence-transformers modules."""

    def __init__(self, *, model: _Module, prompts: Prompts) -> None:
        self._model = model
        self._prompts = prompts
        self._reader = TextReader(
            fast=_fast_tokenizer(model),
            max_tokens=model.max_seq_length or _FALLBACK_WINDOW,
            prompts=prompts,
        )

    @property
    def dimensions(self) -> int:
        return cast("int", self._model.get_embedding_dimension())

    @property
    def prompts(self) -> Prompts:
        return self._prompts

    @property
    def tokenizer(self) -> Tokenizer:
        return self._reader.tokenizer

    def tokenize(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        return self._reader.read(texts, prompt=prompt)

    def encode(self, batch: Sequence[EncodedText], *, prompt: str) -> list[Vector]:
        rows = self._model.encode(
            [text.text for text in batch],
            prompt=prompt or None,
            batch_size=len(batch),
            show_progress_bar=False,
        )
        return unit_rows(rows.astype("float32"))


def _fast_tokenizer(model: _Module) -> FastTokenizer:
    from tokenizers import Tokenizer as Fast

    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(tokenizer, Fast):
        raise InvalidSettings("The embedding model has no fast tokenizer, which chunking needs")
    return tokenizer
