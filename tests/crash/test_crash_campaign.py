"""A short campaign; `make crash` takes every write."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.crash.__main__ import MEMORY
from tests.crash.campaign import HOW, Campaign, How, campaign
from tests.crash.subject import KILLED, REFUSED

SAMPLES = 5
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
async def made() -> AsyncGenerator[Campaign]:
    if not shutil.which(os.environ.get("CC", "cc")) and not os.environ.get("CI"):
        pytest.skip("no C compiler is on this machine")
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        async with campaign(Path(folder)) as running:
            yield running


@pytest.mark.parametrize("how", HOW)
async def test_every_invariant_holds_after_a_write_that_was_the_last_or_failed(
    how: How, made: Campaign
) -> None:
    numbers = made.numbers(how)
    for number in numbers[len(numbers) // (2 * SAMPLES) :: len(numbers) // SAMPLES]:
        ended = await made.at(number, how)
        assert (ended.status == KILLED) == (how in ("kill", "half"))


async def test_every_invariant_holds_after_a_kill_at_any_time(made: Campaign) -> None:
    for milliseconds in (40, 120, 200):
        await made.after(milliseconds / 1000)


async def test_nothing_is_said_that_a_power_cut_would_unsay(made: Campaign) -> None:
    assert made.said_too_early() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
async def test_a_full_disk_is_refused_and_ends_no_process(made: Campaign) -> None:
    ends = [(await made.on_a_disk_of(size * MEGABYTE)).status for size in (1, 100, 150, 1000)]
    assert ends == [REFUSED, REFUSED, REFUSED, 0]
