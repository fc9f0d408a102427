"""The binary formats of old Office and Outlook, through kreuzberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from privategpt.backends.parsers.cleaning import DocumentBuilder, table_text
from privategpt.backends.parsers.file_metadata import facts
from privategpt.backends.parsers.kinds import Kind
from privategpt.domain.documents import Metadata, ParsedDocument, ParsedFile
from privategpt.domain.errors import CorruptFile, EncryptedFile, UnsupportedFileType

if TYPE_CHECKING:
    import kreuzberg

_WORD_97 = b"\xec\xa5"
_WORD_6 = b"\xdc\xa5"
_WORD_97_VERSIONS = range(0xC0, 0x120)
_WORD_6_VERSIONS = range(0x64, 0x70)
_FIB_ENCRYPTED = 0x01
_BIFF_BOF = b"\x09\x08\x10\x00"
_BIFF_FILEPASS = b"\x2f\x00"


def read_legacy(data: bytes, kind: Kind) -> ParsedFile:
    """Text of a .doc, .xls, .xlsb, .ppt or .msg; sheets become documents of their own."""
    if kind is Kind.DOC:
        _check_word(data)
    if kind is Kind.XLS and _has_filepass(data):
        raise EncryptedFile("The workbook is encrypted: save it without a password, and upload it")
    import kreuzberg

    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        output_format="plain",
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )
    try:
        result = kreuzberg.extract_bytes_sync(data, kind.value, config=config)
    except kreuzberg.KreuzbergError as error:
        raise CorruptFile("The file is damaged or of a variant that cannot be read") from error
    metadata = cast("Mapping[str, object]", result.metadata)
    sheets = cast("Sequence[str]", metadata.get("sheet_names") or ())
    documents = tuple(_documents(result.content, result.tables, sheets))
    return ParsedFile(media_type=kind.value, documents=documents, metadata=_facts(metadata))


def _check_word(data: bytes) -> None:
    """The FIB, the stream's first block, says which Word it is and whether it is encrypted."""
    for start in range(512, min(len(data) - 12, 1 << 24), 64):
        magic, version = data[start : start + 2], data[start + 2] | data[start + 3] << 8
        if magic == _WORD_6 and version in _WORD_6_VERSIONS:
            raise UnsupportedFileType(
                "The file is from Word 6 or 95, which is not read: save it as .docx, and upload it"
            )
        if magic == _WORD_97 and version in _WORD_97_VERSIONS:
            if data[start + 11] & _FIB_ENCRYPTED:
                raise EncryptedFile(
                    "The document is encrypted: save it without a password, and upload it"
                )
            return


def _has_filepass(data: bytes) -> bool:
    """An encrypted BIFF8 workbook has FILEPASS right behind its first record."""
    start = data.find(_BIFF_BOF)
    return start >= 0 and data[start + 20 : start + 22] == _BIFF_FILEPASS


def _documents(
    content: str, tables: Sequence[kreuzberg.ExtractedTable], names: Sequence[str]
) -> Iterator[ParsedDocument]:
    if not names:
        builder = DocumentBuilder()
        builder.add(content)
        if not builder.is_empty:
            yield builder.build()
        return
    for number, name in enumerate(names, start=1):
        builder = DocumentBuilder()
        for table in tables:
            if table.page_number == number:
                builder.add(table_text(table.cells))
        if not builder.is_empty:
            yield builder.build(page_label=name)


def _facts(metadata: Mapping[str, object]) -> Metadata:
    authors = metadata.get("authors")
    listed = cast("list[object]", authors) if isinstance(authors, list) else []
    author = ", ".join(map(str, listed)) or None
    title = metadata.get("title") or metadata.get("subject")
    date = metadata.get("created_at") or metadata.get("date")
    return facts(
        title=title if isinstance(title, str) else None,
        author=author,
        date=date if isinstance(date, str) else None,
    )
