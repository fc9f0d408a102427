"""API keys: made, listed, revoked, and recognised when they come back.

A key reads `pgpt_<id>_<secret>`. The id finds the row, and is what logs and lists show; the secret
is 256 random bits, shown once and kept only as a hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from privategpt.domain.access import ApiKey, KeyStore, Scope, StoredKey, require_tenant_name
from privategpt.domain.errors import InvalidRequest, NotAuthenticated, Unavailable

ID_BYTES = 6
SECRET_BYTES = 32
MAX_LABEL_CHARACTERS = 100

TOUCH_EVERY = timedelta(hours=1)
"""How exact `last_used_at` is: a write per key and hour, not per request."""

DEFAULT_SCOPES = frozenset({Scope.CHAT, Scope.READ, Scope.WRITE, Scope.EMBED})

_KEY = re.compile(rb"pgpt_([0-9a-f]{%d})_[0-9a-f]{%d}" % (2 * ID_BYTES, 2 * SECRET_BYTES))
_NO_DIGEST = bytes(32)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key with its text, which nobody can be shown again."""

    key: ApiKey
    text: str


class Keys:
    """The keys of all tenants. A tenant is there as soon as it has a key."""

    def __init__(
        self,
        *,
        store: KeyStore,
        now: Callable[[], datetime],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._store = store
        self._now = now
        self._random_bytes = random_bytes
        self._touched: dict[str, datetime] = {}
        self._touching: set[asyncio.Task[None]] = set()

    async def create(
        self,
        tenant: str,
        *,
        scopes: Iterable[Scope] = DEFAULT_SCOPES,
        label: str = "",
        lifetime: timedelta | None = None,
    ) -> NewKey:
        """A new key beside those the tenant has. Raises `InvalidRequest` for what it cannot be."""
        now = self._now()
        key = ApiKey(
            key_id=self._random_bytes(ID_BYTES).hex(),
            tenant=require_tenant_name(tenant),
            scopes=_some(scopes),
            label=_plain(label),
            created_at=now,
            expires_at=_expiry(now, lifetime),
        )
        text = f"pgpt_{key.key_id}_{self._random_bytes(SECRET_BYTES).hex()}"
        await self._store.add(StoredKey(key=key, digest=_digest(text.encode())))
        return NewKey(key=key, text=text)

    async def list(self) -> list[ApiKey]:
        """All keys, the oldest first, those that are over included."""
        return await self._store.keys()

    async def revoke(self, key_id: str) -> ApiKey:
        """Refuse a key from now on. Raises `NotFound`."""
        return await self._store.revoke(key_id, at=self._now())

    async def any_live(self) -> bool:
        """True where at least one key opens something."""
        now = self._now()
        return any(key.is_live(now) for key in await self._store.keys())

    async def identify(self, text: bytes) -> ApiKey:
        """The live key that `text` is. Raises `NotAuthenticated`, the same for every reason."""
        match = _KEY.fullmatch(text)
        if match is None:
            raise _refused()
        stored = await self._store.find(match.group(1).decode())
        now = self._now()
        # Hashed and compared in any case: an id that is known takes no longer than one that is not.
        expected = _NO_DIGEST if stored is None else stored.digest
        same = hmac.compare_digest(_digest(text), expected)
        if stored is None or not same or not stored.key.is_live(now):
            raise _refused()
        self._note_use(stored.key, now)
        return stored.key

    async def close(self) -> None:
        """Wait until every use has been noted."""
        await asyncio.gather(*self._touching)

    def _note_use(self, key: ApiKey, now: datetime) -> None:
        """Beside the request: the one writer may be busy with a large file."""
        last = self._touched.get(key.key_id, key.last_used_at)
        if last is not None and now - last < TOUCH_EVERY:
            return
        self._touched[key.key_id] = now
        task = asyncio.create_task(self._touch(key.key_id, now))
        self._touching.add(task)
        task.add_done_callback(self._touching.discard)

    async def _touch(self, key_id: str, at: datetime) -> None:
        try:
            await self._store.touch(key_id, at=at)
        except Unavailable as error:
            _log.warning("The use of key %s could not be noted: %s", key_id, error.message)


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _refused() -> NotAuthenticated:
    return NotAuthenticated("This API key is not known here, or it has expired or been revoked")


def _some(scopes: Iterable[Scope]) -> frozenset[Scope]:
    chosen = frozenset(scopes)
    if not chosen:
        raise InvalidRequest("A key needs at least one scope", param="scopes")
    return chosen


def _plain(label: str) -> str:
    if len(label) > MAX_LABEL_CHARACTERS or not label.isprintable():
        raise InvalidRequest(
            f"A label has at most {MAX_LABEL_CHARACTERS} printable characters", param="label"
        )
    return label


def _expiry(now: datetime, lifetime: timedelta | None) -> datetime | None:
    if lifetime is None:
        return None
    if lifetime <= timedelta(0):
        raise InvalidRequest("A key must live for some time", param="expires")
    try:
        return now + lifetime
    except OverflowError as error:
        raise InvalidRequest("That is too far in the future", param="expires") from error
