"""Keys: what is made, what is kept, what is recognised."""

from __future__ import annotations

import hashlib
import itertools
import logging
import random
import secrets
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.access import ApiKey, Scope
from privategpt.domain.errors import InvalidRequest, NotAuthenticated, NotFound
from privategpt.services.access import DEFAULT_SCOPES, SECRET_BYTES, Keys, NewKey
from tests.fakes.clock import NOON, Clock
from tests.fakes.keys import FakeKeyStore

HOUR = timedelta(hours=1)


@pytest.fixture
def store() -> FakeKeyStore:
    return FakeKeyStore()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(store: FakeKeyStore, clock: Clock) -> Keys:
    return Keys(store=store, now=clock, random_bytes=secrets.token_bytes)


async def test_a_new_key_says_what_was_asked_for(clock: Clock, store: FakeKeyStore) -> None:
    numbers = itertools.count(1)
    keys = Keys(store=store, now=clock, random_bytes=lambda n: bytes([next(numbers)]) * n)
    new = await keys.create("ann", scopes=[Scope.READ], label="laptop", lifetime=HOUR)
    key = ApiKey(
        key_id="010101010101",
        tenant="ann",
        scopes=frozenset({Scope.READ}),
        label="laptop",
        created_at=NOON,
        expires_at=NOON + HOUR,
    )
    assert new == NewKey(key=key, text="pgpt_010101010101_" + "02" * 32)
    assert await keys.list() == [key]


async def test_without_a_word_a_key_does_all_but_administer_and_never_expires(keys: Keys) -> None:
    key = (await keys.create("ann")).key
    assert key.scopes == DEFAULT_SCOPES == frozenset(Scope) - {Scope.ADMIN}
    assert key.expires_at is None


async def test_the_secret_is_kept_as_a_hash_alone(keys: Keys, store: FakeKeyStore) -> None:
    new = await keys.create("ann")
    secret = new.text.rpartition("_")[2]
    assert SECRET_BYTES * 8 >= 128
    assert len(bytes.fromhex(secret)) == SECRET_BYTES
    stored = store.stored[new.key.key_id]
    assert stored.digest == hashlib.sha256(new.text.encode()).digest()
    assert secret not in repr(stored)


async def test_no_two_keys_are_alike(keys: Keys) -> None:
    assert len({(await keys.create("ann")).text for _ in range(50)}) == 50


@pytest.mark.parametrize("name", ["ann", "a", "0", "team-1.eu_west", "a" * 63])
async def test_a_tenant_can_be_called_that(keys: Keys, name: str) -> None:
    assert (await keys.create(name)).key.tenant == name


@pytest.mark.parametrize(
    "name", ["", "Ann", "-a", ".", "..", "a/b", "a b", "ä", "a\n", "a\0", "a" * 64, "٣"]
)
async def test_a_tenant_cannot_be_called_that(keys: Keys, store: FakeKeyStore, name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be a tenant's name") as caught:
        await keys.create(name)
    assert caught.value.param == "tenant"
    assert store.stored == {}


@pytest.mark.parametrize("label", ["a\nb", "\x1b[31m", "x" * 101, "\u202e"])
async def test_a_label_is_short_and_plain(keys: Keys, label: str) -> None:
    with pytest.raises(InvalidRequest, match="label"):
        await keys.create("ann", label=label)


async def test_a_key_has_a_scope_and_a_life(keys: Keys) -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        await keys.create("ann", scopes=())
    for lifetime in (timedelta(0), -HOUR):
        with pytest.raises(InvalidRequest, match="live"):
            await keys.create("ann", lifetime=lifetime)
    with pytest.raises(InvalidRequest, match="too far"):
        await keys.create("ann", lifetime=timedelta.max)


async def test_a_live_key_is_recognised(keys: Keys) -> None:
    new = await keys.create("ann", lifetime=HOUR)
    assert await keys.identify(new.text.encode()) == new.key


async def test_a_key_is_refused_from_the_moment_it_expires(keys: Keys, clock: Clock) -> None:
    new = await keys.create("ann", lifetime=HOUR)
    clock.now += HOUR - timedelta(microseconds=1)
    assert await keys.identify(new.text.encode())
    assert await keys.any_live()
    clock.now += timedelta(microseconds=1)
    assert not await keys.any_live()
    with pytest.raises(NotAuthenticated):
        await keys.identify(new.text.encode())


async def test_a_revoked_key_is_refused(keys: Keys) -> None:
    new = await keys.create("ann")
    assert (await keys.revoke(new.key.key_id)).revoked_at == NOON
    assert not await keys.any_live()
    with pytest.raises(NotAuthenticated):
        await keys.identify(new.text.encode())


async def test_only_what_is_there_can_be_revoked(keys: Keys) -> None:
    with pytest.raises(NotFound):
        await keys.revoke("010101010101")


@given(data=st.data())
async def test_a_key_with_anything_changed_is_no_key(data: st.DataObject) -> None:
    chance = random.Random(data.draw(st.integers()))  # noqa: S311 - replayed, not secret
    keys = Keys(store=FakeKeyStore(), now=lambda: NOON, random_bytes=chance.randbytes)
    text = (await keys.create("ann")).text.encode()
    other = (await keys.create("bob")).text.encode()
    place = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != text[place]))
    cut = data.draw(st.integers(0, len(text) - 1))
    wrong = [
        text[:place] + bytes([byte]) + text[place + 1 :],
        text[:cut],
        text + bytes([byte]),
        text.upper(),
        # One key's id with the other's secret.
        text[:18] + other[18:],
    ]
    for each in wrong:
        with pytest.raises(NotAuthenticated):
            await keys.identify(each)
    await keys.close()


# Last use


async def test_a_use_is_noted_once_an_hour(keys: Keys, store: FakeKeyStore, clock: Clock) -> None:
    text = (await keys.create("ann")).text.encode()
    for minutes in (0, 1, 58, 1, 1):
        clock.now += timedelta(minutes=minutes)
        await keys.identify(text)
    await keys.close()
    assert store.touches == 2
    assert [key.last_used_at for key in await keys.list()] == [NOON + HOUR]


async def test_another_process_note_of_the_last_hour_is_enough(
    keys: Keys, store: FakeKeyStore, clock: Clock
) -> None:
    text = (await keys.create("ann")).text.encode()
    await keys.identify(text)
    await keys.close()
    again = Keys(store=store, now=clock, random_bytes=secrets.token_bytes)
    await again.identify(text)
    await again.close()
    assert store.touches == 1


async def test_a_use_that_cannot_be_noted_costs_nobody_an_answer(
    keys: Keys, store: FakeKeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    new = await keys.create("ann")
    store.down = True
    with caplog.at_level(logging.WARNING):
        assert await keys.identify(new.text.encode()) == new.key
        await keys.close()
    assert new.key.key_id in caplog.text
    assert new.text not in caplog.text
