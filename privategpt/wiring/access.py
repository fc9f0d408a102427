"""Who is let in, and how much each may have."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from privategpt.backends.state.database import Database
from privategpt.backends.state.keys import SqlKeyStore
from privategpt.backends.state.opening import open_database_beside
from privategpt.domain.errors import StartRefused
from privategpt.services.access import Keys
from privategpt.services.limits import Limits, TenantLimits
from privategpt.settings import LimitSettings, Settings
from privategpt.settings import TenantLimits as TenantLimitSettings
from privategpt.wiring.data_folder import require_data_folder, require_library

CREATE_A_KEY = "`privategpt keys create` makes one"


@asynccontextmanager
async def open_keys(settings: Settings, *, missing_ok: bool = True) -> AsyncGenerator[Keys]:
    """The keys, also while a server runs on the same data folder.

    Without `missing_ok` a folder in which nothing was ever stored is refused. Raises
    `StartRefused`.
    """
    if not missing_ok:
        require_library(settings)
    if settings.state.url is None:
        require_data_folder(settings)
    database = await open_database_beside(state_location(settings))
    try:
        keys = make_keys(database)
        yield keys
        await keys.close()
    finally:
        await database.close()


def make_keys(database: Database, *, now: Callable[[], datetime] | None = None) -> Keys:
    """The keys in `database`."""
    return Keys(
        store=SqlKeyStore(database=database),
        now=now or (lambda: datetime.now(UTC)),
        random_bytes=secrets.token_bytes,
    )


async def keys_to_serve_with(settings: Settings, keys: Keys) -> Keys | None:
    """`keys` where requests need one, None where everybody is let in.

    Raises `StartRefused` where nobody could come in, or everybody from everywhere.
    """
    enabled = settings.auth.enabled
    if enabled == "auto":
        enabled = bool(await keys.list())
    if not enabled:
        _refuse_open_bind(settings)
        return None
    if not await keys.any_live():
        raise StartRefused(
            f"Requests need an API key, and there is none that is live: {CREATE_A_KEY}. "
            "To serve without keys, on loopback only, set auth.enabled: false."
        )
    return keys


def _refuse_open_bind(settings: Settings) -> None:
    host = settings.server.host
    if settings.server.allow_open_bind or _is_loopback(host):
        return
    raise StartRefused(
        f"Without API keys the server listens on loopback only, and {host!r} can be reached from "
        f"elsewhere: {CREATE_A_KEY}. In a container whose port is published on loopback only, set "
        "server.allow_open_bind: true."
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may be bound to any address


def tenant_limits(settings: Settings) -> TenantLimits:
    """The operator's limits in the services' words."""
    limits = settings.limits
    return TenantLimits(
        of_all=_limits(limits),
        of_some={tenant: _limits(own) for tenant, own in limits.tenants.items()},
    )


def _limits(settings: LimitSettings | TenantLimitSettings) -> Limits:
    return Limits(
        requests_per_minute=settings.requests_per_minute,
        answers_at_once=settings.answers_at_once,
        stored_bytes=settings.stored_bytes,
        searches_per_day=(
            settings.searches_per_day if isinstance(settings, TenantLimitSettings) else None
        ),
    )


def state_location(settings: Settings) -> Path | str:
    """Where the state store is: a folder or an address."""
    url = settings.state.url
    return settings.server.data_dir if url is None else url.get_secret_value()
