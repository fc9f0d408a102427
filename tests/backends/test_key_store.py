"""What every key store promises; see `domain.access.KeyStore`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from privategpt.backends.state.keys import SqlKeyStore
from privategpt.backends.state.opening import open_database
from privategpt.domain.access import ApiKey, KeyStore, Scope, StoredKey
from privategpt.domain.errors import Conflict, NotFound
from tests.fakes.keys import FakeKeyStore
from tests.fakes.postgres import postgres_database

NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(params=["fake", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[KeyStore]:
    if request.param == "fake":
        yield FakeKeyStore()
    elif request.param == "sqlite":
        database = await open_database(tmp_path)
        yield SqlKeyStore(database=database)
        await database.close()
    else:
        async with postgres_database() as url:
            database = await open_database(url)
            yield SqlKeyStore(database=database)
            await database.close()


def stored(key_id: str, *, tenant: str = "ann", created_at: datetime = NOON) -> StoredKey:
    key = ApiKey(
        key_id=key_id,
        tenant=tenant,
        scopes=frozenset({Scope.WRITE, Scope.CHAT}),
        label="Büro 東京",
        created_at=created_at,
        expires_at=NOON + 24 * HOUR,
    )
    return StoredKey(key=key, digest=bytes(range(32)))


async def test_a_key_is_found_as_it_was_added(store: KeyStore) -> None:
    await store.add(stored("one"))
    assert await store.find("one") == stored("one")


@pytest.mark.parametrize("key_id", ["two", "", "ONE", "one ", "a\0", "\ud800"])
async def test_an_unknown_id_finds_nothing(store: KeyStore, key_id: str) -> None:
    await store.add(stored("one"))
    assert await store.find(key_id) is None


async def test_an_id_is_added_once(store: KeyStore) -> None:
    await store.add(stored("one"))
    with pytest.raises(Conflict):
        await store.add(stored("one", tenant="bob"))
    assert await store.find("one") == stored("one")


async def test_keys_of_all_tenants_are_listed_oldest_first(store: KeyStore) -> None:
    added = [
        stored("new", created_at=NOON + HOUR),
        stored("b", tenant="bob"),
        stored("a"),
    ]
    for each in added:
        await store.add(each)
    assert await store.keys() == [each.key for each in (added[2], added[1], added[0])]


async def test_revoking_twice_keeps_the_first_moment_and_touches_no_other_key(
    store: KeyStore,
) -> None:
    await store.add(stored("one"))
    await store.add(stored("two"))
    revoked = replace(stored("one").key, revoked_at=NOON + HOUR)
    assert await store.revoke("one", at=NOON + HOUR) == revoked
    assert await store.revoke("one", at=NOON + 2 * HOUR) == revoked
    assert await store.find("one") == replace(stored("one"), key=revoked)
    assert await store.find("two") == stored("two")


@pytest.mark.parametrize("key_id", ["two", "a\0"])
async def test_what_is_not_there_cannot_be_revoked(store: KeyStore, key_id: str) -> None:
    with pytest.raises(NotFound, match="There is no key of that id"):
        await store.revoke(key_id, at=NOON)


async def test_a_use_is_noted_and_of_a_key_that_is_gone_forgotten(store: KeyStore) -> None:
    await store.add(stored("one"))
    await store.touch("one", at=NOON + HOUR)
    await store.touch("two", at=NOON + HOUR)
    assert await store.keys() == [replace(stored("one").key, last_used_at=NOON + HOUR)]


async def test_keys_survive_a_restart_without_their_secret(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    await SqlKeyStore(database=database).add(stored("one"))
    await database.close()

    database = await open_database(tmp_path)
    assert await SqlKeyStore(database=database).find("one") == stored("one")
    await database.close()
