"""A folder with one Qdrant Edge shard in it, and every call to the engine; all of it blocks.

What is known of the engine (qdrant-edge-py 0.9), each measured here:

- `update` appends to a memory-mapped WAL: it survives `kill -9`, but only `flush` calls fsync.
  So a write here is an update and a flush, and what was acknowledged survives a power cut too.
- The WAL is cut off by whole 32 MB segments and so stays near 100 MB on disk.
- A deleted point is never found again, but its vectors stay on disk and in the memory map until
  `optimize` (vacuum from 20 % deleted on): with 384 dimensions about 2.3 kB a point.
- Every call holds the GIL to its end, so that no other thread runs: at 20,000 points a search 1 to
  2 ms, eight in one call 6, a count 2, 256 points stored 8; with more points all but the last take
  longer. `optimize` does so for 12 s at 40,000 points and so never runs in the serving process:
  `optimize_folder` wants a folder that no process has open.
- Opened with another quantization, it writes the new codes when it is optimized; what is written
  until then still gets the old ones.
- Its memory maps are files with holes, which the disk fills in only where they are written. What
  is mapped counts as resident once it was touched; see `pages`.
- The engine raises bare `Exception`s and tells causes apart in their text only.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as qe

from privategpt.backends.durable import make_durable
from privategpt.backends.vectors.layout import (
    NO_CODES,
    REBUILD,
    Layout,
    opened_as,
    read_layout,
    write_layout,
)
from privategpt.backends.vectors.pages import release_pages
from privategpt.backends.vectors.points import DENSE, INDEXED_KEYS, TENANT, WORDS
from privategpt.backends.vectors.quantization import Quantization, edge_config
from privategpt.domain.errors import (
    EngineFailed,
    EngineUnavailable,
    FolderInUse,
)

ROOM_BYTES = 128 * 1024 * 1024
"""Less is a full disk: a write to a memory map that finds none ends the process (SIGBUS)."""

RELEASED_EVERY = 64
"""Engine calls that write, up to 256 points each, after which the pages that they touched are let
go: 4 ms of processor time at 100,000 points."""

_DATATYPES = {
    "float16": qe.VectorStorageDatatype.Float16,
    "float32": qe.VectorStorageDatatype.Float32,
}


class ShardFolder:
    """An open shard; safe to call from many threads, with one writer at a time."""

    def __init__(self, shard: qe.EdgeShard, path: Path, layout: Layout) -> None:
        self._shard: qe.EdgeShard | None = shard
        self._path = path
        self._layout = layout
        self._writing = threading.Lock()
        self._written = 0

    @property
    def quantization(self) -> Quantization:
        """Which codes the vectors have."""
        return self._layout.quantization

    @property
    def is_scanned(self) -> bool:
        """True where a search by meaning reads every vector: there is no graph, nor are there
        codes. A shard has one segment until it is optimized for the first time."""
        shard = self._open_shard()
        with _engine_errors():
            return self.quantization == NO_CODES and shard.info().segments_count == 1

    def query_batch(self, requests: Sequence[qe.QueryRequest]) -> list[list[qe.ScoredPoint]]:
        """For every request the points that answer it, best first; planned as one.

        Requests that stand side by side and differ in nothing but their vector are scored
        together: eight of them cost no more than two.
        """
        shard = self._open_shard()
        with _engine_errors():
            return shard.query_batch(qe.QueryBatchRequest(list(requests)))

    def payloads(self, point_ids: Sequence[UUID], key: str) -> dict[UUID, Any]:
        """What the points that are still there have under `key`."""
        shard = self._open_shard()
        with _engine_errors():
            found = shard.retrieve(list(point_ids), with_payload=[key], with_vector=False)
        return {UUID(str(one.id)): (one.payload or {}).get(key) for one in found}

    def count(self, where: qe.Filter | None) -> int:
        """How many points match, exactly."""
        shard = self._open_shard()
        with _engine_errors():
            return shard.count(qe.CountRequest(exact=True, filter=where))

    def count_by(self, key: str) -> dict[str, int]:
        """For every value of an indexed payload key, how many points have it, exactly."""
        shard = self._open_shard()
        with _engine_errors():
            limit = max(shard.info().points_count, 1)
            found = shard.facet(qe.FacetRequest(key=key, limit=limit, exact=True))
            # A value that only deleted points had is still listed, with a count of 0.
            return {str(hit.value): hit.count for hit in found.hits if hit.count}

    def write(self, operations: Sequence[qe.UpdateOperation]) -> None:
        """Apply the operations in order; they are on disk when this returns."""
        _require_room(self._path)
        with self._writing:
            shard = self._open_shard()
            with _engine_errors():
                for operation in operations:
                    shard.update(operation)
                shard.flush()
            self._release_written(len(operations))

    def _release_written(self, operations: int) -> None:
        self._written += operations
        if self._written >= RELEASED_EVERY:
            self._written = 0
            release_pages(self._path)

    def clear(self) -> None:
        """Replace the shard by an empty one. A search meanwhile raises `EngineUnavailable`."""
        with self._writing:
            shard, self._shard = self._shard, None
            if shard is not None:
                with _engine_errors():
                    _close(shard)
            _replace_folder(self._path, self._layout)
            self._shard = _load(self._path)

    def check(self) -> None:
        """Return if the engine answers."""
        shard = self._open_shard()
        with _engine_errors():
            shard.info()

    def close(self) -> None:
        """Flush and release the folder; closing twice is no error."""
        with self._writing:
            shard, self._shard = self._shard, None
            if shard is not None:
                with _engine_errors():
                    shard.flush()
                    _close(shard)

    def _open_shard(self) -> qe.EdgeShard:
        shard = self._shard
        if shard is None:
            raise EngineUnavailable("The vector index is closed or being rebuilt")
        return shard


def open_shard(
    path: Path, *, dimensions: int, quantization: Quantization = NO_CODES, replace: bool = False
) -> ShardFolder:
    """Open the shard in the folder `path`, or make one there.

    `replace` drops what the folder held. One of another quantization is opened as it is: only
    `optimize_folder` writes other codes. Raises `FolderInUse`, `EmbeddingModelChanged` where the
    shard has other dimensions or word weights, `EngineFailed` where its files are damaged.
    """
    layout = Layout(dimensions, quantization)
    _remove_leftovers(path)
    if not _has_content(path):
        _replace_folder(path, layout)
    elif replace:
        _refuse_if_in_use(path)
        _replace_folder(path, layout)
    else:
        layout = opened_as(path, layout)
    shard = _load(path)
    # To be opened it was read from beginning to end; a search needs a third of it.
    release_pages(path)
    return ShardFolder(shard, path, layout)


def _require_room(path: Path) -> None:
    if shutil.disk_usage(path).free < ROOM_BYTES:
        raise EngineUnavailable("The vector index cannot be written: the disk is full")


def optimize_folder(path: Path, *, quantization: Quantization | None = None) -> bool:
    """Build the search graph, drop deleted points and write the codes of another quantization;
    True if there was anything to do.

    For the command line: blocks every thread of the process while it runs. Raises `FolderInUse`
    where a server has the folder open.
    """
    if not _has_content(path):
        return False
    layout = read_layout(path)
    if quantization is None or quantization == layout.quantization:
        return _optimize(_load(path))
    layout = replaced(layout, quantization=quantization)
    _optimize(_load(path, _config(layout)))
    # After the codes: a shard that has some and is asked without them answers as well.
    write_layout(path, layout)
    return True


def _optimize(shard: qe.EdgeShard) -> bool:
    with _engine_errors():
        optimized = shard.optimize()
        shard.flush()
        shard.close()
    return optimized


def _load(path: Path, config: qe.EdgeConfig | None = None) -> qe.EdgeShard:
    try:
        return qe.EdgeShard.load(str(path), config)
    except Exception as error:
        _raise_unless_vendor(error)
        # The engine locks its WAL and has no error class for it; the lock dies with its process.
        if "WouldBlock" in str(error):
            raise FolderInUse(
                f"Another process has the vector index {path.name!r} open; stop it first"
            ) from error
        raise EngineFailed(f"The vector index cannot be read; {REBUILD}") from error


def _replace_folder(path: Path, layout: Layout) -> None:
    """Put an empty shard at `path`, whole or not at all: it is made beside it and renamed."""
    fresh, old = _leftovers(path)
    try:
        _remove_leftovers(path)
        fresh.mkdir(parents=True, mode=0o700)
        _require_room(fresh)
        _create(fresh, layout)
        if path.exists():
            path.rename(old)
        fresh.rename(path)
        make_durable(path.parent)
        _remove_leftovers(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EngineFailed(f"The vector index cannot be written: {reason}") from error


def _create(path: Path, layout: Layout) -> None:
    with _engine_errors():
        shard = qe.EdgeShard.create(str(path), _config(layout))
        for key in INDEXED_KEYS:
            schema = qe.KeywordIndexParams(is_tenant=key == TENANT)
            shard.update(qe.UpdateOperation.create_field_index(key, schema))
        shard.flush()
        shard.close()
    write_layout(path, layout)


def _config(layout: Layout) -> qe.EdgeConfig:
    codes = edge_config(layout.quantization)
    dense = qe.EdgeVectorParams(
        size=layout.dimensions,
        distance=qe.Distance.Cosine,
        datatype=_DATATYPES[layout.precision],
        quantization_config=codes,
        # Where codes are searched, only the vectors of the best are read.
        memory=None if codes is None else qe.Memory.Cold,
    )
    return qe.EdgeConfig(
        vectors={DENSE: dense},
        sparse_vectors={WORDS: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        wal_enabled=True,
    )


def _refuse_if_in_use(path: Path) -> None:
    try:
        shard = _load(path)
    except EngineFailed:
        return  # damaged files are what a rebuild is for
    with _engine_errors():
        shard.close()


def _has_content(path: Path) -> bool:
    return path.is_dir() and any(path.iterdir())


def _leftovers(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.new"), path.with_name(f"{path.name}.old")


def _remove_leftovers(path: Path) -> None:
    for leftover in _leftovers(path):
        if leftover.exists():
            shutil.rmtree(leftover)


def _close(shard: qe.EdgeShard) -> None:
    """Once the searches that still read it have ended: until then the engine calls it borrowed."""
    while True:
        try:
            shard.close()
        except RuntimeError as error:
            if not _is_borrowed(error):
                raise
            time.sleep(0.001)
        else:
            return


def _is_borrowed(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and "borrowed" in str(error)


@contextmanager
def _engine_errors() -> Generator[None]:
    try:
        yield
    except Exception as error:
        if _is_borrowed(error):
            raise EngineUnavailable("The vector index is being closed or rebuilt") from error
        _raise_unless_vendor(error)
        raise EngineFailed("The vector index failed; see the log for its reason") from error


def _raise_unless_vendor(error: Exception) -> None:
    """Let everything but the engine's own exceptions through: they are of no class but
    `Exception` itself, which no other code in this process raises."""
    if type(error) is not Exception:
        raise error
