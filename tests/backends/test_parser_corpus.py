"""Every real file of the corpus against its manifest, through the worker process."""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from privategpt.backends.parsers.bounds import Bounds
from privategpt.backends.parsers.reading import read_file
from privategpt.backends.parsers.workers import WorkerParser
from privategpt.domain.errors import (
    CorruptFile,
    EmptyFile,
    EncryptedFile,
    NoTextFound,
    PrivateGptError,
    UnreadableFile,
    UnsupportedFileType,
)
from privategpt.domain.ports import Upload

_REPOSITORY = Path(__file__).parents[2]
_CORPUS = Path(os.environ.get("PRIVATEGPT_CORPUS", _REPOSITORY.parent / "shared" / "files"))
_MANIFEST = _CORPUS / "MANIFEST.tsv"
_IGNORED = re.compile(r"[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\xad\u0301\s]")
_LEGACY = frozenset(
    (".doc", ".ppt", ".xls", ".odp", ".ods", ".msg", ".rtf", ".org", ".rst", ".vtt")
)
_REFUSALS: dict[str, tuple[type[PrivateGptError], ...]] = {
    "reject:encrypted": (EncryptedFile,),
    "reject:corrupt": (CorruptFile,),
    "reject:empty": (EmptyFile,),
    "no_text": (NoTextFound, CorruptFile),
}
_EITHER = (UnreadableFile, UnsupportedFileType)


_LONGEST = "epa2022_x20_2140p.pdf"
"""Half a minute of processor time: read once, through the server (tests/e2e/test_corpus.py)."""


def _rows() -> list[dict[str, str]]:
    if not _MANIFEST.exists():
        return []
    with _MANIFEST.open(encoding="utf-8", newline="") as manifest:
        return list(csv.DictReader(manifest, delimiter="\t"))


@pytest.fixture(scope="module")
async def parser() -> AsyncIterator[WorkerParser]:
    """One worker for all files, as in the server."""
    parser = WorkerParser(workers=1, timeout_s=100, memory_bytes=1_000_000_000, max_pages=10_000)
    yield parser
    await parser.close()


def _comparable(text: str) -> str:
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text)).casefold()


def test_the_corpus_is_there() -> None:
    if not _MANIFEST.exists() and os.environ.get("CI") != "true":
        pytest.skip("the corpus of real files is not on this machine")
    assert len(_rows()) >= 100


@pytest.mark.parametrize(
    "row", [row for row in _rows() if row["file"] != _LONGEST], ids=lambda row: row["file"]
)
async def test_a_real_file_has_the_outcome_its_manifest_says(
    row: dict[str, str], parser: WorkerParser
) -> None:
    upload = Upload(path=_CORPUS / row["file"], name=row["file"])
    outcome = row["outcome"]
    if refusals := _REFUSALS.get(outcome):
        with pytest.raises(refusals):
            await parser.parse(upload)
        return
    try:
        parsed = await parser.parse(upload)
    except _EITHER as error:
        legacy = upload.path.suffix in _LEGACY and isinstance(error, UnsupportedFileType)
        if outcome == "ok|reject" or legacy:
            return
        raise
    text = _comparable("\n".join(document.text for document in parsed.documents))
    phrases = [phrase for phrase in row["must_contain"].split(" || ") if phrase]
    assert [phrase for phrase in phrases if _comparable(phrase) not in text] == []
    for document in parsed.documents:
        assert document.text.strip()
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]", document.text)
        starts = [heading.start for heading in document.headings]
        assert all(0 <= start < len(document.text) for start in starts)


@pytest.mark.parametrize(
    ("name", "password", "phrase"),
    [
        ("aes256_user_s3cret.pdf", "s3cret", "Beautiful is better than ugly"),
        ("password.pdf", "password", ""),
        ("r3-user-password.pdf", "asdfzxcv", "pdf encryption test"),
    ],
)
async def test_a_password_opens_an_encrypted_pdf(
    name: str, password: str, phrase: str, parser: WorkerParser
) -> None:
    if not _MANIFEST.exists():
        pytest.skip("the corpus of real files is not on this machine")
    parsed = await parser.parse(Upload(path=_CORPUS / name, name=name, password=password))
    text = _comparable("\n".join(document.text for document in parsed.documents))
    assert text
    assert _comparable(phrase) in text


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("testHTML_embedded_data_uri_js.html", "Hello, world!"),
        ("track_changes_deletion.docx", "excessively modified"),
        ("sample-english.bom.txt", "\ufeff"),
        ("norwich-city.txt", "\x80"),
    ],
)
async def test_what_is_no_text_of_the_file_is_not_in_it(
    name: str, absent: str, parser: WorkerParser
) -> None:
    if not _MANIFEST.exists():
        pytest.skip("the corpus of real files is not on this machine")
    parsed = await parser.parse(Upload(path=_CORPUS / name, name=name))
    assert not any(absent in document.text for document in parsed.documents)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("simple.doc", "Parrots"),
        ("tests-example.xls", "TF | Bagpipes are awesome. | true"),
        ("fake-power-point.ppt", "Adding a Bullet Slide"),
    ],
)
def test_old_office_files_are_read(name: str, phrase: str) -> None:
    if not _MANIFEST.exists():
        pytest.skip("the corpus of real files is not on this machine")
    parsed = read_file(Upload(path=_CORPUS / name, name=name), Bounds(max_pages=100))
    assert any(phrase in document.text for document in parsed.documents)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("EPA2022.pdf", [str(page) for page in range(1, 108)]),
        ("test.pptx", ["1", "2", "3", "4", "5", "6"]),
        ("stanley-cups.xlsx", ["Stanley Cups", "Stanley Cups Since 67"]),
        ("tests-example.xls", ["Example Test", "Format Abbr.", "Readme"]),
    ],
)
async def test_pages_slides_and_sheets_are_documents_with_their_label(
    name: str, labels: list[str], parser: WorkerParser
) -> None:
    if not _MANIFEST.exists():
        pytest.skip("the corpus of real files is not on this machine")
    parsed = await parser.parse(Upload(path=_CORPUS / name, name=name))
    own = [document for document in parsed.documents if document.inner is None]
    assert [document.page_label for document in own] == labels


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        (
            "simple.zip",
            {"ideas-page.html": ("text/html", "How to Get New Ideas"),
             "stanley-cups.csv": ("text/csv", "Maple Leafs,TOR,13")},
        ),
        (
            "debian-reference.zh-cn.txt.gz",
            {"debian-reference.zh-cn.txt": ("text/plain", "Debian 参考手册")},
        ),
        ("EPA2022.pdf", {"EPA2022.xml": ("application/xml", "<PerformancePlanOrReport")}),
    ],
)  # fmt: skip
async def test_files_inside_are_read_with_their_path_and_type(
    name: str, inside: dict[str, tuple[str, str]], parser: WorkerParser
) -> None:
    if not _MANIFEST.exists():
        pytest.skip("the corpus of real files is not on this machine")
    parsed = await parser.parse(Upload(path=_CORPUS / name, name=name))
    found = {d.inner.path: (d.inner.media_type, d.text) for d in parsed.documents if d.inner}
    assert found.keys() == inside.keys()
    for path, (media_type, phrase) in inside.items():
        assert found[path][0] == media_type
        assert phrase in found[path][1]
