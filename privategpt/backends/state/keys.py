"""API keys over SQL; `domain.access.KeyStore` says what each method promises."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Row, bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from privategpt.backends.state.database import Database
from privategpt.backends.state.errors import can_be_an_id
from privategpt.backends.state.keys_table import api_keys
from privategpt.domain.access import ApiKey, Scope, StoredKey
from privategpt.domain.errors import NotFound

_this = api_keys.c.key_id == bindparam("by_key_id")

ADD = insert(api_keys)
FIND = select(api_keys).where(_this)
ALL = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id)
REVOKE = (
    update(api_keys)
    .where(_this, api_keys.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
TOUCH = update(api_keys).where(_this).values(last_used_at=bindparam("at"))


class SqlKeyStore:
    """A `KeyStore` in the state store's database; it is the store's to close."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, stored: StoredKey) -> None:
        await self._database.write(partial(_add, stored=stored))

    async def find(self, key_id: str) -> StoredKey | None:
        if not can_be_an_id(key_id):
            return None
        rows = await self._database.rows(FIND, {"by_key_id": key_id})
        return StoredKey(key=_read(rows[0]), digest=rows[0].digest) if rows else None

    async def keys(self) -> list[ApiKey]:
        return [_read(row) for row in await self._database.rows(ALL)]

    async def revoke(self, key_id: str, *, at: datetime) -> ApiKey:
        if not can_be_an_id(key_id):
            raise _unknown()
        return await self._database.write(partial(_revoke, key_id=key_id, at=at))

    async def touch(self, key_id: str, *, at: datetime) -> None:
        await self._database.write(partial(_touch, key_id=key_id, at=at))


async def _add(connection: AsyncConnection, *, stored: StoredKey) -> None:
    key = stored.key
    values = {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "digest": stored.digest,
        "scopes": " ".join(sorted(key.scopes)),
        "label": key.label,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    }
    await connection.execute(ADD, values)


async def _revoke(connection: AsyncConnection, *, key_id: str, at: datetime) -> ApiKey:
    await connection.execute(REVOKE, {"by_key_id": key_id, "at": at})
    row = (await connection.execute(FIND, {"by_key_id": key_id})).first()
    if row is None:
        raise _unknown()
    return _read(row)


async def _touch(connection: AsyncConnection, *, key_id: str, at: datetime) -> None:
    await connection.execute(TOUCH, {"by_key_id": key_id, "at": at})


def _unknown() -> NotFound:
    return NotFound("There is no key of that id; `privategpt keys list` shows those there are")


def _read(row: Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        tenant=row.tenant,
        scopes=frozenset(map(Scope, row.scopes.split())),
        label=row.label,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
