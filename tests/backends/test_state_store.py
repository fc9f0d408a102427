"""What only the SQL store can show: durability, faults, cancellation, schema and query plans."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import anyio
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    Select,
    column,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import ConnectionPoolEntry

from privategpt.backends.state import statements as sql
from privategpt.backends.state.database import Database
from privategpt.backends.state.migrating import configuration
from privategpt.backends.state.opening import open_database, open_state_store
from privategpt.backends.state.reading import ThreadReader
from privategpt.backends.state.store import SqlStateStore
from privategpt.backends.state.tables import schema
from privategpt.domain.documents import Chunk
from privategpt.domain.errors import (
    Conflict,
    FolderInUse,
    InvalidRequest,
    InvalidSettings,
    PrivateGptError,
    StartRefused,
    Unavailable,
)
from privategpt.domain.library import Deletion, StateStore, StoredFile
from tests.fakes.library import NOON, ingest, ingestion
from tests.fakes.postgres import postgres_database


@pytest.fixture(params=["sqlite", "postgres"])
async def location(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Path | str]:
    if request.param == "sqlite":
        yield tmp_path / "data"
    else:
        async with postgres_database() as url:
            yield url


@pytest.fixture
async def store(location: Path | str) -> AsyncGenerator[SqlStateStore]:
    opened = await open_state_store(location)
    yield opened
    await opened.close()


@pytest.fixture
async def database(location: Path | str) -> AsyncGenerator[Database]:
    opened = await open_database(location)
    yield opened
    await opened.close()


def run_python(
    script: str, *arguments: str | Path, pass_fds: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        pass_fds=pass_fds,
        timeout=60,
        check=False,
    )


# Durability


async def test_everything_is_there_after_reopening(location: Path | str) -> None:
    kept, gone = ingestion("kept", documents=2), ingestion("gone")
    store = await open_state_store(location)
    await ingest(store, kept)
    await ingest(store, gone)
    await store.begin_delete("ann", "gone")
    await store.begin_file(ingestion("pending").file)
    await store.set_embedding_fingerprint("model")
    await store.close()

    store = await open_state_store(location)
    try:
        assert await store.list_documents("ann") == kept.infos
        assert await store.hidden("ann") == {"gone", "pending"}
        assert await store.embedding_fingerprint() == "model"
        found = await store.find_file("ann", name=kept.file.name, sha256=kept.file.sha256)
        assert found == kept.stored
    finally:
        await store.close()


async def test_the_order_goes_on_after_the_newest_file_is_forgotten(store: StateStore) -> None:
    await ingest(store, ingestion("one"))
    await ingest(store, ingestion("two"))
    await store.forget(await store.begin_delete("ann", "two"))
    await ingest(store, ingestion("three"))

    assert [d.doc_id for d in await store.list_documents("ann")] == ["one/0", "three/0"]


KILLED_IN_A_COMMIT = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from privategpt.backends.state.opening import open_state_store
    from tests.fakes.library import ingest, ingestion

    async def main(location):
        store = await open_state_store(location)
        await ingest(store, ingestion("old", content="book"))
        new = ingestion("new", content="other", chunks=5000).named("book.txt")
        await store.begin_file(new.file)

        def chunks():
            yield from new.chunks[:int(sys.argv[2])]
            os.kill(os.getpid(), signal.SIGKILL)

        await store.commit_file(
            new.file, documents=new.documents, chunks=chunks(), replaces=True
        )

    location = sys.argv[1]
    asyncio.run(main(location if "://" in location else Path(location)))
"""


@pytest.mark.parametrize("stored_before", [0, 1500, 5000])
async def test_kill_9_in_a_commit_leaves_nothing_of_it_visible(
    location: Path | str, stored_before: int
) -> None:
    killed = run_python(KILLED_IN_A_COMMIT, location, str(stored_before))
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    store = await open_state_store(location)
    try:
        old = ingestion("old", content="book")
        assert await store.list_documents("ann") == old.infos
        assert await store.chunk_totals() == {"old/0": 3}
        assert await store.abandoned(pending=True) == [Deletion(file_id="new")]
        await store.forget(Deletion(file_id="new"))
        again = ingestion("new", content="other", chunks=5000).named("book.txt")
        await ingest(store, again, replaces=True)
        assert await store.list_documents("ann") == again.infos
    finally:
        await store.close()


