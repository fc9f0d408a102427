"""The host's clock steps, back an hour or on a year: nothing is lost, doubled or out of order.

Deadlines, rates and leases of one process count on a clock that cannot be set (`loop.time`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from privategpt.backends.state.opening import open_state_store
from privategpt.domain.library import StateStore
from privategpt.services.allowance import Allowance
from tests.fakes.library import ingest, ingestion
from tests.fakes.websearch import FakeQuota

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STEPS = (timedelta(), -timedelta(hours=1), timedelta(days=365), -timedelta(days=20_000))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[StateStore]:
    opened = await open_state_store(tmp_path)
    yield opened
    await opened.close()


async def test_the_library_is_in_order_of_ingestion_whatever_the_clock_said(
    store: StateStore,
) -> None:
    stepped = [ingestion(f"f{number}") for number in range(len(STEPS))]
    for new, step in zip(stepped, STEPS, strict=True):
        await ingest(store, replace(new, file=replace(new.file, created_at=NOON + step)))
    listed = await store.list_documents("ann")
    order = [new.doc_ids[0] for new in stepped]
    assert [info.doc_id for info in listed] == order
    page = await store.list_documents("ann", after=order[1], limit=1)
    assert [info.doc_id for info in page] == [order[2]]


async def test_the_same_file_lands_once_although_it_seems_older_than_itself(
    store: StateStore,
) -> None:
    first = ingestion("first", content="same")
    again = ingestion("again", content="same")
    stored = await ingest(store, first)
    earlier = replace(again, file=replace(again.file, created_at=NOON - timedelta(days=1)))
    assert await ingest(store, earlier) == stored
    assert len(await store.list_documents("ann")) == 1


async def test_a_clock_set_back_over_midnight_gives_no_search_twice() -> None:
    times = iter((NOON, NOON - timedelta(days=1), NOON, NOON))
    allowance = Allowance(quota=FakeQuota(), per_day=1, now=lambda: next(times))
    assert await allowance.reserve("ann") is not None
    assert await allowance.reserve("ann") is not None, "of the day that it says it is"
    assert await allowance.reserve("ann") is None, "back on the first day, whose search is used"
    assert (await allowance.usage("ann")).used == 1
