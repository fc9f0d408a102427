"""The bare engines, in this process: what a row is compared with.

They are the ones that the server uses, loaded as the server loads them, so that the difference
is what lies between the engine and the client: HTTP, JSON, the state store and our own code.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from benchmarks.bare_index import BareIndex, open_copy
from privategpt.backends.embedding import bundled
from privategpt.backends.embedding.cpu import choose_dtype, read_cpuinfo
from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers
from privategpt.backends.llm.bundled_model import NAME, locate_bundled_model
from privategpt.backends.llm.llama_cpp import DEFAULT_CONTEXT_TOKENS, processors
from privategpt.backends.llm.llama_process import LlamaOptions, start_process
from privategpt.backends.llm.openai_compatible import OpenAICompatibleModel
from privategpt.domain.ports import EmbeddingModel
from privategpt.settings import Settings
from privategpt.wiring import OpenLibrary, open_library
from privategpt.wiring.engines import quantization_of

BATCH_SIZE = 32


@dataclass(frozen=True, slots=True)
class BareLlama:
    """A llama.cpp server like the one that belongs to ours; `model` counts tokens with it."""

    url: str
    api_key: str
    model: OpenAICompatibleModel


@dataclass(frozen=True, slots=True)
class Engines:
    """All of them. `library` is a copy of the server's, to know what the server would do.

    `model` is the embedding model by itself: one batch after the other, each operation on all
    processors, as whoever calls a model has it.
    """

    library: OpenLibrary
    index: BareIndex
    llama: BareLlama
    model: EmbeddingModel

    @property
    def embedding(self) -> EmbeddingModel:
        """The model with batches side by side, as the server runs it."""
        return self.library.embedding


@asynccontextmanager
async def open_engines(settings: Settings, library_dir: Path) -> AsyncGenerator[Engines]:
    """Open all engines over copies of `library_dir`, which no process has open."""
    library_copy, index_copy = (
        library_dir.with_name(f"{library_dir.name}-{use}") for use in ("library", "index")
    )
    await asyncio.to_thread(shutil.copytree, library_dir, library_copy)
    codes = quantization_of(settings.vectors)
    index = await asyncio.to_thread(
        open_copy, library_dir / "vectors", index_copy, quantization=codes
    )
    model = await asyncio.to_thread(load_sentence_transformers, batches_at_once=1)
    try:
        async with (
            open_library(at(settings, library_copy)) as library,
            bare_llama(settings) as llama,
        ):
            yield Engines(library, index, llama, model)
    finally:
        await model.close()
        index.close()


def at(settings: Settings, data_dir: Path) -> Settings:
    """The same settings over another data folder."""
    server = settings.server.model_copy(update={"data_dir": data_dir})
    return settings.model_copy(update={"server": server})


@asynccontextmanager
async def bare_llama(settings: Settings) -> AsyncGenerator[BareLlama]:
    """llama.cpp's own server, with the options that ours gives it."""
    options = LlamaOptions(
        model_path=settings.llm.model_path or locate_bundled_model(),
        alias=NAME,
        context_tokens=settings.llm.context_tokens or DEFAULT_CONTEXT_TOKENS,
        slots=settings.llm.slots,
        threads=settings.llm.threads or max(1, processors() - 1),
        prompt_threads=settings.llm.threads or processors(),
    )
    process = await start_process(options)
    model = OpenAICompatibleModel(
        base_url=f"{process.url}/v1", model=options.alias, api_key=process.api_key
    )
    try:
        await model.learn()
        yield BareLlama(process.url, process.api_key, model)
    finally:
        await model.close()
        await process.stop()


class _SentenceTransformer(Protocol):
    def encode(
        self, inputs: Sequence[str], *, batch_size: int, show_progress_bar: bool
    ) -> object: ...


class Peer:
    """sentence-transformers' own `encode` on the bundled model, as its users call it."""

    def __init__(self) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        cast("Any", logging).disable_progress_bar()
        dtype = getattr(torch, choose_dtype("auto", cpuinfo=read_cpuinfo()))
        self._model = cast(
            "_SentenceTransformer",
            SentenceTransformer(
                str(bundled.locate()), local_files_only=True, model_kwargs={"dtype": dtype}
            ),
        )

    def encode(self, texts: Sequence[str]) -> object:
        """All of them, in its own batches; blocks."""
        return self._model.encode(list(texts), batch_size=BATCH_SIZE, show_progress_bar=False)
