"""Leases in memory."""

from __future__ import annotations

from datetime import datetime


class FakeLeaseStore:
    """Implements `LeaseStore`; `FakeStateStore` asks its own who is alive."""

    def __init__(self) -> None:
        self.until: dict[str, datetime] = {}

    async def renew(self, owner: str, *, until: datetime) -> None:
        self.until[owner] = until

    async def release(self, owner: str) -> None:
        self.until.pop(owner, None)

    def holds(self, owner: str | None, *, at: datetime) -> bool:
        """True where the lease of `owner` has not ended."""
        return owner in self.until and self.until[owner] > at
