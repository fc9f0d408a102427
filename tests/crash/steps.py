"""What is done to a library while it is killed, and what the library must look like after it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

from privategpt import wiring
from privategpt.domain.errors import NotFound
from privategpt.domain.ports import EmbeddingModel, Upload
from privategpt.services.ingestion import IngestRequest
from privategpt.services.maintenance import violations
from privategpt.services.retrieval import Retrieval
from privategpt.settings import load_settings
from privategpt.wiring import OpenLibrary, ingesting
from tests.fakes.embedding import FakeEmbeddingModel
from tests.fakes.parser import FakeParser

Snapshot: TypeAlias = tuple[tuple[str, str], ...]
"""Name and text of every document that is listed."""

FILES = {
    "notes.md": "# Notes\n\n" + " ".join(f"Heron {n} stands in pond {n * 3}." for n in range(60)),
    "pages.txt": "\f".join(f"Page {n} tells of {n * 7} otters and a weir." for n in range(1, 6)),
    "notes.md, again": "# Notes\n\n" + " ".join(f"Crane {n} left field {n}." for n in range(40)),
    "third.txt": "Badgers dig at night. " * 30,
    "mail.eml": (
        "Voles wait.\x1cplan.txt\nVoles dig.\fVoles store roots.\x1cmenu.txt\nVoles eat roots."
    ),
}
QUESTIONS = (
    "Which heron stands in which pond?",
    "otters and a weir",
    "crane",
    "badgers at night",
    "voles",
)

Step: TypeAlias = Callable[[OpenLibrary, Path], Awaitable[None]]


def ingest(content: str, *, name: str, replaces: bool = False) -> Step:
    """Ingest the file with that content under `name`."""

    async def step(library: OpenLibrary, files: Path) -> None:
        upload = Upload(path=files / content, name=name)
        await library.ingestion.ingest(
            IngestRequest(upload=upload, tenant=library.tenant, replaces=replaces)
        )

    return step


def delete(name: str, *, page: str | None = None) -> Step:
    """Delete the file of that name, also one inside another, or one of its pages; it may be gone
    already.
    """

    async def step(library: OpenLibrary, files: Path) -> None:
        for listed in await library.ingestion.list_documents(library.tenant):
            if listed.metadata["file_name"] != name:
                continue
            item = str(listed.metadata["file_id"]) if page is None else listed.doc_id
            if page in (None, listed.metadata.get("page_label")):
                try:
                    await library.ingestion.delete(library.tenant, item)
                except NotFound:
                    return

    return step


STEPS: tuple[Step, ...] = (
    ingest("notes.md", name="notes.md"),
    ingest("pages.txt", name="pages.txt"),
    delete("pages.txt", page="2"),
    ingest("notes.md, again", name="notes.md", replaces=True),
    ingest("mail.eml", name="mail.eml"),
    delete("mail.eml/plan.txt"),
    ingest("third.txt", name="third.txt"),
    delete("pages.txt"),
)


def write_files(folder: Path) -> None:
    """The files that the steps ingest."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


@asynccontextmanager
async def library_in(data: Path) -> AsyncGenerator[OpenLibrary]:
    """Open the library as a server does, without the two parts that start slowly."""

    async def embedding(_: object) -> EmbeddingModel:
        return FakeEmbeddingModel()

    def parser(**_: Any) -> FakeParser:
        return FakeParser()

    with (
        patch.object(wiring, "load_embedding", embedding),
        patch.object(ingesting, "WorkerParser", parser),
    ):
        settings = load_settings({"PRIVATEGPT_DATA_DIR": str(data)}, folder=data)
        async with wiring.open_library(settings) as opened:
            yield opened


async def snapshot(library: OpenLibrary) -> Snapshot:
    """Everything that is listed, with its text as it is stored."""
    listed = await library.ingestion.list_documents(library.tenant)
    documents = [await library.ingestion.document(library.tenant, one.doc_id) for one in listed]
    return tuple(sorted((str(one.metadata["file_name"]), one.text) for one in documents))


async def faults(library: OpenLibrary) -> list[str]:
    """I1 and I2; and whether a search finds anything that is not listed, or misses what is."""
    found = [str(one) for one in await violations(state=library.state, index=library.index)]
    retrieval = Retrieval(embedding=library.embedding, index=library.index, state=library.state)
    texts = [text for _, text in await snapshot(library)]
    seen: set[str] = set()
    for question in QUESTIONS:
        answer = await retrieval.search(question, tenant=library.tenant, limit=100)
        for hit in answer.chunks:
            holders = [text for text in texts if hit.chunk.text in text]
            seen.update(holders)
            if not holders:
                found.append(f"I4: a search finds {hit.chunk.text[:60]!r}, which is not listed")
    return found + [f"I1: no search finds {text[:60]!r}" for text in texts if text not in seen]
