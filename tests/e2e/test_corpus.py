"""Every real file of ../shared/files through a running server, as its README says."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import shutil
import unicodedata
import zipfile
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

CORPUS = Path(
    os.environ.get("PRIVATEGPT_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "files"
)
DROPPED = re.compile("[\u00ad\u0301\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]|\\s")
OCR = shutil.which("tesseract") is not None

MAY_BE_UNSUPPORTED = {
    ".doc", ".ppt", ".xls", ".odp", ".ods", ".msg", ".rtf", ".org", ".rst", ".asciidoc", ".vtt",
}  # fmt: skip
"""The corpus's README: text, or a clear "unsupported type" error."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row of MANIFEST.tsv."""

    name: str
    outcome: str
    must_contain: tuple[str, ...]


def _cases() -> list[Case]:
    if not CORPUS.is_dir():
        return []
    with (CORPUS / "MANIFEST.tsv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t"))
    return [
        Case(
            name=row["file"],
            outcome=row["outcome"],
            must_contain=tuple(filter(None, (row["must_contain"] or "").split(" || "))),
        )
        for row in rows
    ]


def _folded(text: str) -> str:
    return DROPPED.sub("", unicodedata.normalize("NFKC", text)).casefold()


def test_the_corpus_is_there_in_ci() -> None:
    if os.environ.get("CI"):
        assert _cases(), "the corpus folder is missing"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", _cases(), ids=lambda case: case.name)
def test_a_real_file_has_its_outcome(client: httpx.Client, case: Case) -> None:
    with (CORPUS / case.name).open("rb") as opened:
        answer = client.post("/v1/ingest", files={"file": (case.name, opened)})
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        _check_accepted(client, case, answer)
    else:
        _check_refused(client, case, answer)


def _check_accepted(client: httpx.Client, case: Case, answer: httpx.Response) -> None:
    documents = answer.json()["data"]
    try:
        expected = ("ok", "ok|reject", "truth", *(["no_text"] if OCR else []))
        assert case.outcome in expected, f"accepted, but {case.outcome} was expected"
        assert documents, "accepted without a document"
        texts = [
            client.get(f"/v1/documents/{document['doc_id']}").json()["text"]
            for document in documents
        ]
        whole = _folded("".join(texts))
        assert [phrase for phrase in case.must_contain if _folded(phrase) not in whole] == []
    finally:
        facts = documents[0]["doc_metadata"]
        upload = facts.get("container_id", facts["file_id"])
        assert client.delete(f"/v1/ingest/{upload}").status_code == 200


def _check_refused(client: httpx.Client, case: Case, answer: httpx.Response) -> None:
    message = answer.json()["error"]["message"]
    legacy = Path(case.name).suffix in MAY_BE_UNSUPPORTED and answer.status_code == 415
    assert case.outcome not in ("ok", "truth") or legacy, f"refused: {message}"
    reason = {
        "reject:encrypted": "password",
        "reject:empty": "empty|no text",
        "no_text": "OCR",
    }.get(case.outcome, "")
    assert re.search(reason, message, re.IGNORECASE), message
    assert client.get("/v1/ingest/list").json()["data"] == []


def test_files_in_an_archive_are_found_by_their_own_name_and_go_with_it(
    client: httpx.Client,
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("cups/table.csv", "Team,Location,Cups\nMaple Leafs,TOR,13")
        archive.writestr("notes.txt.gz", gzip.compress(b"The library is closed on Sunday."))
        archive.writestr("tool.bin", b"\x7fELF" + b"\0" * 20)
    answer = client.post("/v1/ingest", files={"file": ("a.zip", packed.getvalue())}).json()
    assert [each["file_name"] for each in answer["skipped"]] == ["a.zip/tool.bin"]
    facts = [document["doc_metadata"] for document in answer["data"]]
    names = {each["file_name"]: each["file_type"] for each in facts}
    assert names == {
        "a.zip/cups/table.csv": "text/csv",
        "a.zip/notes.txt.gz/notes.txt": "text/plain",
    }
    assert {each["container"] for each in facts} == {"a.zip"}
    for each in names:
        question = {"text": "anything", "context_filter": {"metadata": {"file_name": each}}}
        found = client.post("/v1/chunks", json=question).json()["data"]
        assert {hit["document"]["doc_metadata"]["file_name"] for hit in found} == {each}
    csv, notes = (each["file_id"] for each in facts)
    (file_id,) = {each["container_id"] for each in facts}
    assert len({csv, notes, file_id}) == 3
    for wanted, names_found in ((notes, {"a.zip/notes.txt.gz/notes.txt"}), (file_id, set(names))):
        question = {"text": "anything", "context_filter": {"docs_ids": [wanted]}}
        found = client.post("/v1/chunks", json=question).json()["data"]
        assert {hit["document"]["doc_metadata"]["file_name"] for hit in found} == names_found
    assert client.delete(f"/v1/ingest/{notes}").status_code == 200
    assert client.delete(f"/v1/ingest/{notes}").status_code == 404
    listed = client.get("/v1/ingest/list").json()["data"]
    assert [each["doc_metadata"]["file_id"] for each in listed] == [csv]
    answer = client.post("/v1/ingest", files={"file": ("a.zip", packed.getvalue())}).json()
    assert len(answer["data"]) == 1
    assert client.delete(f"/v1/ingest/{file_id}").status_code == 200
    assert client.get("/v1/ingest/list").json()["data"] == []