async def test_moments_come_back_in_utc_whatever_their_zone(store: StateStore) -> None:
    tokyo = NOON.astimezone(timezone(timedelta(hours=9)))
    new = ingestion("f")
    new = replace(new, file=replace(new.file, created_at=tokyo))
    await ingest(store, new)

    found = await store.find_file("ann", name=new.file.name, sha256=new.file.sha256)

    assert found is not None
    assert found.file.created_at == datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert found.file.created_at.tzinfo == UTC


# Cancellation


async def test_a_cancelled_caller_first_learns_that_its_commit_succeeded(
    store: StateStore,
) -> None:
    new = ingestion("f", chunks=1200)
    await store.begin_file(new.file)
    begun, seen = asyncio.Event(), list[StoredFile]()

    async def commit() -> None:
        seen.append(
            await store.commit_file(
                new.file, documents=new.documents, chunks=telling(begun, new.chunks)
            )
        )
        await asyncio.sleep(0)
        raise AssertionError("the cancellation was lost")

    task = asyncio.create_task(commit())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert seen == [new.stored]
    assert await store.chunk_totals() == {"f/0": 1200}


async def test_a_cancelled_caller_first_learns_that_its_commit_failed(
    store: StateStore,
) -> None:
    new = ingestion("f", chunks=1200)
    await store.begin_file(new.file)
    begun, seen = asyncio.Event(), list[str]()

    def chunks() -> Iterator[Chunk]:
        yield from telling(begun, new.chunks)
        raise RuntimeError("broken off")

    async def commit() -> None:
        try:
            await store.commit_file(new.file, documents=new.documents, chunks=chunks())
        except RuntimeError as error:
            seen.append(str(error))
        await asyncio.sleep(0)

    task = asyncio.create_task(commit())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert seen == ["broken off"]
    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]


async def test_a_deadline_around_a_commit_still_ends_as_a_deadline(store: StateStore) -> None:
    new = ingestion("f")
    await store.begin_file(new.file)
    stored = None

    async def commit() -> None:
        nonlocal stored
        async with asyncio.timeout(60) as deadline:

            def chunks() -> Iterator[Chunk]:
                deadline.reschedule(0)
                yield from new.chunks

            stored = await store.commit_file(new.file, documents=new.documents, chunks=chunks())
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await commit()

    assert stored == new.stored


async def test_a_commit_in_a_cancelled_scope_still_returns(store: StateStore) -> None:
    new = ingestion("f", chunks=1200)
    await store.begin_file(new.file)
    stored = None

    with anyio.CancelScope() as scope:

        def chunks() -> Iterator[Chunk]:
            scope.cancel()
            yield from new.chunks

        stored = await store.commit_file(new.file, documents=new.documents, chunks=chunks())

    assert stored == new.stored


def telling(begun: asyncio.Event, chunks: tuple[Chunk, ...]) -> Iterator[Chunk]:
    begun.set()
    yield from chunks


async def test_a_large_commit_does_not_hold_up_the_event_loop_or_readers(
    store: StateStore,
) -> None:
    await ingest(store, ingestion("there"))
    new = ingestion("f", chunks=4000)
    await store.begin_file(new.file)
    commit = asyncio.create_task(
        store.commit_file(new.file, documents=new.documents, chunks=new.chunks)
    )
    answered = 0
    while not commit.done():
        assert len(await store.list_documents("ann")) <= 2
        answered += 1
    await commit
    assert answered >= 4


# Faults


