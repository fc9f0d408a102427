"""What kind of file this is, by its bytes first and its name second.

Bytes decide where a format has a signature: a PDF called .docx is a PDF. The name decides
between the formats that are just text.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from enum import StrEnum
from pathlib import PurePath

from privategpt.domain.errors import CorruptFile, EncryptedFile, UnsupportedFileType


class Kind(StrEnum):
    """The formats with a reader; the value is the media type that is reported."""

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    XLSB = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"
    ODT = "application/vnd.oasis.opendocument.text"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    ODP = "application/vnd.oasis.opendocument.presentation"
    EPUB = "application/epub+zip"
    DOC = "application/msword"
    XLS = "application/vnd.ms-excel"
    PPT = "application/vnd.ms-powerpoint"
    MSG = "application/vnd.ms-outlook"
    RTF = "application/rtf"
    EML = "message/rfc822"
    MBOX = "application/mbox"
    HTML = "text/html"
    MARKDOWN = "text/markdown"
    CSV = "text/csv"
    TSV = "text/tab-separated-values"
    JSON = "application/json"
    NOTEBOOK = "application/x-ipynb+json"
    XML = "application/xml"
    TEXT = "text/plain"
    ZIP = "application/zip"
    TAR = "application/x-tar"
    GZIP = "application/gzip"
    BZIP2 = "application/x-bzip2"
    XZ = "application/x-xz"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    GIF = "image/gif"
    BMP = "image/bmp"
    WEBP = "image/webp"


IMAGES = frozenset((Kind.PNG, Kind.JPEG, Kind.TIFF, Kind.GIF, Kind.BMP, Kind.WEBP))
_BY_EXTENSION = {
    **dict.fromkeys(("eml", "emlx", "mht", "mhtml"), Kind.EML),
    **dict.fromkeys(("mbox", "mbx"), Kind.MBOX),
    **dict.fromkeys(("html", "htm", "xhtml", "xht", "shtml"), Kind.HTML),
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "qmd", "rmd"), Kind.MARKDOWN),
    "csv": Kind.CSV,
    "tsv": Kind.TSV,
    **dict.fromkeys(("json", "ndjson", "jsonl", "geojson"), Kind.JSON),
    "ipynb": Kind.NOTEBOOK,
    **dict.fromkeys(("xml", "xsl", "xslt", "xsd", "rss", "atom", "svg"), Kind.XML),
}
_ZIP_MIMETYPES = {
    "application/epub+zip": Kind.EPUB,
    "application/vnd.oasis.opendocument.text": Kind.ODT,
    "application/vnd.oasis.opendocument.spreadsheet": Kind.ODS,
    "application/vnd.oasis.opendocument.presentation": Kind.ODP,
}
_OFFICE_FOLDERS = {"word/": Kind.DOCX, "xl/": Kind.XLSX, "ppt/": Kind.PPTX}
_OLE_STREAMS = {
    "WordDocument": Kind.DOC,
    "Workbook": Kind.XLS,
    "Book": Kind.XLS,
    "PowerPoint Document": Kind.PPT,
    "__properties_version1.0": Kind.MSG,
}
_BINARY_SIGNATURES = {
    **dict.fromkeys((b"7z\xbc\xaf", b"Rar!"), "archive"),
    **dict.fromkeys((b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\0asm"), "program"),
    **dict.fromkeys((b"ID3", b"OggS", b"fLaC", b"\x1aE\xdf\xa3"), "recording"),
    b"SQLite format 3\0": "database",
    b'x\x9f>"': "packet of Outlook's own (winmail.dat), which is not read",
}
_SIGNATURES = {
    b"\x89PNG": Kind.PNG,
    b"\xff\xd8\xff": Kind.JPEG,
    **dict.fromkeys((b"II*\0", b"MM\0*"), Kind.TIFF),
    b"GIF8": Kind.GIF,
    b"BM": Kind.BMP,
    b"\x1f\x8b": Kind.GZIP,
    b"BZh": Kind.BZIP2,
    b"\xfd7zXZ": Kind.XZ,
}
ODD_HEADERS = (ValueError, NotImplementedError, OverflowError)
"""What the standard library raises over a member where none can be, or packed as none can be."""

ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, *ODD_HEADERS)
"""What zipfile raises over a damaged file."""

_ADVICE = {"archive": "an archive of a kind that is not read: unpack it, or pack it as a zip"}
_IWORK_PREVIEW = "QuickLook/Preview.pdf"  # all pages, where the author wished so
_PICTURE_BRANDS = (b"hei", b"hev", b"mif1", b"msf1", b"avif")
"""Of pictures in the container that films are in: HEIF, AVIF."""

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PDF_HEADER_WITHIN_BYTES = 1024
"""Where readers look for `%PDF-`: Adobe's implementation note 13."""

