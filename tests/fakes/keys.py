"""Keys in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from privategpt.domain.access import ApiKey, StoredKey
from privategpt.domain.errors import Conflict, NotFound, Unavailable


@dataclass
class FakeKeyStore:
    """A `KeyStore`; with `down` nothing can be written."""

    stored: dict[str, StoredKey] = field(default_factory=dict[str, StoredKey])
    touches: int = 0
    down: bool = False

    async def add(self, stored: StoredKey) -> None:
        if stored.key.key_id in self.stored:
            raise Conflict("The state store already holds something of that id")
        self.stored[stored.key.key_id] = stored

    async def find(self, key_id: str) -> StoredKey | None:
        return self.stored.get(key_id)

    async def keys(self) -> list[ApiKey]:
        found = [stored.key for stored in self.stored.values()]
        return sorted(found, key=lambda key: (key.created_at, key.key_id))

    async def revoke(self, key_id: str, *, at: datetime) -> ApiKey:
        if key_id not in self.stored:
            raise NotFound("There is no key of that id")
        key = self.stored[key_id].key
        if key.revoked_at is None:
            key = self._put(replace(key, revoked_at=at))
        return key

    async def touch(self, key_id: str, *, at: datetime) -> None:
        if self.down:
            raise Unavailable("The state store does not serve: the disk is full")
        self.touches += 1
        if key_id in self.stored:
            self._put(replace(self.stored[key_id].key, last_used_at=at))

    def _put(self, key: ApiKey) -> ApiKey:
        self.stored[key.key_id] = replace(self.stored[key.key_id], key=key)
        return key
