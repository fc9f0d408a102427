"""POST /v1/embeddings beside the bare model, for small and large batches and many clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from benchmarks.client import Connection, connection, connections
from benchmarks.engines import Engines
from benchmarks.prose import Prose
from benchmarks.rows import Effort, Row, Rule, Target, in_turns, seconds_of

LARGE = 256
LARGE_SHARE = 0.95
CROWD = 32
CROWD_SHARE = 0.70
CROWD_ROUNDS = 8


async def beside_model_row(
    *,
    url: str,
    engines: Engines,
    prose: Prose,
    texts: int,
    clients: int,
    effort: Effort,
    encoding: str = "base64",
) -> Row:
    """So many clients at once, each with one request of so many texts."""
    requests = [[prose.sentence() for _ in range(texts)] for _ in range(clients)]
    bodies = [_body(request, encoding) for request in requests]

    async def ours(_: int) -> float:
        async with connections(url, clients) as open_ones:
            return texts * clients / await seconds_of(_ask_at_once(open_ones, bodies))

    async def bare(_: int) -> float:
        work = asyncio.gather(*map(engines.embedding.embed_passages, requests))
        return texts * clients / await seconds_of(work)

    taken = await in_turns({"ours": ours, "bare": bare}, effort)
    name = f"/v1/embeddings, {_many(texts, 'text')} × {_many(clients, 'client')}, {encoding}"
    target = None
    if texts == LARGE and clients == 1 and encoding == "base64":
        target = Target(Rule.RATIO_AT_LEAST, LARGE_SHARE)
    return Row(name, "texts/s", taken["ours"], taken["bare"], target)


async def crowd_row(*, url: str, prose: Prose, effort: Effort) -> Row:
    """Many clients with one text each, beside one client that sends the same texts at once."""
    rounds = [[prose.sentence() for _ in range(CROWD)] for _ in range(CROWD_ROUNDS)]
    total = CROWD * CROWD_ROUNDS

    async def crowd(_: int) -> float:
        async with connections(url, CROWD) as clients:

            async def one_client(number: int) -> None:
                for texts in rounds:
                    await clients[number].post_bytes("/v1/embeddings", _body([texts[number]]))

            return total / await seconds_of(asyncio.gather(*map(one_client, range(CROWD))))

    async def batches(_: int) -> float:
        async with connection(url) as client:

            async def send() -> None:
                for texts in rounds:
                    await client.post_bytes("/v1/embeddings", _body(texts))

            return total / await seconds_of(send())

    taken = await in_turns({"crowd": crowd, "batches": batches}, effort)
    return Row(
        f"/v1/embeddings, {CROWD} clients with 1 text; bare: ours, 1 client with {CROWD}",
        "texts/s",
        taken["crowd"],
        taken["batches"],
        Target(Rule.RATIO_AT_LEAST, CROWD_SHARE),
    )


async def _ask_at_once(clients: Sequence[Connection], bodies: Sequence[bytes]) -> None:
    await asyncio.gather(
        *(
            client.post_bytes("/v1/embeddings", body)
            for client, body in zip(clients, bodies, strict=True)
        )
    )


def _body(texts: Sequence[str], encoding: str = "base64") -> bytes:
    return json.dumps({"input": list(texts), "encoding_format": encoding}).encode()


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
