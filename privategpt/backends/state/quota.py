"""The quota over SQL; `domain.websearch.Quota` says what each method promises.

Every change is one statement that the database decides alone, so neither tasks nor processes can
take the same unit twice. A day's row stays when the day is over: one per tenant that searched.
"""

from __future__ import annotations

from datetime import date
from functools import partial

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from privategpt.backends.state.database import Database
from privategpt.backends.state.quota_table import search_quota

_mine = (search_quota.c.tenant == bindparam("by_tenant"), search_quota.c.day == bindparam("by_day"))

USED = select(search_quota.c.used).where(*_mine)

REFUND = (
    update(search_quota).where(*_mine, search_quota.c.used > 0).values(used=search_quota.c.used - 1)
)


def _reserve(insert: sqlite.Insert | postgresql.Insert) -> ReturningInsert[tuple[int]]:
    """Insert the day's first unit or add one below the limit; returns no row at the limit."""
    return (
        insert.values(tenant=bindparam("tenant"), day=bindparam("day"), used=1)
        .on_conflict_do_update(
            index_elements=["tenant", "day"],
            set_={"used": search_quota.c.used + 1},
            where=search_quota.c.used < bindparam("most"),
        )
        .returning(search_quota.c.used)
    )


RESERVE = {
    "sqlite": _reserve(sqlite.insert(search_quota)),
    "postgresql": _reserve(postgresql.insert(search_quota)),
}


class SqlQuota:
    """A `Quota` in the state store's database; it is the store's to close."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def reserve(self, tenant: str, day: date, *, limit: int) -> bool:
        if limit < 1:  # the day's first unit is inserted without a look at the limit
            return False
        return await self._database.write(partial(_take, tenant=tenant, day=day, limit=limit))

    async def refund(self, tenant: str, day: date) -> None:
        await self._database.write(partial(_refund, tenant=tenant, day=day))

    async def used(self, tenant: str, day: date) -> int:
        rows = await self._database.rows(USED, {"by_tenant": tenant, "by_day": day})
        return rows[0][0] if rows else 0


async def _take(connection: AsyncConnection, *, tenant: str, day: date, limit: int) -> bool:
    result = await connection.execute(
        RESERVE[connection.dialect.name], {"tenant": tenant, "day": day, "most": limit}
    )
    return result.first() is not None


async def _refund(connection: AsyncConnection, *, tenant: str, day: date) -> None:
    await connection.execute(REFUND, {"by_tenant": tenant, "by_day": day})
