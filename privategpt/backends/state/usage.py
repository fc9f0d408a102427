"""What a tenant takes up."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from privategpt.backends.state.database import Database
from privategpt.backends.state.tables import READY, files

STORED_BYTES = select(func.coalesce(func.sum(files.c.size_bytes), 0)).where(
    files.c.tenant == bindparam("tenant"), files.c.state == READY
)


class SqlUsage:
    """Reads the state store's database; it is the store's to close."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def stored_bytes(self, tenant: str) -> int:
        """The size of all the tenant's ready files. Raises `Unavailable`."""
        ((stored,),) = await self._database.rows(STORED_BYTES, {"tenant": tenant})
        # PostgreSQL sums big integers up to a decimal.
        return int(stored)
