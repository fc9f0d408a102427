"""Many files from the command line, and folders that are watched."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from privategpt.domain.errors import EngineUnavailable, InvalidRequest
from privategpt.domain.jobs import Progress
from privategpt.services.batch import BatchResult, NamedFile, files_below, ingest_files
from privategpt.services.watching import Changes, FolderWatch
from tests.fakes.wired import WiredLibrary


@dataclass
class Reports:
    """What a person was told."""

    told: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    progress: list[Progress] = field(default_factory=list[Progress])

    def began(self, file: NamedFile) -> None:
        self.told.append(("began", file.name))

    def advanced(self, file: NamedFile, progress: Progress) -> None:
        self.progress.append(progress)

    def ended(self, file: NamedFile) -> None:
        self.told.append(("ended", file.name))


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    (tmp_path / "uploads").mkdir()
    return WiredLibrary(folder=tmp_path / "uploads")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, a hidden one, and one in a hidden folder."""
    docs = tmp_path / "docs"
    for name in ("b.txt", "sub/a.txt", ".hidden", ".git/config"):
        write(docs / name, f"Text of {name}.")
    return docs


def write(path: Path, text: str) -> None:
    """Write a file, its time of change another than before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As for a folder of somebody else; the user who runs the tests may be allowed everything."""
    scandir = os.scandir

    def refusing(path: str) -> object:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)


async def ingested(
    library: WiredLibrary, files: Sequence[NamedFile], *, replace: bool = False
) -> BatchResult:
    return await ingest_files(
        files, ingestion=library.ingestion, tenant="ann", reporter=Reports(), replace=replace
    )


async def texts(library: WiredLibrary) -> dict[str, str]:
    found = await library.state.list_documents("ann")
    return {
        str(info.metadata["file_name"]): (await library.state.document("ann", info.doc_id)).text
        for info in found
    }


def test_files_are_named_by_their_path_below_the_folder(folder: Path) -> None:
    single = folder / "b.txt"
    assert files_below([folder, single, folder]) == [
        NamedFile(single, "b.txt"),
        NamedFile(folder / "sub" / "a.txt", "sub/a.txt"),
    ]


async def test_a_folder_that_cannot_be_read_is_told_and_the_rest_is_ingested(
    library: WiredLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, folder / "sub")
    files = files_below([folder])
    assert files == [NamedFile(folder / "b.txt", "b.txt"), NamedFile(folder / "sub", "sub")]
    result = await ingested(library, files)
    assert (result.ingested, [failed.file.name for failed in result.failures]) == (1, ["sub"])
    assert result.failures[0].reason.startswith("it cannot be read: ")


def test_a_folder_that_was_given_and_cannot_be_read_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, folder)
    assert files_below([folder]) == [NamedFile(folder, "docs")]


def test_names_of_another_time_are_read_as_letters(tmp_path: Path) -> None:
    for name in (b"gr\xfc\xdfe.txt", b"gr\xfc\xdfe\xff.txt", "grüße.txt".encode()):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text("Text.")
    names = sorted(file.name for file in files_below([tmp_path]))
    assert names == ["grüße.txt", "grüße.txt", "grüßeÿ.txt"]


def test_links_to_folders_are_not_followed_and_those_to_files_are(folder: Path) -> None:
    (folder / "again").symlink_to(folder)
    (folder / "link.txt").symlink_to(folder / "b.txt")
    (folder / "broken.txt").symlink_to(folder / "nothing")
    assert [file.name for file in files_below([folder])] == ["b.txt", "link.txt", "sub/a.txt"]


def test_what_is_neither_a_file_nor_a_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="'pipe' is neither a file nor a folder"):
        files_below([tmp_path / "pipe"])
    assert files_below([tmp_path]) == []


async def test_a_batch_tells_what_became_of_each_file(library: WiredLibrary, folder: Path) -> None:
    write(folder / "empty.txt", "")
    gone = NamedFile(folder / "gone.txt", "gone.txt")
    reports = Reports()
    result = await ingest_files(
        [*files_below([folder]), gone],
        ingestion=library.ingestion,
        tenant="ann",
        reporter=reports,
    )
    assert (result.ingested, result.already_there) == (2, 0)
    assert [(failed.file.name, failed.reason) for failed in result.failures] == [
        ("empty.txt", "The file is empty"),
        ("gone.txt", "it cannot be read: No such file or directory"),
    ]
    assert sorted(reports.told) == sorted(
        (what, outcome.file.name) for outcome in result.outcomes for what in ("began", "ended")
    )
    assert Progress(1, 1, 1, 1) in reports.progress


