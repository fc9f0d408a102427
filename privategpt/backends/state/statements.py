"""Every statement of the state store, built once.

What reads names the tenant and takes ready rows alone; the sweeper's, `reindex`'s and `check`'s
statements at the end see all tenants.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    String,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from privategpt.backends.state.rows import CHUNK_COLUMNS, FILE_COLUMNS, INFO_COLUMNS
from privategpt.backends.state.tables import (
    DELETING,
    PENDING,
    READY,
    chunks,
    documents,
    files,
    inner_documents,
    meta,
)

_tenant: BindParameter[str] = bindparam("tenant")
_file_id: BindParameter[str] = bindparam("by_file_id")
_doc_id: BindParameter[str] = bindparam("by_doc_id")
_inner_file_id: BindParameter[str] = bindparam("by_inner_file_id")

_mine = files.c.tenant == _tenant
_file_is_ready = files.c.state == READY
_document_is_ready = documents.c.state == READY


def _of_document(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """True where the document's file meets `condition`."""
    return exists().where(files.c.file_id == documents.c.file_id, condition)


_visible = and_(_file_is_ready, _document_is_ready)

# Reading, within one tenant

FILE_OF_CONTENT = (
    select(*FILE_COLUMNS, *INFO_COLUMNS)
    .join_from(files, documents)
    .outerjoin(inner_documents)
    .where(
        _mine,
        files.c.name == bindparam("name"),
        files.c.sha256 == bindparam("sha256"),
        _visible,
    )
    .order_by(documents.c.position)
)

# Of documents the few hidden ones are looked at, not the tenant's many files: SQLite would turn a
# join round and take 5 ms for 10,000 files, on every query.
HIDDEN_IDS = union_all(
    select(files.c.file_id).where(_mine, files.c.state != READY),
    select(documents.c.doc_id).where(documents.c.state != READY, _of_document(_mine)),
)

PLACE_OF_DOCUMENT = (
    select(files.c.sequence, documents.c.position)
    .join_from(documents, files)
    .where(documents.c.doc_id == _doc_id, _mine, _visible)
)

DOCUMENTS_BEHIND = (
    select(*INFO_COLUMNS, files.c.sequence)
    .join_from(files, documents)
    .outerjoin(inner_documents)
    .where(
        _mine,
        _visible,
        files.c.sequence >= bindparam("sequence"),
        or_(
            files.c.sequence > bindparam("sequence"),
            documents.c.position > bindparam("position"),
        ),
    )
    .order_by(files.c.sequence, documents.c.position)
    .limit(bindparam("size"))
)

DOCUMENT = (
    select(documents, inner_documents.c.inner_file_id)
    .join_from(documents, files)
    .outerjoin(inner_documents)
    .where(documents.c.doc_id == _doc_id, _mine, _visible)
)


@cache
def chunks_of(count: int) -> Select[*tuple[Any, ...]]:
    """Those whose ids are `id_0`, `id_1` and so on: one parameter that is a list would be unrolled
    anew for every search, which takes as long as finding the chunks.
    """
    ids = [bindparam(f"id_{number}", type_=String) for number in range(count)]
    return (
        select(*CHUNK_COLUMNS, *INFO_COLUMNS)
        .join_from(chunks, documents)
        .join(files)
        .outerjoin(inner_documents)
        .where(chunks.c.chunk_id.in_(ids), _mine, _visible)
    )


CHUNKS_BETWEEN = (
    select(*CHUNK_COLUMNS)
    .join_from(chunks, documents)
    .join(files)
    .where(
        chunks.c.doc_id == _doc_id,
        chunks.c.position.between(bindparam("first"), bindparam("last")),
        _mine,
        _visible,
    )
    .order_by(chunks.c.position)
)

# Writing

ADD_FILE = insert(files).values(state=PENDING)
ADD_DOCUMENT = insert(documents).values(state=READY)
ADD_INNER_DOCUMENT = insert(inner_documents)
ADD_CHUNK = insert(chunks)