class SmallDisk:
    """Lets every SQLite connection opened inside run full at `pages` pages of 4 kB."""

    def __init__(self, *, pages: int) -> None:
        self._pages = pages

    def __enter__(self) -> None:
        event.listen(Engine, "connect", self._limit)

    def __exit__(self, *_raised: object) -> None:
        event.remove(Engine, "connect", self._limit)

    def _limit(self, connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA max_page_count = {self._pages}")
        cursor.close()


async def test_a_full_disk_leaves_the_file_pending_and_the_store_usable(tmp_path: Path) -> None:
    new = ingestion("f", chunks=3000)
    with SmallDisk(pages=60):
        store = await open_state_store(tmp_path)
        await ingest(store, ingestion("there"))
        await store.begin_file(new.file)
        with pytest.raises(Unavailable, match="the disk is full") as raised:
            await store.commit_file(new.file, documents=new.documents, chunks=new.chunks)
        assert raised.value.retry_after_s is not None
        assert await store.list_documents("ann") == ingestion("there").infos
        assert await store.abandoned(pending=True) == [Deletion(file_id="f")]
        await store.close()

    store = await open_state_store(tmp_path)
    stored = await store.commit_file(new.file, documents=new.documents, chunks=new.chunks)
    assert stored == new.stored
    await store.close()


async def test_a_database_locked_from_outside_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "privategpt.backends.state.database.SQLITE_PRAGMAS", ("PRAGMA busy_timeout = 1",)
    )
    store = await open_state_store(tmp_path)
    stranger = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable, match="another process holds it"):
        await store.begin_file(ingestion("f").file)

    stranger.execute("ROLLBACK")
    stranger.close()
    await store.begin_file(ingestion("f").file)
    await store.close()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 100)
    with pytest.raises(Unavailable, match="not a database"):
        await open_state_store(tmp_path)
    assert (tmp_path / "state.db").read_bytes() == b"not a database" * 100


async def test_a_database_without_its_tables_is_unavailable(tmp_path: Path) -> None:
    store = await open_state_store(tmp_path)
    stranger = sqlite3.connect(tmp_path / "state.db")
    stranger.execute("DROP TABLE meta")
    stranger.close()
    with pytest.raises(Unavailable, match="it failed"):
        await store.check()
    await store.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    pytest.importorskip("asyncpg")
    with pytest.raises(Unavailable, match="cannot be reached"):
        await open_state_store("postgresql://ann:secret@127.0.0.1:1/db?sslmode=disable")


async def test_a_null_character_is_kept_or_refused_but_never_breaks_the_store(
    store: StateStore,
) -> None:
    new = ingestion("f")
    document = replace(new.documents[0], text="null \0 character")
    await store.begin_file(new.file)
    try:
        await store.commit_file(new.file, documents=[document], chunks=[])
    except InvalidRequest:
        assert await store.abandoned(pending=True) == [Deletion(file_id="f")]
    else:
        assert await store.document("ann", "f/0") == document


async def test_a_failure_says_nothing_of_the_document(tmp_path: Path) -> None:
    store = await open_state_store(tmp_path)
    new = ingestion("f")
    await store.begin_file(new.file)
    twice = [new.documents[0], new.documents[0]]
    with pytest.raises(Conflict) as raised:
        await store.commit_file(new.file, documents=twice, chunks=[])
    assert "Zürich" not in str(raised.value.__cause__)
    await store.close()


async def test_a_login_to_no_database_says_so() -> None:
    async with postgres_database() as url:
        with pytest.raises(Unavailable, match="there is no such database"):
            await open_state_store(f"{url}_x")


async def test_a_read_that_waits_too_long_is_told(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'state.db'}")
    gate = threading.Event()

    def wait(*_: object) -> None:
        assert gate.wait(30)

    event.listen(engine, "connect", wait)
    reader = ThreadReader(engine=engine, threads=1, wait_s=0.01)
    for _ in range(2):
        with pytest.raises(Unavailable, match="in time"):
            await reader.rows(text("SELECT 1"), {})
    gate.set()
    await reader.close()


async def test_a_read_that_fails_leaves_those_beside_it_their_answers(database: Database) -> None:
    reads = [database.rows(text(f"SELECT {what}")) for what in ("1", "nothing", "2", "3")]
    one, failed, two, three = await asyncio.gather(*reads, return_exceptions=True)
    assert [list(rows) for rows in (one, two, three) if isinstance(rows, list)] == [
        [(1,)],
        [(2,)],
        [(3,)],
    ]
    assert isinstance(failed, Unavailable)