async def test_what_is_there_is_not_read_again(library: WiredLibrary, folder: Path) -> None:
    files = files_below([folder])
    await ingested(library, files)
    for replace in (False, True):
        again = await ingested(library, files, replace=replace)
        assert (again.ingested, again.already_there, again.failures) == (0, 2, ())
        assert all(outcome.reason == "" for outcome in again.outcomes)
    assert sorted(library.parser.parsed) == ["b.txt", "sub/a.txt"]


@pytest.mark.parametrize(("replace", "documents"), [(False, 3), (True, 2)])
async def test_changed_files_are_added_or_take_the_old_ones_place(
    library: WiredLibrary, folder: Path, replace: bool, documents: int
) -> None:
    await ingested(library, files_below([folder]))
    write(folder / "b.txt", "Another text.")
    result = await ingested(library, files_below([folder]), replace=replace)
    assert (result.ingested, result.already_there) == (1, 1)
    assert len(await library.state.list_documents("ann")) == documents


async def test_of_two_files_with_one_name_the_second_does_not_replace_the_first(
    library: WiredLibrary, folder: Path, tmp_path: Path
) -> None:
    write(tmp_path / "other" / "b.txt", "The other.")
    files = files_below([folder, tmp_path / "other"])
    result = await ingested(library, files, replace=True)
    assert [failed.file.path for failed in result.failures] == [tmp_path / "other" / "b.txt"]
    assert (await texts(library))["b.txt"] == "Text of b.txt."


# Watching


@dataclass
class Watched:
    """A folder that is looked at when the test says so."""

    library: WiredLibrary
    paths: list[Path]
    deletes: bool = False

    def __post_init__(self) -> None:
        self._watch = FolderWatch(
            paths=self.paths,
            ingestion=self.library.ingestion,
            tenant="ann",
            deletes=self.deletes,
        )

    async def look(self) -> Changes:
        """Look, and follow what has changed."""
        changes = await self._watch.look()
        if changes:
            await self._watch.follow(changes, reporter=Reports())
        return changes


async def test_the_first_look_takes_what_is_there_and_the_next_nothing(
    library: WiredLibrary, folder: Path
) -> None:
    watched = Watched(library, [folder])
    assert [file.name for file in (await watched.look()).files] == ["b.txt", "sub/a.txt"]
    assert await watched.look() == Changes()
    assert sorted(await texts(library)) == ["b.txt", "sub/a.txt"]


async def test_new_and_changed_files_are_taken_once_they_rest(
    library: WiredLibrary, folder: Path
) -> None:
    watched = Watched(library, [folder])
    await watched.look()
    write(folder / "b.txt", "Half of")
    write(folder / "new.txt", "New.")
    assert await watched.look() == Changes()
    write(folder / "b.txt", "Half of it, and the rest.")
    assert [file.name for file in (await watched.look()).files] == ["new.txt"]
    assert [file.name for file in (await watched.look()).files] == ["b.txt"]
    assert await texts(library) == {
        "b.txt": "Half of it, and the rest.",
        "new.txt": "New.",
        "sub/a.txt": "Text of sub/a.txt.",
    }
    assert await watched.look() == Changes()


async def test_what_is_touched_without_a_change_is_not_read_again(
    library: WiredLibrary, folder: Path
) -> None:
    watched = Watched(library, [folder])
    await watched.look()
    write(folder / "b.txt", "Text of b.txt.")
    await watched.look()
    assert await watched.look()
    assert sorted(library.parser.parsed) == ["b.txt", "sub/a.txt"]


@pytest.mark.parametrize("deletes", [False, True])
async def test_documents_go_with_their_files_only_where_that_was_asked_for(
    library: WiredLibrary, folder: Path, deletes: bool
) -> None:
    await library.add("from elsewhere.txt", "Stays.")
    watched = Watched(library, [folder], deletes=deletes)
    await watched.look()
    (folder / "b.txt").unlink()
    assert await watched.look() == Changes()
    assert (await watched.look()).gone == (("b.txt",) if deletes else ())
    assert ("b.txt" in await texts(library)) is not deletes
    assert await watched.look() == Changes()
    write(folder / "b.txt", "Back again.")
    await watched.look()
    await watched.look()
    assert await texts(library) == {
        "b.txt": "Back again.",
        "sub/a.txt": "Text of sub/a.txt.",
        "from elsewhere.txt": "Stays.",
    }