# Locks all files of a name on PostgreSQL, where two processes may commit at the same moment; in
# order, so that they cannot lock each other out. SQLite has the write lock and ignores it.
LOCK_NAMESAKES = (
    select(files.c.file_id, files.c.state)
    .where(_mine, files.c.name == bindparam("name"))
    .order_by(files.c.sequence)
    .with_for_update()
)
LOCK_READY_FILE = (
    select(files.c.file_id)
    .where(files.c.file_id == _file_id, _mine, _file_is_ready)
    .with_for_update()
)
MAKE_READY = update(files).where(files.c.file_id == _file_id).values(state=READY)
HIDE_FILE = update(files).where(files.c.file_id == _file_id).values(state=DELETING)
ABANDON_FILE = (
    update(files)
    .where(files.c.file_id == _file_id, files.c.state == PENDING)
    .values(state=DELETING)
)
READY_FILE = select(files.c.file_id).where(files.c.file_id == _file_id, _file_is_ready)
HIDE_DOCUMENT = update(documents).where(documents.c.doc_id == _doc_id).values(state=DELETING)
HIDE_NAMESAKES = (
    update(files)
    .where(
        # SQLAlchemy keeps the columns' own names for the values.
        files.c.tenant == bindparam("by_tenant"),
        files.c.name == bindparam("by_name"),
        files.c.file_id != _file_id,
        _file_is_ready,
    )
    .values(state=DELETING)
)

FILE_OF_ITEM = union_all(
    select(files.c.file_id).where(files.c.file_id == bindparam("item_id")),
    select(documents.c.file_id).where(documents.c.doc_id == bindparam("item_id")),
    select(documents.c.file_id)
    .join_from(inner_documents, documents)
    .where(inner_documents.c.inner_file_id == bindparam("item_id")),
)
READY_DOCUMENTS_OF_FILE = (
    select(documents.c.doc_id, inner_documents.c.inner_file_id)
    .join_from(documents, inner_documents, isouter=True)
    .where(documents.c.file_id == _file_id, _document_is_ready)
)

# A ready row is never forgotten, whatever a late or mistaken clean-up asks for.
FORGET_FILE = delete(files).where(files.c.file_id == _file_id, files.c.state != READY)
FORGET_DOCUMENT = delete(documents).where(documents.c.doc_id == _doc_id, documents.c.state != READY)
FORGET_INNER_FILE = delete(documents).where(
    documents.c.doc_id.in_(
        select(inner_documents.c.doc_id).where(inner_documents.c.inner_file_id == _inner_file_id)
    ),
    documents.c.state != READY,
)

# Every tenant's

HIDDEN_FILES = select(files.c.file_id).where(files.c.state != READY)
DELETING_FILES = HIDDEN_FILES.where(files.c.state == DELETING)
DELETING_DOCUMENTS = select(documents.c.file_id, documents.c.doc_id).where(
    documents.c.state != READY, _of_document(_file_is_ready)
)

CHUNKS_BEHIND = (
    select(
        *CHUNK_COLUMNS,
        files.c.tenant,
        files.c.file_id,
        documents.c.metadata,
        inner_documents.c.inner_file_id,
        files.c.sequence,
        documents.c.position.label("document_position"),
    )
    .join_from(files, documents)
    .join(chunks)
    .outerjoin(inner_documents, inner_documents.c.doc_id == documents.c.doc_id)
    .where(
        _visible,
        files.c.sequence >= bindparam("sequence"),
        or_(
            files.c.sequence > bindparam("sequence"),
            documents.c.position > bindparam("document_position"),
            and_(
                documents.c.position == bindparam("document_position"),
                chunks.c.position > bindparam("position"),
            ),
        ),
    )
    .order_by(files.c.sequence, documents.c.position, chunks.c.position)
    .limit(bindparam("size"))
)

CHUNK_TOTALS = (
    select(documents.c.doc_id, func.count(chunks.c.chunk_id).label("total"))
    .join_from(documents, files)
    .outerjoin(chunks)
    .where(_visible)
    .group_by(documents.c.doc_id)
)

_ready = select(files.c.sequence).where(_file_is_ready).limit(1)

CHUNKS_OF_ENDS = (
    select(files.c.file_id, func.count(chunks.c.chunk_id).label("total"))
    .outerjoin_from(
        files, documents, and_(files.c.file_id == documents.c.file_id, _document_is_ready)
    )
    .outerjoin_from(documents, chunks)
    .where(
        or_(
            files.c.sequence == _ready.order_by(files.c.sequence).scalar_subquery(),
            files.c.sequence == _ready.order_by(files.c.sequence.desc()).scalar_subquery(),
        )
    )
    .group_by(files.c.file_id)
)

META_VALUE = select(meta.c.value).where(meta.c.key == bindparam("key"))
FORGET_META = delete(meta).where(meta.c.key == bindparam("by_key"))
ADD_META = insert(meta)