async def test_values_are_those_of_rows_without_names(database: Database) -> None:
    new = ingestion("one", documents=2)
    await ingest(SqlStateStore(database=database), new)
    first, *_, last = new.chunks
    asked = {"tenant": "ann", "id_0": first.chunk_id, "id_1": last.chunk_id}
    named = await database.rows(sql.chunks_of(2), asked)
    values = await database.values(sql.chunks_of(2), asked)
    assert len(named) == 2
    assert [tuple(row) for row in values] == [tuple(row) for row in named]


async def test_values_that_cannot_be_read_are_told_and_the_next_can(database: Database) -> None:
    found = select(schema.tables["files"].c.name)
    missing = select(column("nothing", Integer)).select_from(schema.tables["files"])
    with pytest.raises(Unavailable):
        await database.values(missing, {})
    assert list(await database.values(found, {})) == []


async def test_a_closed_store_does_not_serve(tmp_path: Path) -> None:
    store = await open_state_store(tmp_path)
    await store.close()
    with pytest.raises(Unavailable):
        await store.check()


async def test_text_that_no_database_can_hold_is_the_callers_fault(store: StateStore) -> None:
    new = ingestion("f")
    await store.begin_file(new.file)
    broken = replace(new.documents[0], text="lone \ud800 surrogate")

    with pytest.raises(InvalidRequest, match="cannot be stored"):
        await store.commit_file(new.file, documents=[broken], chunks=[])

    assert await store.abandoned(pending=True) == [Deletion(file_id="f")]


# The folder


async def test_the_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "data"
    store = await open_state_store(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    await store.close()


async def test_a_second_store_in_the_folder_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = await open_state_store(Path("local_data"))
    with pytest.raises(FolderInUse, match="'local_data'"):
        await open_state_store(Path("local_data"))
    await store.close()
    await store.close()
    await (await open_state_store(Path("local_data"))).close()


async def test_a_refused_start_lets_go_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 100)
    with pytest.raises(Unavailable):
        await open_state_store(tmp_path)
    (tmp_path / "state.db").unlink()
    await (await open_state_store(tmp_path)).close()


async def test_another_process_is_refused_while_this_one_lives(tmp_path: Path) -> None:
    store = await open_state_store(tmp_path)
    other = run_python(OPENS, tmp_path)
    await store.close()
    assert "FolderInUse" in other.stderr
    assert run_python(OPENS, tmp_path).returncode == 0


OPENS = """
    import asyncio, sys
    from pathlib import Path
    from privategpt.backends.state.opening import open_state_store

    async def main():
        await (await open_state_store(Path(sys.argv[1]))).close()

    asyncio.run(main())
"""


async def test_a_worker_forked_from_a_killed_process_does_not_keep_the_folder(
    tmp_path: Path,
) -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(read_end, True)
    killed = run_python(FORKS_AND_DIES, tmp_path, str(read_end), pass_fds=[read_end])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    os.close(read_end)

    store = await open_state_store(tmp_path)
    await store.close()

    os.close(write_end)  # the orphan reads the end and leaves


