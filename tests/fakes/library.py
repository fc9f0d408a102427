"""Files to put into a store: small, whole, and with ids that say what they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from privategpt.domain.documents import Chunk, Document, DocumentInfo, File, Heading
from privategpt.domain.library import StateStore, StoredFile

NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ingestion:
    """What an ingestion hands to the store."""

    file: File
    documents: tuple[Document, ...]
    chunks: tuple[Chunk, ...]

    @property
    def infos(self) -> list[DocumentInfo]:
        """Its documents as lists show them."""
        return [
            DocumentInfo(d.doc_id, d.file_id, d.position, d.metadata, d.inner_file_id)
            for d in self.documents
        ]

    @property
    def stored(self) -> StoredFile:
        """What the store is to say of it."""
        return StoredFile(file=self.file, documents=tuple(self.infos))

    @property
    def doc_ids(self) -> list[str]:
        """In file order."""
        return [document.doc_id for document in self.documents]

    def holding(self, *inner_file_ids: str | None) -> Ingestion:
        """The same, its documents being of these files inside it."""
        pairs = zip(self.documents, inner_file_ids, strict=True)
        documents = tuple(replace(document, inner_file_id=inner) for document, inner in pairs)
        return replace(self, documents=documents)

    def named(self, name: str) -> Ingestion:
        """The same under another name."""
        return replace(self, file=replace(self.file, name=name))


def ingestion(
    file_id: str, *, tenant: str = "ann", content: str = "", documents: int = 1, chunks: int = 3
) -> Ingestion:
    """A file of `documents` documents with `chunks` chunks each; `content` decides its bytes."""
    content = content or file_id
    file = File(
        file_id=file_id,
        tenant=tenant,
        name=f"{content}.txt",
        sha256=sha256(content.encode()).hexdigest(),
        size_bytes=5_000_000_000,
        media_type="text/plain",
        created_at=NOON,
    )
    pages = tuple(_page(file_id, position, chunks) for position in range(documents))
    return Ingestion(
        file=file,
        documents=pages,
        chunks=tuple(chunk for page in pages for chunk in _cut(page, chunks)),
    )


async def ingest(store: StateStore, new: Ingestion, *, replaces: bool = False) -> StoredFile:
    """Begin and commit."""
    await store.begin_file(new.file)
    return await store.commit_file(
        new.file, documents=new.documents, chunks=new.chunks, replaces=replaces
    )


def _page(file_id: str, position: int, chunks: int) -> Document:
    sentences = [
        f"Zürich 東京 🙂 {file_id} page {position}, line {line}.\n" for line in range(chunks)
    ]
    return Document(
        doc_id=f"{file_id}/{position}",
        file_id=file_id,
        position=position,
        text="".join(sentences),
        headings=(Heading(start=0, level=1, title="Städte"), Heading(start=7, level=2, title="東")),
        metadata={
            "file_name": "ä.txt",
            "page_label": str(position),
            "size": 12,
            "weight": 0.5,
            "draft": False,
            "author": None,
        },
    )


def _cut(document: Document, chunks: int) -> list[Chunk]:
    found: list[Chunk] = []
    start = 0
    for position, line in enumerate(document.text.splitlines(keepends=True)[:chunks]):
        found.append(
            Chunk(
                chunk_id=f"{document.doc_id}/{position}",
                doc_id=document.doc_id,
                position=position,
                start=start,
                end=start + len(line),
                text=line,
                heading_path=("Städte", "東"),
                context="Stadt | Einwohner",
            )
        )
        start += len(line)
    return found
