"""POST /v1/chunks beside the embedding of the query and the bare hybrid query."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.client import connection, connections
from benchmarks.engines import Engines
from benchmarks.prose import Prose
from benchmarks.rows import Effort, Row, Rule, Target, in_turns, seconds_of

LIMIT = 10
CLIENTS = 32
QUERIES_PER_CLIENT = 8
ABOVE_MS = 2.0
JOINT_SHARE = 0.85


async def single_row(
    *, url: str, engines: Engines, prose: Prose, points: int, effort: Effort
) -> Row:
    """One client, one question after another; both ways answer the same ones."""
    questions: list[str] = []

    def question(turn: int) -> str:
        while len(questions) <= turn:
            questions.append(prose.question())
        return questions[turn]

    async def ours(turn: int) -> float:
        async with connection(url) as server:
            return 1000 * await seconds_of(server.post_bytes("/v1/chunks", _body(question(turn))))

    async def bare(turn: int) -> float:
        return 1000 * await seconds_of(_bare_search(engines, question(turn)))

    taken = await in_turns({"ours": ours, "bare": bare}, effort)
    target = Target(Rule.AT_MOST_ABOVE, ABOVE_MS)
    name = f"/v1/chunks, {points:,} chunks; bare: embedding + Edge query"
    return Row(name, "ms", taken["ours"], taken["bare"], target)


async def joint_row(
    *, url: str, engines: Engines, prose: Prose, points: int, effort: Effort
) -> Row:
    """Many clients at once, each with one question after another."""
    questions = [[prose.question() for _ in range(QUERIES_PER_CLIENT)] for _ in range(CLIENTS)]

    async def ours(_: int) -> float:
        async with connections(url, CLIENTS) as clients:

            async def ask(client: int, text: str) -> None:
                await clients[client].post_bytes("/v1/chunks", _body(text))

            return await _throughput(ask, questions)

    async def bare(_: int) -> float:
        async def ask(_: int, text: str) -> None:
            await _bare_search(engines, text, threads=True)

        return await _throughput(ask, questions)

    taken = await in_turns({"ours": ours, "bare": bare}, effort)
    name = f"/v1/chunks, {points:,} chunks, {CLIENTS} clients"
    target = Target(Rule.RATIO_AT_LEAST, JOINT_SHARE)
    return Row(name, "queries/s", taken["ours"], taken["bare"], target)


async def _bare_search(engines: Engines, text: str, *, threads: bool = False) -> None:
    vector = (await engines.embedding.embed_query(text)).vectors[0]
    if threads:
        await asyncio.to_thread(engines.index.query, text, vector)
    else:
        engines.index.query(text, vector)


async def _throughput(
    ask: Callable[[int, str], Awaitable[None]], questions: Sequence[Sequence[str]]
) -> float:
    """Questions per second, all clients together."""

    async def one_client(client: int) -> None:
        for text in questions[client]:
            await ask(client, text)

    seconds = await seconds_of(asyncio.gather(*map(one_client, range(len(questions)))))
    return sum(map(len, questions)) / seconds


def _body(text: str) -> bytes:
    return json.dumps({"text": text, "limit": LIMIT}).encode()