FORKS_AND_DIES = """
    import os, signal, sys
    from pathlib import Path
    from privategpt.backends.state.folder import lock_folder

    lock = lock_folder(Path(sys.argv[1]))
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.close(1), os.close(2)  # or the test would wait for their end
        os.write(tell, b"x")
        os.read(int(sys.argv[2]), 1)
        os._exit(0)
    os.read(ready, 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


# Addresses


async def test_a_sqlite_address_names_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "50% ?full"
    store = await open_state_store(f"sqlite:///{tmp_path / 'sub' / 'library.db'}")
    await store.close()
    assert (tmp_path / "sub" / "library.db").exists()
    store = await open_state_store(folder)
    await ingest(store, ingestion("f"))
    await store.close()
    assert (folder / "state.db").exists()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "not a database address"),
        ("mysql://ann:secret@db/privategpt", "'mysql' is not supported"),
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
    ],
)
async def test_an_address_that_cannot_be_used_is_refused_without_its_secret(
    address: str, message: str
) -> None:
    with pytest.raises(InvalidSettings, match=message) as raised:
        await open_state_store(address)
    assert "secret" not in raised.value.message


async def test_postgresql_without_its_driver_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing_installed(_name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing_installed)
    with pytest.raises(InvalidSettings, match=r"privategpt\[postgres\]"):
        await open_state_store("postgresql://127.0.0.1/privategpt")


# Schema, connections and plans


async def test_the_revisions_lead_to_the_tables_of_this_version(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), schema))

    async def transaction(connection: AsyncConnection) -> list[object]:
        return await connection.run_sync(differences)

    assert await database.write(transaction) == []


async def test_the_revisions_lead_back_again(database: Database) -> None:
    def back_and_forth(connection: Connection) -> set[str]:
        config = configuration(connection)
        command.downgrade(config, "base")
        left = set(inspect(connection).get_table_names())
        command.upgrade(config, "head")
        return left

    async def transaction(connection: AsyncConnection) -> set[str]:
        return await connection.run_sync(back_and_forth)

    assert await database.write(transaction) <= {"alembic_version"}
    await database.rows(text("SELECT * FROM files, documents, chunks, meta"))


async def test_a_store_of_a_newer_version_is_refused(location: Path | str) -> None:
    database = await open_database(location)

    async def from_the_future(connection: AsyncConnection) -> None:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    await database.write(from_the_future)
    await database.close()

    with pytest.raises(StartRefused, match="newer version"):
        await open_state_store(location)


async def test_processes_that_start_together_on_one_server_migrate_once() -> None:
    async with postgres_database() as url:
        stores = await asyncio.gather(*(open_state_store(url) for _ in range(4)))
        twins = [ingestion(f"twin{number}", content="a") for number in range(4)]
        stored = await asyncio.gather(*map(ingest, stores, twins))
        assert len({one.file.file_id for one in stored}) == 1
        for store in stores:
            await store.close()


async def test_sqlite_is_set_to_lose_nothing(tmp_path: Path) -> None:
    database = await open_database(tmp_path)

    async def pragmas(connection: AsyncConnection) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        return {n: await connection.scalar(text(f"PRAGMA {n}")) for n in names}

    full = 2
    assert await database.write(pragmas) == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }
    await database.close()


async def test_what_reads_cannot_write(tmp_path: Path) -> None:
    database = await open_database(tmp_path)
    with pytest.raises(PrivateGptError, match="may not be written"):
        await database.rows(text("DELETE FROM files"))
    await database.close()


SEARCHES = {
    "HIDDEN_IDS": sql.HIDDEN_IDS,
    "DOCUMENTS_BEHIND": sql.DOCUMENTS_BEHIND,
    "CHUNKS_BETWEEN": sql.CHUNKS_BETWEEN,
    "CHUNKS": sql.chunks_of(4),
    "DOCUMENT": sql.DOCUMENT,
    "FILE_OF_CONTENT": sql.FILE_OF_CONTENT,
    "CHUNKS_BEHIND": sql.CHUNKS_BEHIND,
    "HIDDEN_FILES": sql.HIDDEN_FILES,
    "DELETING_FILES": sql.DELETING_FILES,
    "DELETING_DOCUMENTS": sql.DELETING_DOCUMENTS,
}
SMALL = ("ix_files_hidden", "ix_documents_hidden")


@pytest.mark.parametrize("name", SEARCHES)
async def test_no_read_grows_with_the_library(tmp_path: Path, name: str) -> None:
    await (await open_state_store(tmp_path)).close()
    statement = SEARCHES[name]
    assert isinstance(statement, Select) or name == "HIDDEN_IDS"
    query = str(statement.compile(dialect=sqlite.dialect()))
    connection = sqlite3.connect(tmp_path / "state.db")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {query}", ["x"] * query.count("?"))
    plan = [str(row[3]) for row in rows]
    connection.close()

    scans = [step for step in plan if step.startswith("SCAN")]
    assert [step for step in scans if not step.endswith(SMALL)] == []
    assert not [step for step in plan if "TEMP B-TREE" in step]
    # The tenant's index of names matches every one of its files.
    assert not [step for step in plan if "ix_files_tenant_name" in step]
