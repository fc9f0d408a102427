"""`privategpt keys` and what a server makes of the keys that it finds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from privategpt.backends.state.opening import open_database, open_database_beside
from privategpt.domain.access import ApiKey, Scope
from privategpt.domain.errors import PrivateGptError, StartRefused
from privategpt.keys_command import keys_cli, table
from privategpt.services.access import Keys
from privategpt.settings import AuthSettings, ServerSettings, Settings
from privategpt.wiring.access import keys_to_serve_with, open_keys, tenant_limits

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KEY = re.compile(r"pgpt_([0-9a-f]{12})_[0-9a-f]{64}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(keys_cli, [*arguments, "--data-dir", str(folder)])


def created(folder: Path, *arguments: str) -> str:
    result = run(folder, "create", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_create_prints_the_key_alone_and_list_does_not(folder: Path) -> None:
    text = created(folder, "--tenant", "ann", "--label", "laptop", "--expires-days", "30")
    match = KEY.fullmatch(text)
    assert match is not None
    listed = run(folder, "list").stdout
    assert re.search(rf"{match.group(1)} +ann +chat,embed,read,write .* live +laptop\n", listed)
    assert text.rpartition("_")[2] not in listed


def test_create_says_beside_the_key_what_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(folder, "create", "--scope", "admin", "--scope", "read")
    assert "of default (admin, read), expires: -" in result.stderr
    assert "after its next start" in result.stderr
    assert not KEY.search(result.stderr)
    monkeypatch.setenv("PRIVATEGPT_AUTH__ENABLED", "false")
    assert "nobody is asked" in run(folder, "create").stderr
    monkeypatch.setenv("PRIVATEGPT_AUTH__ENABLED", "true")
    assert "next start" not in run(folder, "create").stderr


def test_revoke_ends_one_key_and_leaves_the_other(folder: Path) -> None:
    ids = [match.group(1) for _ in range(2) if (match := KEY.match(created(folder)))]
    assert "is refused from now on" in run(folder, "revoke", ids[0]).stdout
    states = {
        line.split()[0]: line.split()[-1] for line in run(folder, "list").stdout.split("\n")[1:-1]
    }
    assert states == {ids[0]: "revoked", ids[1]: "live"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--tenant", "Ann"], "cannot be a tenant's name"),
        (["create", "--expires-days", "0"], "must live for some time"),
        (["create", "--label", "a\nb"], "A label"),
        (["revoke", "0123456789ab"], "There is no key of that id"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, arguments: list[str], message: str) -> None:
    run(folder, "create")
    error = run(folder, *arguments).exception
    assert isinstance(error, PrivateGptError)
    assert message in error.message


@pytest.mark.parametrize(
    "arguments",
    [["--expires-days", "nan"], ["--expires-days", "1e300"], ["--scope", "root"]],
)
def test_what_is_no_option_is_a_usage_error(folder: Path, arguments: list[str]) -> None:
    assert run(folder, "create", *arguments).exit_code == 2


def test_the_table_tells_live_expired_and_revoked_apart() -> None:
    def key(name: str, **moments: datetime) -> ApiKey:
        return ApiKey(name, "ann", frozenset({Scope.CHAT}), "", NOON, **moments)

    day = timedelta(days=1)
    keys = [
        key("a"),
        key("b", expires_at=NOON + day),
        key("c", revoked_at=NOON, last_used_at=NOON - day),
    ]
    assert list(table(keys, now=NOON + day)) == [
        "id  tenant  scopes  created     expires     last used   state    label",
        "a   ann     chat    2026-03-01  -           -           live",
        "b   ann     chat    2026-03-01  2026-03-02  -           expired",
        "c   ann     chat    2026-03-01  -           2026-02-28  revoked",
    ]


# Beside a server


async def test_keys_are_made_and_revoked_while_a_server_holds_the_folder(folder: Path) -> None:
    server = await open_database(folder)
    async with open_keys(Settings(server=ServerSettings(data_dir=folder))) as keys:
        new = await keys.create("ann")
        assert await keys.identify(new.text.encode()) == new.key
    # The folder is still the server's.
    beside = await open_database_beside(f"sqlite:///{folder / 'state.db'}")
    await beside.close()
    with pytest.raises(PrivateGptError, match="in use"):
        await open_database(folder)
    await server.close()


async def test_keys_are_made_before_the_first_server(folder: Path) -> None:
    async with open_keys(Settings(server=ServerSettings(data_dir=folder))) as keys:
        await keys.create("ann")
    async with open_keys(Settings(server=ServerSettings(data_dir=folder))) as keys:
        assert [key.tenant for key in await keys.list()] == ["ann"]


# What a server makes of them


def settings(
    folder: Path,
    *,
    enabled: object = "auto",
    host: str = "127.0.0.1",
    allow_open_bind: bool = False,
) -> Settings:
    return Settings(
        server=ServerSettings(data_dir=folder, host=host, allow_open_bind=allow_open_bind),
        auth=AuthSettings.model_validate({"enabled": enabled}),
    )


async def served(chosen: Settings, *, live: int = 0, revoked: int = 0) -> Keys | None:
    async with open_keys(chosen) as keys:
        for _ in range(live):
            await keys.create("ann")
        for _ in range(revoked):
            await keys.revoke((await keys.create("ann")).key.key_id)
        return await keys_to_serve_with(chosen, keys)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
async def test_without_keys_loopback_is_served_to_everybody(folder: Path, host: str) -> None:
    assert await served(settings(folder, host=host)) is None


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "localhost.example.org"]
)
@pytest.mark.parametrize("enabled", ["auto", False])
async def test_without_keys_nothing_wider_than_loopback_is_served(
    folder: Path, host: str, enabled: object
) -> None:
    with pytest.raises(StartRefused, match="privategpt keys create") as caught:
        await served(settings(folder, host=host, enabled=enabled))
    assert "server.allow_open_bind: true" in caught.value.message
    allowed = settings(folder, host=host, enabled=enabled, allow_open_bind=True)
    assert await served(allowed) is None


@pytest.mark.parametrize("enabled", ["auto", True])
async def test_with_a_live_key_every_address_is_served_to_who_has_one(
    folder: Path, enabled: object
) -> None:
    assert await served(settings(folder, host="0.0.0.0", enabled=enabled), live=1, revoked=1)


@pytest.mark.parametrize(("enabled", "revoked"), [(True, 0), (True, 1), ("auto", 1)])
async def test_a_server_that_nobody_could_use_does_not_start(
    folder: Path, enabled: object, revoked: int
) -> None:
    with pytest.raises(StartRefused, match="none that is live: `privategpt keys create`"):
        await served(settings(folder, enabled=enabled), revoked=revoked)


async def test_keys_that_are_switched_off_are_not_asked_for(folder: Path) -> None:
    assert await served(settings(folder, enabled=False), live=1) is None


def test_limits_come_from_the_settings() -> None:
    chosen = Settings.model_validate(
        {
            "limits": {
                "requests_per_minute": 60,
                "tenants": {"ann": {"answers_at_once": 4, "searches_per_day": 0}},
            }
        }
    )
    limits = tenant_limits(chosen)
    assert (limits.of("bob").requests_per_minute, limits.of("bob").answers_at_once) == (60, None)
    ann = limits.of("ann")
    assert (ann.requests_per_minute, ann.answers_at_once, ann.searches_per_day) == (60, 4, 0)
