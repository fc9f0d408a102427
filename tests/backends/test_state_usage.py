"""How many bytes a tenant stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from privategpt.backends.state.database import Database
from privategpt.backends.state.opening import open_database
from privategpt.backends.state.store import SqlStateStore
from privategpt.backends.state.usage import SqlUsage
from tests.fakes.library import ingest, ingestion
from tests.fakes.postgres import postgres_database

SIZE = 5_000_000_000
"""Of every file of `ingestion`: more than 32 bits hold."""


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    if request.param == "sqlite":
        opened = await open_database(tmp_path)
        yield opened
        await opened.close()
    else:
        async with postgres_database() as url:
            opened = await open_database(url)
            yield opened
            await opened.close()


async def test_the_ready_files_of_one_tenant_are_counted(database: Database) -> None:
    store, usage = SqlStateStore(database=database), SqlUsage(database=database)
    assert await usage.stored_bytes("ann") == 0
    await ingest(store, ingestion("f1"))
    await ingest(store, ingestion("f2"))
    await ingest(store, ingestion("g1", tenant="bob"))
    await store.begin_file(ingestion("f3").file)
    assert await usage.stored_bytes("ann") == 2 * SIZE
    assert await usage.stored_bytes("bob") == SIZE
    await store.begin_delete("ann", "f1")
    assert await usage.stored_bytes("ann") == SIZE
