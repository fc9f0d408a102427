"""Vectors of the evaluation's texts, kept in a cache file so that a run can be resumed."""

from __future__ import annotations

import asyncio
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from rich.progress import track

from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers
from privategpt.domain.ports import EmbeddingModel, Vector

BATCH_TEXTS = 256

EmbedTexts: TypeAlias = Callable[[Sequence[str]], Sequence[Vector]]


def bundled_model() -> EmbedTexts:
    """The product's own default embedding model, loaded as the server loads it."""
    model: EmbeddingModel = load_sentence_transformers()

    async def run(texts: Sequence[str]) -> Sequence[Vector]:
        return (await model.embed_passages(texts)).vectors

    runner = asyncio.Runner()
    return lambda texts: runner.run(run(texts))


class VectorCache:
    """Texts to unit vectors; what was embedded once is never embedded again."""

    def __init__(self, path: Path, *, load: Callable[[], EmbedTexts] = bundled_model) -> None:
        self._path = path
        self._load = load

    def vectors(self, texts: Iterable[str], *, label: str) -> Mapping[str, Vector]:
        """The vector of each distinct text; progress is shown under `label`."""
        wanted = {_key(text): text for text in texts}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path)
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, v BLOB)")
            known = _read(connection, wanted)
            missing = {key: text for key, text in wanted.items() if key not in known}
            if missing:
                self._embed(connection, missing, label)
                known = _read(connection, wanted)
        finally:
            connection.close()
        return {wanted[key]: vector for key, vector in known.items()}

    def _embed(
        self, connection: sqlite3.Connection, texts: Mapping[bytes, str], label: str
    ) -> None:
        embed = self._load()
        # Batches of like length: padding would otherwise cost most of the time.
        items = sorted(texts.items(), key=lambda item: len(item[1]))
        batches = [items[at : at + BATCH_TEXTS] for at in range(0, len(items), BATCH_TEXTS)]
        for batch in track(batches, description=f"embedding {label}"):
            rows = embed([text for _, text in batch])
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vector VALUES (?, ?)",
                    [(key, row.tobytes()) for (key, _), row in zip(batch, rows, strict=True)],
                )


def _read(connection: sqlite3.Connection, wanted: Mapping[bytes, str]) -> dict[bytes, Vector]:
    rows = connection.execute("SELECT key, v FROM vector")
    return {key: array("f", blob) for key, blob in rows if key in wanted}


def _key(text: str) -> bytes:
    return sha256(text.encode()).digest()
