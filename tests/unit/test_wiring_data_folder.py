"""A data folder that cannot be used is told before anything is opened in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from privategpt.domain.errors import StartRefused
from privategpt.settings import Settings, load_settings
from privategpt.wiring import open_library, open_server, optimize_index
from privategpt.wiring.access import open_keys
from privategpt.wiring.data_folder import require_data_folder, require_library


def settings_of(folder: Path, **environ: str) -> Settings:
    return load_settings({"PRIVATEGPT_DATA_DIR": str(folder), **environ})


def forbid(monkeypatch: pytest.MonkeyPatch, entry: Path) -> None:
    """As for a file of another user; the user who runs the tests may be allowed everything."""
    allowed: Callable[[Path, int], bool] = os.access

    def access(path: Path, mode: int) -> bool:
        return path != entry and allowed(path, mode)

    monkeypatch.setattr(os, "access", access)


def test_a_folder_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    require_data_folder(settings_of(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("below", "reason"), [("", "it is a file"), ("x", "Not a directory")])
async def test_a_file_is_no_data_folder(tmp_path: Path, below: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    settings = settings_of(tmp_path / "file" / below)
    for opening in (open_library, open_server, open_keys):
        with pytest.raises(StartRefused, match=f"cannot be used: {reason}"):
            async with opening(settings):
                pass


@pytest.mark.parametrize("name", ["state.db", "vectors/segments", "jobs/lock"])
def test_a_file_of_somebody_else_is_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    entry = tmp_path / name
    entry.parent.mkdir(exist_ok=True)
    entry.write_text("")
    entry.chmod(0o600)
    require_data_folder(settings_of(tmp_path))
    forbid(monkeypatch, entry)
    with pytest.raises(StartRefused) as refusal:
        require_data_folder(settings_of(tmp_path))
    assert f"'{name}' may not be read and written by user {os.geteuid()}" in refusal.value.message
    assert f"it is -rw------- of user {entry.stat().st_uid}" in refusal.value.message


@pytest.mark.parametrize(
    ("blocks", "free", "refused"), [(9, 0, True), (9, 1, False), (0, 0, False)]
)
def test_a_full_disk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, free: int, refused: bool
) -> None:
    disk = os.statvfs_result((4096, 4096, blocks, free, free, 9, 9, 9, 0, 255))

    def statvfs(_: Path) -> os.statvfs_result:
        return disk

    monkeypatch.setattr(os, "statvfs", statvfs)
    with pytest.raises(StartRefused, match="its disk is full") if refused else nullcontext():
        require_data_folder(settings_of(tmp_path))


def test_a_file_system_that_may_not_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = os.statvfs_result((4096, 4096, 9, 9, 9, 9, 9, 9, os.ST_RDONLY, 255))

    def statvfs(_: Path) -> os.statvfs_result:
        return disk

    monkeypatch.setattr(os, "statvfs", statvfs)
    forbid(monkeypatch, tmp_path)
    with pytest.raises(StartRefused, match="it lies on a file system that may not be written"):
        require_data_folder(settings_of(tmp_path))


def test_a_file_that_goes_meanwhile_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "state.db-wal"
    entry.write_text("")
    allowed: Callable[[Path, int], bool] = os.access

    def access(path: Path, mode: int) -> bool:
        entry.unlink(missing_ok=True)
        return allowed(path, mode)

    monkeypatch.setattr(os, "access", access)
    require_data_folder(settings_of(tmp_path))


def test_what_is_not_ours_may_be_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lost+found").mkdir()
    forbid(monkeypatch, tmp_path / "lost+found")
    require_data_folder(settings_of(tmp_path))


def test_a_folder_that_is_misspelt_is_neither_made_nor_sound(tmp_path: Path) -> None:
    for folder in (tmp_path / "nothing", tmp_path):
        with pytest.raises(StartRefused, match=r"There is no library in .*'state\.db' is missing"):
            require_library(settings_of(folder))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "state.db").write_text("")
    require_library(settings_of(tmp_path))


def test_the_library_of_a_database_server_is_not_looked_for_in_the_folder(tmp_path: Path) -> None:
    require_library(settings_of(tmp_path, PRIVATEGPT_STATE__URL="postgresql://host/name"))


async def test_nothing_is_optimized_where_no_library_is(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="There is no library"):
        await optimize_index(settings_of(tmp_path / "nothing"))
