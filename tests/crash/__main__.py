"""`make crash`: every write of an ingestion, a replacement and a deletion is the last one once.

Then every write fails once with a full disk, from every write on the disk is full, or broken once;
then disks of every size, kills at any time, and ten minutes of operations in any order.
`--every 10` takes every tenth write only.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from rich.console import Console
from rich.progress import track

from tests.crash.campaign import HOW, Campaign, Ended, Failed, How, campaign
from tests.services.test_tenants_property import ThreeTenants

MEMORY = Path("/dev/shm")  # noqa: S108 - what is killed is a process, so no real disk is needed
DISK_STEP = 10_000_000
_console = Console()


def main(
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", help=f"Of failures: {', '.join(HOW)}; all.")
    ] = None,
    every: Annotated[int, typer.Option(help="Take every n-th write.", min=1)] = 1,
    kills: Annotated[int, typer.Option(help="Kills at any time.")] = 50,
    minutes: Annotated[float, typer.Option(help="Of operations in any order.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Of the times; none: another each run.")] = None,
) -> None:
    """Run the campaign; ends with status 1 at the first invariant that is broken."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    try:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            run = _run(
                Path(folder),
                kinds=[how for how in HOW if not kinds or how in kinds],
                every=every,
                kills=kills,
                seed=seed,
            )
            asyncio.run(run)
        _any_order(minutes)
    except Failed as failed:
        _console.print(str(failed), style="red", markup=False)
        raise typer.Exit(1) from None


async def _run(folder: Path, *, kinds: Sequence[How], every: int, kills: int, seed: int) -> None:
    async with campaign(folder) as made:
        _console.print(f"{len(made.writes)} writes")
        if early := made.said_too_early():
            raise Failed("A power cut would lose:\n" + "\n".join(early))
        _console.print("power cut: nothing is said before it is on the disk")
        for how in kinds:
            await _each_write(made, how, every)
        await _each_disk(made)
        _console.print(f"seed {seed}")
        await _any_time(made, kills, random.Random(seed))  # noqa: S311 - times, not secrets


def _any_order(minutes: float) -> None:
    """The machine of three tenants, each time anew, until its time is over."""
    end = time.monotonic() + 60 * minutes
    bounded = settings(ThreeTenants.TestCase.settings, max_examples=20, database=None)
    rounds = 0
    with _console.status("any order"):
        while time.monotonic() < end:
            run_state_machine_as_test(ThreeTenants, settings=bounded)
            rounds += 1
    _console.print(f"any order: {rounds * bounded.max_examples} libraries. Every invariant held.")


async def _each_write(made: Campaign, how: How, every: int) -> None:
    ends: Counter[str] = Counter()
    for number in track(made.numbers(how)[::every], description=how, console=_console):
        ends[_word(await made.at(number, how))] += 1
    _console.print(f"{how}: {dict(ends)}")


async def _each_disk(made: Campaign) -> None:
    """Ever larger disks, until one is large enough."""
    ends: Counter[str] = Counter()
    size = DISK_STEP
    with _console.status("small disks"):
        while (ended := await made.on_a_disk_of(size)).status != 0:
            ends[_word(ended)] += 1
            size += DISK_STEP
    _console.print(f"small disks: {dict(ends)}; {size:,} bytes are enough")


async def _any_time(made: Campaign, kills: int, times: random.Random) -> None:
    ends: Counter[str] = Counter()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await made.after(60.0)
    whole_s = loop.time() - begun
    for _ in track(range(kills), description="any time", console=_console):
        ends[_word(await made.after(times.uniform(0.0, whole_s)))] += 1
    _console.print(f"any time: {dict(ends)}")


def _word(ended: Ended) -> str:
    return {0: "went on", 3: "refused"}.get(ended.status, f"signal {-ended.status}")


if __name__ == "__main__":
    typer.run(main)
