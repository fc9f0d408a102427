"""How a chunk lies in a vector index, and what a query asks of it; the same for every engine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from privategpt.backends.vectors.words import WORDS_LAYOUT
from privategpt.domain.documents import Metadata, Scalar
from privategpt.domain.library import IndexedChunk, VectorQuery

DENSE = "dense"
WORDS = WORDS_LAYOUT
"""A vector's name in the index, which so says by itself how its words were weighed."""

CHUNK_ID = "chunk_id"
TENANT = "tenant"
FILE_ID = "file_id"
DOC_ID = "doc_id"
FACTS = "facts"
FACT_KEYS = "fact_keys"

INDEXED_KEYS = (TENANT, FILE_ID, DOC_ID, FACTS)
"""Payload keys that searches filter on. `FACT_KEYS` is left out: only a filter for null reads it,
and its lists would be as long as the whole index."""

HASHED_VERSION = 8
"""Of UUIDs: the one that is left to everybody's own use, so that no library makes it."""

_LONGEST_FACT = 200


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The payload's `key` holds one of `values`."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conditions:
    """In every group of `must` at least one holds, and none of `must_not`."""

    must: tuple[tuple[AnyOf, ...], ...]
    must_not: tuple[AnyOf, ...] = ()


def point_id(chunk_id: str) -> str:
    """The id of a chunk's point: the chunk's own where that is a UUID, which is all that engines
    take. Any other is hashed into a UUID of `HASHED_VERSION`; see `chunk_id_of`.
    """
    try:
        uuid = UUID(chunk_id)
    except ValueError:
        return _hashed(chunk_id)
    plain = str(uuid) == chunk_id and uuid.version != HASHED_VERSION
    return chunk_id if plain else _hashed(chunk_id)


def chunk_id_of(point: int) -> str | None:
    """The id of the chunk whose point has this id, as a number; None where it was hashed."""
    uuid = UUID(int=point)
    return None if uuid.version == HASHED_VERSION else str(uuid)


def _hashed(chunk_id: str) -> str:
    value = uuid5(NAMESPACE_OID, chunk_id).int
    return str(UUID(int=value & ~(0xF << 76) | HASHED_VERSION << 76))


def payload(chunk: IndexedChunk) -> dict[str, Any]:
    """What is stored beside the vectors; never the text."""
    return {
        CHUNK_ID: chunk.chunk.chunk_id,
        TENANT: chunk.tenant,
        FILE_ID: _file_ids(chunk),
        DOC_ID: chunk.chunk.doc_id,
        FACTS: [fact(key, value) for key, value in chunk.metadata.items() if value is not None],
        FACT_KEYS: [key for key, value in chunk.metadata.items() if value is not None],
    }


def _file_ids(chunk: IndexedChunk) -> str | list[str]:
    """Both ids of a file inside another: a condition holds where one of them meets it."""
    inner = chunk.inner_file_id
    return chunk.file_id if inner is None else [chunk.file_id, inner]


def fact(key: str, value: Scalar) -> str:
    """One metadata entry as a single keyword.

    A payload field per metadata key would need an index per key, a path syntax that cannot
    quote every key, and a comparison that knows no fractions. JSON keeps "1", 1 and true apart;
    1.0 is 1, as it is in JSON. A long one is cut down to its digest.
    """
    number = isinstance(value, float) and value.is_integer()
    text = json.dumps([key, int(value) if number else value], ensure_ascii=False)
    if len(text) <= _LONGEST_FACT:
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def conditions(query: VectorQuery, *, alone: bool = False) -> Conditions:
    """What a chunk must be to answer `query`; the only place where the tenant is applied.

    It need not be where the tenant is `alone` in the index.
    """
    must: list[tuple[AnyOf, ...]] = [] if alone else [(AnyOf(TENANT, (query.tenant,)),)]
    if query.filter.ids is not None:
        ids = tuple(query.filter.ids)
        must.append((AnyOf(DOC_ID, ids), AnyOf(FILE_ID, ids)))
    must_not: list[AnyOf] = []
    if query.hidden:
        hidden = tuple(query.hidden)
        must_not += [AnyOf(FILE_ID, hidden), AnyOf(DOC_ID, hidden)]
    _add_metadata(query.filter.metadata, must=must, must_not=must_not)
    return Conditions(must=tuple(must), must_not=tuple(must_not))


def _add_metadata(
    metadata: Metadata, *, must: list[tuple[AnyOf, ...]], must_not: list[AnyOf]
) -> None:
    for key, value in metadata.items():
        if value is None:
            must_not.append(AnyOf(FACT_KEYS, (key,)))
        else:
            must.append((AnyOf(FACTS, (fact(key, value),)),))
