"""What changes a file or document, each function the whole of one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import bindparam, exists, update
from sqlalchemy.ext.asyncio import AsyncConnection

from privategpt.backends.state import statements as sql
from privategpt.backends.state.errors import not_found
from privategpt.backends.state.jobs_table import leases
from privategpt.backends.state.rows import (
    FILE_COLUMNS,
    chunk_row,
    document_row,
    file_row,
    info_of,
    inner_document_row,
    read_file,
    read_info,
)
from privategpt.backends.state.tables import DELETING, PENDING, files
from privategpt.domain.documents import Chunk, Document, File
from privategpt.domain.errors import Conflict
from privategpt.domain.library import Deletion, StoredFile

T = TypeVar("T")

# Here and not in `statements.py`, whose tables know nothing of owners.
GIVE_UP = (
    update(files)
    .where(
        files.c.state == PENDING,
        ~exists().where(leases.c.owner == files.c.owner, leases.c.until > bindparam("at")),
    )
    .values(state=DELETING)
)

# Rows are made on the event loop and stored off it; this many take it a few milliseconds.
ROWS_AT_ONCE = 500


async def commit(
    connection: AsyncConnection,
    *,
    file: File,
    documents: Sequence[Document],
    chunks: Iterable[Chunk],
    replaces: bool,
) -> StoredFile:
    """Store a pending file's documents and chunks and make it ready.

    Raises `Conflict` where it is no longer pending.
    """
    await _lock_pending(connection, file)
    if not replaces:
        same = await find(connection, file.tenant, name=file.name, sha256=file.sha256)
        if same is not None:
            await connection.execute(sql.HIDE_FILE, {"by_file_id": file.file_id})
            return same
    for document in documents:
        await connection.execute(sql.ADD_DOCUMENT, document_row(document))
    inner = [inner_document_row(one) for one in documents if one.inner_file_id is not None]
    for rows in batched(inner, ROWS_AT_ONCE):
        await connection.execute(sql.ADD_INNER_DOCUMENT, rows)
    for batch in batched(chunks, ROWS_AT_ONCE):
        await connection.execute(sql.ADD_CHUNK, [chunk_row(chunk) for chunk in batch])
    if replaces:
        await connection.execute(
            sql.HIDE_NAMESAKES,
            {"by_tenant": file.tenant, "by_name": file.name, "by_file_id": file.file_id},
        )
    await connection.execute(sql.MAKE_READY, {"by_file_id": file.file_id} | _facts(file))
    ordered = sorted(documents, key=lambda document: document.position)
    return StoredFile(file=file, documents=tuple(map(info_of, ordered)))


def _facts(file: File) -> dict[str, Any]:
    """What parsing may have found out since the file was begun."""
    return {key: value for key, value in file_row(file).items() if key != "file_id"}


async def _lock_pending(connection: AsyncConnection, file: File) -> None:
    rows = await connection.execute(sql.LOCK_NAMESAKES, {"tenant": file.tenant, "name": file.name})
    if (file.file_id, "pending") not in [tuple(row) for row in rows]:
        raise Conflict(f"The ingestion of {file.name!r} was given up; send the file again")


async def find(
    connection: AsyncConnection, tenant: str, *, name: str, sha256: str
) -> StoredFile | None:
    """The ready file of that name with those bytes."""
    result = await connection.execute(
        sql.FILE_OF_CONTENT, {"tenant": tenant, "name": name, "sha256": sha256}
    )
    return stored_file(result.all())


def stored_file(rows: Sequence[Sequence[Any]]) -> StoredFile | None:
    """The file of the rows of `FILE_OF_CONTENT`, if there are any."""
    if not rows:
        return None
    width = len(FILE_COLUMNS)
    return StoredFile(
        file=read_file(rows[0][:width]),
        documents=tuple(read_info(row[width:]) for row in rows),
    )


async def hide(connection: AsyncConnection, *, tenant: str, item_id: str) -> Deletion:
    """Hide a file, or documents of it and with the last one the file. Raises `NotFound`."""
    file_id = (await connection.execute(sql.FILE_OF_ITEM, {"item_id": item_id})).scalar()
    # The file's row is locked first, so that its last two documents cannot go side by side,
    # each believing that the other stays.
    locked = await connection.execute(
        sql.LOCK_READY_FILE, {"by_file_id": file_id, "tenant": tenant}
    )
    if locked.first() is None:
        raise not_found()
    if item_id != file_id:
        rows = await connection.execute(sql.READY_DOCUMENTS_OF_FILE, {"by_file_id": file_id})
        ready = [tuple(row) for row in rows]
        going = [doc_id for doc_id, inner in ready if item_id in (doc_id, inner)]
        if not going:
            raise not_found()
        if len(going) < len(ready):
            await connection.execute(sql.HIDE_DOCUMENT, [{"by_doc_id": one} for one in going])
            if going == [item_id]:
                return Deletion(file_id=str(file_id), doc_id=item_id)
            return Deletion(file_id=str(file_id), inner_file_id=item_id)
    await connection.execute(sql.HIDE_FILE, {"by_file_id": file_id})
    return Deletion(file_id=str(file_id))


async def abandon(connection: AsyncConnection, *, file_id: str) -> bool:
    """Hide a file that is pending; False where it is ready."""
    await connection.execute(sql.ABANDON_FILE, {"by_file_id": file_id})
    return (await connection.execute(sql.READY_FILE, {"by_file_id": file_id})).first() is None


async def forget(connection: AsyncConnection, *, deletion: Deletion) -> None:
    """Remove hidden rows; the documents and chunks below them go along."""
    if deletion.doc_id is not None:
        await connection.execute(sql.FORGET_DOCUMENT, {"by_doc_id": deletion.doc_id})
    elif deletion.inner_file_id is not None:
        await connection.execute(
            sql.FORGET_INNER_FILE, {"by_inner_file_id": deletion.inner_file_id}
        )
    else:
        await connection.execute(sql.FORGET_FILE, {"by_file_id": deletion.file_id})


async def begin(connection: AsyncConnection, *, file: File, owner: str | None) -> None:
    """Note a file as pending."""
    await connection.execute(sql.ADD_FILE, file_row(file) | {"owner": owner})


async def give_up(connection: AsyncConnection, *, at: datetime) -> int:
    """Hide for ever what is pending without an owner who is alive; how many files."""
    return int((await connection.execute(GIVE_UP, {"at": at})).rowcount)


async def set_meta(connection: AsyncConnection, *, key: str, value: str) -> None:
    """Overwrite a value."""
    await connection.execute(sql.FORGET_META, {"by_key": key})
    await connection.execute(sql.ADD_META, {"key": key, "value": value})


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """`items` in lists of `size`, the last one shorter; read no further ahead than that."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
