"""From a file's bytes to its documents: the one table of kinds and readers.

This runs in the worker process. It is an ordinary function, so whatever calls it decides where.
"""

from __future__ import annotations

from functools import partial

from privategpt.backends.parsers.bounds import Bounds
from privategpt.backends.parsers.epub import read_epub
from privategpt.backends.parsers.kinds import IMAGES, Kind
from privategpt.backends.parsers.legacy import read_legacy
from privategpt.backends.parsers.mail import read_mail
from privategpt.backends.parsers.opendocument import read_opendocument
from privategpt.backends.parsers.packages import Package
from privategpt.backends.parsers.pdf import read_pdf
from privategpt.backends.parsers.plain_text import read_html_file, read_notebook, read_text
from privategpt.backends.parsers.rtf import read_rtf
from privategpt.backends.parsers.sheets import read_xlsx
from privategpt.backends.parsers.slides import read_pptx
from privategpt.backends.parsers.walking import Walk
from privategpt.backends.parsers.word import read_docx
from privategpt.domain.documents import ParsedFile
from privategpt.domain.ports import Upload

_PACKAGES = {
    Kind.DOCX: read_docx,
    Kind.XLSX: read_xlsx,
    Kind.PPTX: read_pptx,
    Kind.ODT: read_opendocument,
    Kind.ODS: read_opendocument,
    Kind.ODP: read_opendocument,
    Kind.EPUB: read_epub,
}
_WHOLE_FILES = {
    Kind.RTF: read_rtf,
    Kind.EML: read_mail,
    Kind.HTML: read_html_file,
    Kind.NOTEBOOK: read_notebook,
}
_LEGACY = frozenset((Kind.DOC, Kind.XLS, Kind.XLSB, Kind.PPT, Kind.MSG))


def read_file(upload: Upload, bounds: Bounds) -> ParsedFile:
    """Read the file. Raises `UnreadableFile` (each kind its own class), `UnsupportedFileType`."""
    data = upload.path.read_bytes()
    read = partial(_read, bounds=bounds, password=upload.password)
    walk = Walk(size_bytes=len(data), password=upload.password, read=read)
    return walk.upload(data, upload.name, upload.media_type)


def _read(data: bytes, kind: Kind, *, bounds: Bounds, password: str | None) -> ParsedFile:
    """What a file says itself, without the files in it."""
    if kind is Kind.PDF:
        return read_pdf(data, kind.value, bounds=bounds, password=password)
    if kind in _PACKAGES:
        return _PACKAGES[kind](Package(data), kind.value)
    if kind in _WHOLE_FILES:
        return _WHOLE_FILES[kind](data, kind.value)
    if kind in _LEGACY:
        return read_legacy(data, kind)
    if kind in IMAGES:
        from privategpt.backends.parsers.images import read_image

        return read_image(data, kind, bounds)
    return read_text(data, kind)