async def test_a_file_that_is_away_for_a_moment_keeps_its_documents(
    library: WiredLibrary, folder: Path
) -> None:
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    text = (folder / "b.txt").read_text()
    (folder / "b.txt").unlink()
    await watched.look()
    write(folder / "b.txt", text)
    assert (await watched.look()).gone == ()


async def test_a_folder_that_is_away_deletes_nothing(library: WiredLibrary, folder: Path) -> None:
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    await asyncio.to_thread(folder.rename, folder.parent / "elsewhere")
    for _ in range(3):
        assert await watched.look() == Changes()
    assert len(await texts(library)) == 2


@pytest.mark.parametrize("number", [errno.EACCES, errno.ESTALE, errno.EIO])
async def test_a_folder_that_cannot_be_looked_at_deletes_nothing_and_ends_nothing(
    library: WiredLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    stat = Path.stat

    def failing(path: Path, **options: bool) -> os.stat_result:
        if path.is_relative_to(folder):
            raise OSError(number, os.strerror(number), str(path))
        return stat(path, **options)

    with monkeypatch.context() as away:
        away.setattr(Path, "stat", failing)
        for _ in range(3):
            assert await watched.look() == Changes()
    assert await watched.look() == Changes()
    assert len(await texts(library)) == 2


async def test_a_folder_inside_that_cannot_be_read_any_more_keeps_its_documents(
    library: WiredLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    stat = Path.stat

    def failing(path: Path, **options: bool) -> os.stat_result:
        if path.parent == folder / "sub":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    forbid(monkeypatch, folder / "sub")
    monkeypatch.setattr(Path, "stat", failing)
    for _ in range(3):
        assert (await watched.look()).gone == ()
    assert len(await texts(library)) == 2


async def test_a_drive_that_is_away_keeps_its_documents_though_its_folder_is_there(
    library: WiredLibrary, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_drive, stat = True, Path.stat

    def status(path: Path, **options: bool) -> os.stat_result:
        found = stat(path, **options)
        if not path.is_relative_to(folder) or not on_a_drive:
            return found
        fields = list(found)
        fields[2] += 1  # st_dev
        return os.stat_result((*fields, *found[10:]))

    monkeypatch.setattr(Path, "stat", status)
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    on_a_drive = False
    (folder / "b.txt").unlink()
    (folder / "sub" / "a.txt").unlink()
    for _ in range(3):
        assert await watched.look() == Changes()
    assert len(await texts(library)) == 2


async def test_a_link_that_is_removed_is_gone_wherever_it_led(
    library: WiredLibrary, folder: Path
) -> None:
    (folder / "link.txt").symlink_to("/proc/version")
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    (folder / "link.txt").unlink()
    await watched.look()
    assert (await watched.look()).gone == ("link.txt",)


async def test_what_somebody_else_has_deleted_is_gone_too(
    library: WiredLibrary, folder: Path
) -> None:
    watched = Watched(library, [folder], deletes=True)
    await watched.look()
    for info in await library.state.list_documents("ann"):
        await library.ingestion.delete("ann", info.doc_id)
    (folder / "b.txt").unlink()
    await watched.look()
    assert (await watched.look()).gone == ("b.txt",)


async def test_a_file_is_tried_again_when_it_changes_or_the_engine_is_back(
    library: WiredLibrary, folder: Path
) -> None:
    write(folder / "empty.txt", "")
    library.embedding.failure = EngineUnavailable("down")
    watched = Watched(library, [folder])
    assert len((await watched.look()).files) == 3
    library.embedding.failure = None
    assert [file.name for file in (await watched.look()).files] == ["b.txt", "sub/a.txt"]
    assert await watched.look() == Changes()
    write(folder / "empty.txt", "No more.")
    await watched.look()
    assert [file.name for file in (await watched.look()).files] == ["empty.txt"]
    assert len(await texts(library)) == 3
