"""The product's embedding model with a memory on disk: what it once embedded is only read again."""

from __future__ import annotations

import asyncio
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from privategpt.domain.ports import EmbeddingModel, Embeddings, Tokenizer, Vector


class RememberingModel:
    """An `EmbeddingModel` that asks another only for texts it has not seen.

    It is made with an open connection, which it closes. Token counts are of the new texts only.
    """

    def __init__(self, model: EmbeddingModel, *, memory: sqlite3.Connection) -> None:
        self._model = model
        self._memory = memory

    @property
    def name(self) -> str:
        """The other model's."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """The other model's."""
        return self._model.fingerprint

    @property
    def dimensions(self) -> int:
        """The other model's."""
        return self._model.dimensions

    @property
    def tokenizer(self) -> Tokenizer:
        """The other model's."""
        return self._model.tokenizer

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """Read what is known, embed the rest."""
        known = self._recall(texts, kind="passage")
        missing = list({text: None for text in texts if text not in known})
        tokens = 0
        if missing:
            made = await self._model.embed_passages(missing)
            new = dict(zip(missing, made.vectors, strict=True))
            self._remember(new, kind="passage")
            known, tokens = known | new, made.tokens
        return Embeddings(vectors=tuple(known[text] for text in texts), tokens=tokens)

    async def embed_query(self, text: str) -> Embeddings:
        """Read it, or embed it."""
        known = self._recall([text], kind="query")
        if text in known:
            return Embeddings(vectors=(known[text],), tokens=0)
        made = await self._model.embed_query(text)
        self._remember({text: made.vectors[0]}, kind="query")
        return made

    async def learn_queries(self, texts: Sequence[str], *, done: Callable[[int], None]) -> None:
        """Embed the queries that are new, many at once; `done` is told how many each time."""
        for start in range(0, len(texts), 64):
            batch = texts[start : start + 64]
            await asyncio.gather(*(self.embed_query(text) for text in batch))
            done(len(batch))

    async def close(self) -> None:
        """Close the other model and the memory."""
        self._memory.close()
        await self._model.close()

    def _recall(self, texts: Sequence[str], *, kind: str) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for text in texts:
            row = self._memory.execute(
                "SELECT vector FROM vector WHERE key = ?", (self._key(text, kind),)
            ).fetchone()
            if row is not None:
                found[text] = array("f", row[0])
        return found

    def _remember(self, vectors: dict[str, Vector], *, kind: str) -> None:
        with self._memory:
            self._memory.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?)",
                [(self._key(text, kind), vector.tobytes()) for text, vector in vectors.items()],
            )

    def _key(self, text: str, kind: str) -> bytes:
        return sha256("\0".join((self.fingerprint, kind, text)).encode()).digest()


def open_memory(path: Path) -> sqlite3.Connection:
    """The memory in the file `path`, made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, vector BLOB)")
    return connection
