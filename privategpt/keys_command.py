"""`privategpt keys`: make, show and end API keys, also while a server runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from privategpt.command_settings import DataDir, read_settings
from privategpt.domain.access import DEFAULT_TENANT, ApiKey, Scope
from privategpt.services.access import DEFAULT_SCOPES, NewKey
from privategpt.settings import Settings

keys_cli = typer.Typer(help="API keys: create, list, revoke.", no_args_is_help=True)

COLUMNS = ("id", "tenant", "scopes", "created", "expires", "last used", "state", "label")


@keys_cli.command()
def create(
    tenant: Annotated[
        str, typer.Option(help="Whose documents the key opens; made with its first key.")
    ] = DEFAULT_TENANT,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="A right; repeat it for several. All but admin without it."),
    ] = None,
    label: Annotated[str, typer.Option(help="A note for `keys list`.")] = "",
    expires_days: Annotated[
        float | None, typer.Option(help="Days until it is refused; never without it.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Create a key and print it, this one time."""
    from privategpt.wiring.access import open_keys

    settings = read_settings(data_dir=data_dir)

    async def run() -> NewKey:
        async with open_keys(settings) as keys:
            return await keys.create(
                tenant,
                scopes=scope or DEFAULT_SCOPES,
                label=label,
                lifetime=None if expires_days is None else _days(expires_days),
            )

    new = asyncio.run(run())
    # The key alone on stdout, so that a script can take it from there.
    print(new.text)
    for line in _about(new.key, settings):
        print(line, file=sys.stderr)


@keys_cli.command("list")
def list_keys(data_dir: DataDir = None) -> None:
    """Show all keys without their secrets, the oldest first."""
    from privategpt.wiring.access import open_keys

    async def run() -> list[ApiKey]:
        async with open_keys(read_settings(data_dir=data_dir), missing_ok=False) as keys:
            return await keys.list()

    for line in table(asyncio.run(run()), now=datetime.now(UTC)):
        print(line)


@keys_cli.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The id that `keys list` shows.")],
    data_dir: DataDir = None,
) -> None:
    """Refuse a key from the next request on."""
    from privategpt.wiring.access import open_keys

    async def run() -> ApiKey:
        async with open_keys(read_settings(data_dir=data_dir), missing_ok=False) as keys:
            return await keys.revoke(key_id)

    key = asyncio.run(run())
    print(f"{key.key_id} of {key.tenant} is refused from now on")


def table(keys: Sequence[ApiKey], *, now: datetime) -> Iterator[str]:
    """The lines of `keys list`, in columns as wide as what is in them."""
    rows = [COLUMNS, *(_row(key, now) for key in keys)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _row(key: ApiKey, now: datetime) -> tuple[str, ...]:
    state = "live" if key.is_live(now) else "revoked" if key.revoked_at else "expired"
    return (
        key.key_id,
        key.tenant,
        ",".join(sorted(key.scopes)),
        _day(key.created_at),
        _day(key.expires_at),
        _day(key.last_used_at),
        state,
        key.label,
    )


def _day(moment: datetime | None) -> str:
    return "-" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d")


def _about(key: ApiKey, settings: Settings) -> Iterator[str]:
    yield (
        f"Key {key.key_id} of {key.tenant} ({', '.join(sorted(key.scopes))}), expires: "
        f"{_day(key.expires_at)}. It is shown this once."
    )
    if settings.auth.enabled == "auto":
        yield "A server that runs without keys asks for them after its next start."
    elif settings.auth.enabled is False:
        yield "auth.enabled is false, so nobody is asked for it."


def _days(days: float) -> timedelta:
    try:
        return timedelta(days=days)
    except (OverflowError, ValueError) as error:
        raise typer.BadParameter(
            "That is no number of days", param_hint="--expires-days"
        ) from error
