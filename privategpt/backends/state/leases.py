"""Leases over SQL; `domain.jobs.LeaseStore` says what each method promises."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from sqlalchemy import bindparam, delete
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from privategpt.backends.state.database import Database
from privategpt.backends.state.jobs_table import leases

RENEW = {
    dialect: insert.on_conflict_do_update(
        index_elements=["owner"], set_={"until": insert.excluded.until}
    )
    for dialect, insert in (
        ("sqlite", sqlite.insert(leases)),
        ("postgresql", postgresql.insert(leases)),
    )
}
RELEASE = delete(leases).where(leases.c.owner == bindparam("by_owner"))


class SqlLeaseStore:
    """A `LeaseStore` in the state store's database; it is the store's to close."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def renew(self, owner: str, *, until: datetime) -> None:
        await self._database.write(partial(_renew, owner=owner, until=until))

    async def release(self, owner: str) -> None:
        await self._database.write(partial(_release, owner=owner))


async def _renew(connection: AsyncConnection, *, owner: str, until: datetime) -> None:
    await connection.execute(RENEW[connection.dialect.name], {"owner": owner, "until": until})


async def _release(connection: AsyncConnection, *, owner: str) -> None:
    await connection.execute(RELEASE, {"by_owner": owner})
