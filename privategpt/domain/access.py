"""Who may ask for what: API keys, the tenants they belong to, and the rights they carry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from privategpt.domain.errors import InvalidRequest

DEFAULT_TENANT = "default"
"""The one tenant of a server without keys, and whose documents commands add to unless told."""

MAX_TENANT_CHARACTERS = 63
_TENANT = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MAX_TENANT_CHARACTERS - 1}}}")


class Scope(StrEnum):
    """A right that a key can carry; none includes another.

    CHAT answers questions, from the documents where the request asks for it; READ searches, lists
    and shows documents; WRITE ingests and deletes them; EMBED embeds and reranks texts of the
    request; ADMIN reads metrics, readiness and the API's own description.
    """

    CHAT = "chat"
    READ = "read"
    WRITE = "write"
    EMBED = "embed"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret. `last_used_at` is exact to the hour only."""

    key_id: str
    tenant: str
    scopes: frozenset[Scope]
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """True while the key opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key with the SHA-256 digest of its whole text, which alone is kept of the secret.

    A plain hash is enough where the secret is 256 random bits: there is nothing to guess.
    """

    key: ApiKey
    digest: bytes


class KeyStore(Protocol):
    """Keeps keys for all processes that share the state store."""

    async def add(self, stored: StoredKey) -> None:
        """Durable when it returns. Raises `Conflict` for an id that is there."""
        ...

    async def find(self, key_id: str) -> StoredKey | None:
        """The key of that id, live or not."""
        ...

    async def keys(self) -> list[ApiKey]:
        """All keys of all tenants, the oldest first."""
        ...

    async def revoke(self, key_id: str, *, at: datetime) -> ApiKey:
        """End a key's life; a second time changes nothing. Raises `NotFound`."""
        ...

    async def touch(self, key_id: str, *, at: datetime) -> None:
        """Note that the key was used; it is no error if it is gone."""
        ...


def require_tenant_name(name: str) -> str:
    """`name`, if a tenant can be called that. Raises `InvalidRequest`."""
    if _TENANT.fullmatch(name) is None:
        raise InvalidRequest(
            f"{name[:80]!r} cannot be a tenant's name: use 1 to {MAX_TENANT_CHARACTERS} "
            "of a-z, 0-9, '.', '_' and '-', the first a letter or digit",
            param="tenant",
        )
    return name
