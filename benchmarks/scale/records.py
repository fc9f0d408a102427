"""What a shard holds, read behind the product's back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import qdrant_edge as qe

PAGE = 2_000


def every_record(
    shard: qe.EdgeShard, *, vectors: Sequence[str], with_payload: bool = False
) -> Iterator[qe.Record]:
    """All points in the order of their ids, with these vectors."""
    offset: int | UUID | str | None = None
    while True:
        page = qe.ScrollRequest(
            offset=offset, limit=PAGE, with_payload=with_payload, with_vector=list(vectors)
        )
        records, offset = shard.scroll(page)
        yield from records
        if offset is None:
            return
