"""What Outlook messages and embedded OLE objects carry."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.parsers.archives import TooLarge
from privategpt.backends.parsers.compound import Compound, embedded_object, message_files
from privategpt.domain.errors import CorruptFile, PrivateGptError
from tests.fakes.parser_files import compound, docx, read, word_paragraph

_CORPUS = Path(os.environ.get("PRIVATEGPT_CORPUS", Path(__file__).parents[3] / "shared" / "files"))
_LARGE = bytes(range(256)) * 20


def _native(name: bytes, content: bytes) -> bytes:
    body = name + b"\0C:\\x\0" + struct.pack("<I", 3) + struct.pack("<I", 4) + b"tmp\0"
    return b"\0" * 6 + body + struct.pack("<I", len(content)) + content


def _message(name: str = "plan.txt") -> bytes:
    folder = "__attach_version1.0_#00000000"
    return compound(
        {
            "__properties_version1.0": b"\0" * 32,
            f"{folder}/__substg1.0_3707001F": name.encode("utf-16-le"),
            f"{folder}/__substg1.0_37010102": b"The plan" + b"." * 1_000,
            "__attach_version1.0_#00000001/__substg1.0_37010102": b"nameless",
        }
    )


def test_streams_are_found_by_their_path_and_read_whole() -> None:
    opened = Compound(compound({"a": _LARGE, "folder/b": b"small", "c": b""}))
    assert {path: opened.read(path, 10_000) for path in opened.streams} == {
        "a": _LARGE,
        "folder/b": b"small",
        "c": b"",
    }
    with pytest.raises(TooLarge):
        opened.read("a", 100)


@pytest.mark.skipif(not _CORPUS.is_dir(), reason="the corpus of real files is not on this machine")
def test_small_streams_of_real_files_are_read_from_their_common_one() -> None:
    opened = Compound((_CORPUS / "simple.doc").read_bytes())
    assert b"Word" in opened.read("\x01CompObj", 1_000)
    assert opened.read("WordDocument", 10_000)[:2] == b"\xec\xa5"


def test_attachments_of_an_outlook_message_are_carried() -> None:
    found = {carried.path: carried.read(10_000) for carried in message_files(_message())}
    assert found == {"plan.txt": b"The plan" + b"." * 1_000, "00000001": b"nameless"}
    overlong = {carried.path for carried in message_files(_message("x" * 5_000))}
    assert overlong == {"00000000", "00000001"}


@pytest.mark.parametrize(
    ("streams", "path", "text"),
    [
        ({"\x01Ole10Native": _native(b"plan.txt", b"The plan")}, "plan.txt", "The plan"),
        ({"Package": docx(word_paragraph("Packed"))}, "object1.bin", "Packed"),
        ({"CONTENTS": b"{\\rtf1 Contents}"}, "object1.bin", "Contents"),
    ],
)
def test_an_object_embedded_in_a_document_is_read(
    streams: dict[str, bytes], path: str, text: str, tmp_path: Path
) -> None:
    buffer = io.BytesIO(docx(word_paragraph("Outer")))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("word/embeddings/object1.bin", compound(streams))
        archive.writestr("word/embeddings/equation.bin", compound({"Equation Native": b"x"}))
        archive.writestr("word/embeddings/broken.bin", b"broken")
    outer, inner = read(tmp_path, "a.docx", buffer.getvalue()).documents
    assert outer.text == "Outer"
    assert inner.inner is not None
    assert (inner.inner.path, inner.text) == (path, text)


def test_a_damaged_native_object_has_nothing() -> None:
    (carried,) = embedded_object(compound({"\x01Ole10Native": b"\0" * 6 + b"a\0b\0"}), "o.bin")
    assert carried.path == "o.bin"
    assert carried.read(10) == b""


@pytest.mark.parametrize("cut", [0, 100, 600, 1_700])
def test_a_cut_off_compound_file_is_corrupt(cut: int) -> None:
    data = compound({"a": _LARGE})[:cut]
    with pytest.raises(CorruptFile):
        Compound(data).read("a", 10_000)


@given(changes=st.lists(st.tuples(st.integers(24, 2_500), st.integers(0, 255)), max_size=12))
def test_whatever_is_damaged_reading_ends(changes: list[tuple[int, int]]) -> None:
    data = bytearray(compound({"a": b"x" * 700, "folder/b": b"small"}))
    for position, value in changes:
        data[position % len(data)] = value
    try:
        opened = Compound(bytes(data))
        for path in opened.streams:
            assert len(opened.read(path, 10_000)) <= 10_000
    except PrivateGptError:
        return