_PDF_OBJECT = re.compile(rb"\d\s+obj\b")
"""What every PDF has, and no text that merely tells of its header."""

_OFFICE_EXTENSIONS = frozenset(
    ("doc", "docx", "dot", "xls", "xlsx", "ppt", "pptx", "asp", "aspx", "jsp", "php", "cgi")
)
"""Of programs that export web pages, or pages saved from a browser, under such names."""

_PAGE = re.compile(rb"<!doctype html|<html[\s>]|<table[\s>]|<head>|<body[\s>]")
_PROGRAM = re.compile(rb"<\?php|<\?=|<%")
"""In what makes pages and is none."""

_MAIL = re.compile(
    rb"(?:[a-z][a-z0-9-]{1,40}:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*){1,200}", re.IGNORECASE
)
_MAIL_HEADER = re.compile(rb"^(?:mime-version|received|message-id|return-path):", re.I | re.M)
_MAILBOX = re.compile(rb"From [^\r\n]{0,300}\d{4}[^\r\n]*\r?\n[a-z][a-z0-9-]*:", re.IGNORECASE)
_HEAD_BYTES = 20_000
_BLANK = b"\xef\xbb\xbf \t\r\n"


def detect(data: bytes, name: str, media_type: str | None = None) -> Kind:
    """The kind of the file `data` that was uploaded as `name`.

    Raises `UnsupportedFileType`, and `CorruptFile` or `EncryptedFile` where a container cannot
    be opened to see what it holds.
    """
    if data.startswith(b"PK\x03\x04") or data.startswith(b"PK\x05\x06"):
        return _kind_of_zip(data)
    if _is_pdf(data):
        return Kind.PDF
    if data.startswith(OLE_MAGIC):
        return _kind_of_ole(data)
    if data.lstrip(_BLANK).startswith(b"{\\rtf"):
        return Kind.RTF
    extension = PurePath(name).suffix.lower().removeprefix(".")
    if extension == "pdf":
        raise CorruptFile(f"{name!r} is called a PDF, but it is none: the %PDF header is missing")
    if not _is_utf16(data):
        if kind := _kind_by_signature(data):
            return kind
        _refuse_known_binary(data)
    return _BY_EXTENSION.get(extension) or _kind_of_text(data, extension, media_type)


def _is_pdf(data: bytes) -> bool:
    """The header may stand behind other bytes, but not in an archive, whose first file it is of,
    nor in a text that tells of it.
    """
    start = data.find(b"%PDF-", 0, PDF_HEADER_WITHIN_BYTES)
    if start <= 0 or not data[:start].strip(_BLANK):
        return start >= 0
    return not is_tar(data) and _PDF_OBJECT.search(data, start) is not None


def _is_utf16(data: bytes) -> bool:
    return data.startswith((b"\xff\xfe", b"\xfe\xff"))


def is_tar(data: bytes) -> bool:
    """Whether `data` begins as a tar of POSIX or GNU does."""
    return data[257:262] == b"ustar"


def _kind_by_signature(data: bytes) -> Kind | None:
    if is_tar(data):
        return Kind.TAR
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Kind.WEBP
    for signature, kind in _SIGNATURES.items():
        if _starts_with(data, signature):
            return kind
    return None


