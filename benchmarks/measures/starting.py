"""How long until the server is ready, and how much memory it then needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row, Rule, Target
from benchmarks.serving import RunningServer, running_server

READY_S = 6.0
RESIDENT_MB = 900.0
REST_S = 4.0
"""After which a server has given back what it does not need."""


async def empty_start(folder: Path, *, times: int) -> Row:
    """From the start of the process until /health/ready says 200, over an empty folder."""
    ready: list[float] = []
    for number in range(times):
        async with running_server(folder / f"empty-{number}") as server:
            ready.append(server.ready_s)
    return Row("ready, empty library", "s", ready, target=Target(Rule.AT_MOST, READY_S))


def resident(server: RunningServer) -> Sequence[Row]:
    """Once it has worked, and rested; the parser processes are counted, the LLM's child is not."""
    whole = server.resident_mb(children=True)
    private = server.resident_mb(children=True, kind="RssAnon")
    return (
        Row("resident memory at rest", "MB", [whole], target=Target(Rule.AT_MOST, RESIDENT_MB)),
        Row("of it, not pages of files", "MB", [private]),
    )
