"""The server that one writes in an afternoon, as tutorials do it; the table's rows fail here."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import httpx
import pypdf
from fastapi import FastAPI, Header, HTTPException, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

ENGINE, FOLDER = os.environ["PLAIN_ENGINE"], Path(os.environ["PLAIN_FOLDER"])
API_KEY = os.environ.get("PLAIN_API_KEY", "")
STORE = FOLDER / "docstore.json"
PARAGRAPH = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}p"
app = FastAPI()
app.get("/health")(lambda: "ok")
FOLDER.mkdir(parents=True, exist_ok=True)
stored: list[dict[str, Any]] = json.loads(STORE.read_text()) if STORE.exists() else []


class ChatBody(BaseModel):
    messages: list[dict[str, Any]]
    stream: bool = False


class ChunksBody(BaseModel):
    text: str
    limit: int = 10


@app.post("/v1/chat/completions")
def chat(body: ChatBody, authorization: Annotated[str, Header()] = "") -> Any:
    if API_KEY and not secrets.compare_digest(authorization, f"Bearer {API_KEY}"):
        raise HTTPException(401)
    asked = {"messages": body.messages, "stream": True}

    def pieces() -> Iterator[bytes]:
        with httpx.stream("POST", f"{ENGINE}/chat/completions", json=asked, timeout=60) as reply:
            yield from reply.iter_bytes()

    if body.stream:
        return StreamingResponse(pieces(), media_type="text/event-stream")
    return {"choices": [{"message": {"content": b"".join(pieces()).decode()}}]}


@app.post("/v1/chunks")
def chunks(body: ChunksBody) -> dict[str, Any]:
    return {"data": [doc for doc in stored if body.text in doc["text"]][: body.limit]}


@app.post("/v1/ingest")
def ingest(file: UploadFile) -> dict[str, Any]:
    return add(file.filename or "", read(file))


@app.post("/v1/ingest/text")
def ingest_text(body: dict[str, str]) -> dict[str, Any]:
    return add(body["file_name"], [body["text"]])


@app.get("/v1/ingest/list")
def listed() -> dict[str, Any]:
    return {"data": stored}


@app.get("/v1/documents/{doc_id}")
def document(doc_id: str) -> Response:
    found = next(doc for doc in stored if doc["doc_id"] == doc_id)
    name = found["doc_metadata"]["file_name"]
    return Response(found["text"], headers={"Content-Disposition": f"inline; filename={name}"})


def read(file: UploadFile) -> list[str]:
    kind = Path(file.filename or "").suffix
    if kind == ".pdf":
        return [page.extract_text() for page in pypdf.PdfReader(file.file).pages]
    if kind == ".docx":
        part = zipfile.ZipFile(file.file).read("word/document.xml")
        tree = ElementTree.fromstring(part)  # noqa: S314 - as a tutorial does
        return ["\n".join("".join(p.itertext()) for p in tree.iter(PARAGRAPH))]
    return file.file.read().decode().split("\f")


def add(name: str, texts: list[str]) -> dict[str, Any]:
    first = len(stored)
    for text in texts:
        facts = {"doc_id": secrets.token_hex(8), "doc_metadata": {"file_name": name}}
        stored.append({**facts, "text": text})
        STORE.write_text(json.dumps(stored))
    return {"data": stored[first:]}