def _starts_with(data: bytes, signature: bytes) -> bool:
    """What can be typed may begin a text ("BMW", "GIF89a is"); binary files have NULs or worse
    early on.
    """
    if not data.startswith(signature):
        return False
    typed = signature.isascii() and signature.decode("ascii").isprintable()
    return not typed or any(byte < 7 for byte in data[:512])


def _refuse_known_binary(data: bytes) -> None:
    if data[4:8] == b"ftyp" and not data[:1].strip(b"\0"):
        if data[8:12].startswith(_PICTURE_BRANDS):
            raise UnsupportedFileType(
                "The file is a picture of a kind that is not read: save it as JPEG or PNG"
            )
        raise UnsupportedFileType("The file is a recording")
    for signature, what in _BINARY_SIGNATURES.items():
        if _starts_with(data, signature):
            raise UnsupportedFileType(f"The file is {_ADVICE.get(what, f'a {what}')}")


def _kind_of_text(data: bytes, extension: str, media_type: str | None) -> Kind:
    if not extension and media_type:
        bare = media_type.partition(";")[0].strip().lower()
        if bare in {Kind.HTML, Kind.MARKDOWN, Kind.CSV, Kind.JSON, Kind.EML, Kind.MBOX}:
            return Kind(bare)
    if not extension or extension in _OFFICE_EXTENSIONS:
        return _kind_by_look(data[:_HEAD_BYTES].lstrip(_BLANK))
    return Kind.TEXT


def _kind_by_look(head: bytes) -> Kind:
    """Of a text whose name says nothing: an export may be a web page, with or without a mail
    around it (MHTML); mailboxes are often files without an extension.
    """
    if _PAGE.match(head.lower()) and not _PROGRAM.search(head):
        return Kind.HTML
    if _MAILBOX.match(head):
        return Kind.MBOX
    headers = _MAIL.match(head)
    return Kind.EML if headers and _MAIL_HEADER.search(headers[0]) else Kind.TEXT


def _kind_of_zip(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            declared = _declared_mimetype(archive)
    except ZIP_DAMAGE as error:
        raise CorruptFile("The file is a damaged or cut-off zip container") from error
    for mimetype, kind in _ZIP_MIMETYPES.items():
        if declared.removesuffix("-template") == mimetype:
            return kind
    if "META-INF/container.xml" in names:
        return Kind.EPUB
    _refuse_known_package(names)
    if "xl/workbook.bin" in names:
        return Kind.XLSB
    for folder, kind in _OFFICE_FOLDERS.items():
        if "[Content_Types].xml" in names and any(n.startswith(folder) for n in names):
            return kind
    if declared:
        raise UnsupportedFileType("The file is a zip container of a kind that no parser reads")
    return Kind.ZIP


def _refuse_known_package(names: list[str]) -> None:
    """What would be read as a zip of nothing, or of the small picture that such files carry."""
    if any(name.endswith(".iwa") for name in names) and _IWORK_PREVIEW not in names:
        raise UnsupportedFileType(
            "The file is of Apple's iWork, which is not read: export it as PDF, Word or Excel"
        )
    if "FixedDocSeq.fdseq" in names:
        raise UnsupportedFileType("The file is XPS, which is not read: print it as PDF")


def _declared_mimetype(archive: zipfile.ZipFile) -> str:
    """EPUB and OpenDocument say what they are in a member of their own."""
    try:
        info = archive.getinfo("mimetype")
    except KeyError:
        return ""
    if info.file_size > 200 or info.flag_bits & 1:
        return ""
    return archive.read(info).decode("ascii", "replace").strip()


def _kind_of_ole(data: bytes) -> Kind:
    if _has_stream(data, "EncryptedPackage") or _has_stream(data, "EncryptedSummary"):
        raise EncryptedFile("The document is encrypted: save it without a password, and upload it")
    for stream, kind in _OLE_STREAMS.items():
        if _has_stream(data, stream):
            return kind
    raise UnsupportedFileType("The file is an OLE container of a kind that no parser reads")


def _has_stream(data: bytes, name: str) -> bool:
    """Whether a compound file's directory lists `name`: entries are UTF-16, NUL-terminated."""
    return f"{name}\0".encode("utf-16-le") in data
