"""The rounds of a process: what they do beside the leases, which the stores' contract has."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from privategpt.domain.errors import Unavailable
from privategpt.services.tending import LEASE, Tending
from tests.fakes.clock import NOON, Clock
from tests.fakes.leases import FakeLeaseStore
from tests.fakes.wired import WiredLibrary


class Pauses:
    """Ends a pause when the test says so, and tells when the next has begun."""

    def __init__(self) -> None:
        self._ends, self._begun = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self._begun.release()
        await self._ends.acquire()

    async def end_one(self) -> None:
        """The rounds go on until they pause again."""
        self._ends.release()
        await self._begun.acquire()


class DeafLeases(FakeLeaseStore):
    """Cannot be told that a lease has ended."""

    async def release(self, owner: str) -> None:
        if owner in self.until:
            raise Unavailable("down")


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    return WiredLibrary(folder=tmp_path)


def tending(library: WiredLibrary, leases: FakeLeaseStore | None, pauses: Pauses) -> Tending:
    return Tending(
        ingestion=library.ingestion, leases=leases, owner="first", now=Clock(), pause=pauses
    )


async def test_rounds_go_on_after_one_that_failed(library: WiredLibrary) -> None:
    pauses, leases, rounds = Pauses(), FakeLeaseStore(), asyncio.Queue[int]()

    async def work() -> None:
        rounds.put_nowait(rounds.qsize())
        if rounds.qsize() == 1:
            raise Unavailable("down")

    keeper = tending(library, leases, pauses)
    keeper.also(work)
    await keeper.begin()
    await pauses.end_one()
    await pauses.end_one()
    await pauses.end_one()
    assert rounds.qsize() >= 2
    assert leases.until == {"first": NOON + LEASE}
    await keeper.end()
    assert leases.until == {}


async def test_a_process_that_is_alone_sweeps_at_its_start_only(library: WiredLibrary) -> None:
    stored = await library.add("a.txt", "One.")
    keeper = tending(library, None, Pauses())
    await keeper.begin()
    await library.state.begin_file(replace(stored.file, file_id="file-9"))
    await keeper.round()
    assert len(await library.state.abandoned(pending=True)) == 1
    await keeper.end()


async def test_a_stop_goes_on_where_the_lease_cannot_be_released(
    library: WiredLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = tending(library, DeafLeases(), Pauses())
    await keeper.begin()
    await keeper.end()
    assert "the lease runs on" in caplog.text


async def test_an_end_without_a_beginning_is_none(library: WiredLibrary) -> None:
    await tending(library, None, Pauses()).end()
