"""Small files of every kind, built as a test describes them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from privategpt.backends.parsers.bounds import Bounds
from privategpt.backends.parsers.reading import read_file
from privategpt.domain.documents import ParsedFile
from privategpt.domain.ports import Upload

BOUNDS = Bounds(max_pages=1_000)
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_S = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" {_R}'
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = (
    'xmlns:office="urn:o" xmlns:text="urn:t" xmlns:table="urn:tb" xmlns:draw="urn:d"'
    ' xmlns:meta="urn:m" xmlns:dc="urn:dc"'
)


def read(folder: Path, name: str, data: bytes | str, password: str | None = None) -> ParsedFile:
    """The file of that name and content, read in this process."""
    path = folder / "upload.bin"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_file(Upload(path=path, name=name, password=password), BOUNDS)


def read_one(folder: Path, name: str, data: bytes | str) -> str:
    """The text of the file's only document."""
    (document,) = read(folder, name, data).documents
    return document.text


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """A zip container, the same bytes at every call."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content, compresslevel=9)
    return buffer.getvalue()


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """A .rels part: id → (last word of the type, target)."""
    entries = "".join(
        f'<Relationship Id="{key}" Type="{_RELATION}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="urn:rels">{entries}</Relationships>'


def core_properties(title: str, author: str, created: str) -> str:
    """A docProps/core.xml part."""
    return (
        '<c:coreProperties xmlns:c="urn:c" xmlns:dc="urn:dc" xmlns:t="urn:t">'
        f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>"
        f"<t:created>{created}</t:created></c:coreProperties>"
    )


def docx(body: str, **parts: str) -> bytes:
    """A Word document with this body; `parts` are styles, footnotes, endnotes, comments, header,
    footer (their inner XML) and core (whole).
    """
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations({"r0": ("officeDocument", "word/document.xml")}),
        "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
    }
    if core := parts.pop("core", ""):
        members["docProps/core.xml"] = core
    targets = {name: (name, f"{name}.xml") for name in parts}
    members["word/_rels/document.xml.rels"] = relations(targets)
    for name, content in parts.items():
        members[f"word/{name}.xml"] = f"<w:{name} {_W}>{content}</w:{name}>"
    return zipped(members)


def word_paragraph(text: str, style: str = "") -> str:
    """A paragraph of one run."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def xlsx(sheets: Mapping[str, str], *, strings: str = "", styles: str = "", **extra: str) -> bytes:
    """A workbook: sheet name → the inner XML of its sheetData; `extra` are whole members."""
    names = list(sheets)
    targets = {f"r{n}": ("worksheet", f"worksheets/s{n}.xml") for n in range(len(names))}
    targets |= {"st": ("sharedStrings", "strings.xml"), "sy": ("styles", "styles.xml")}
    entries = "".join(
        f'<sheet name="{name}" sheetId="{n + 1}" r:id="r{n}"/>' for n, name in enumerate(names)
    )
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations({"r0": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f"<workbook {_S}><sheets>{entries}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(targets),
        "xl/strings.xml": f"<sst {_S}>{strings}</sst>",
        "xl/styles.xml": f"<styleSheet {_S}>{styles}</styleSheet>",
        **extra,
    }
    for n, name in enumerate(names):
        sheet = f"<worksheet {_S}><sheetData>{sheets[name]}</sheetData></worksheet>"
        members[f"xl/worksheets/s{n}.xml"] = sheet
    return zipped(members)


def opendocument(kind: str, body: str, **members: str) -> bytes:
    """An OpenDocument file: `kind` is text, spreadsheet or presentation."""
    content = (
        f"<office:document-content {ODF}><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            **members,
        }
    )


def pdf(objects: Sequence[bytes], *, trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1, of which the first is the catalog."""
    out = b"%PDF-1.7\n"
    offsets: list[int] = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n"
        % (size, trailer, len(out))
    )


def pdf_stream(data: bytes, *, filters: bytes = b"", entries: bytes = b"") -> bytes:
    """A stream object, `data` as it is to stand in the file."""
    head = b"<</Length %d%s%s>>" % (len(data), filters, entries)
    return head + b"stream\n" + data + b"\nendstream"


def flate_stream(data: bytes) -> bytes:
    """A stream object, packed."""
    return pdf_stream(zlib.compress(data, 9), filters=b"/Filter/FlateDecode")


def pdf_of_pages(
    pages: Sequence[bytes], *, catalog: bytes = b"", more: Sequence[bytes] = (), info: bytes = b""
) -> bytes:
    """A PDF with a page per content stream. Objects: 1 catalog, 2 pages, 3 font, then page and
    content by turns from 4 on, then `more`.
    """
    count = len(pages)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R" + catalog + b">>",
        b"<</Type/Pages/Kids[" + kids + b"]/Count %d>>" % count,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for n, content in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R"
            b"/Resources<</Font<</F 3 0 R>>>>>>" % (5 + 2 * n)
        )
        objects.append(pdf_stream(content))
    return pdf([*objects, *more], trailer=info)


def lines(*texts: str) -> bytes:
    """A content stream that shows these lines, from the top."""
    shown = b"".join(
        b"1 0 0 1 50 %d Tm (%s) Tj " % (750 - 20 * n, text.encode("cp1252"))
        for n, text in enumerate(texts)
    )
    return b"BT /F 12 Tf " + shown + b"ET"


def compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file (OLE) of these streams; a path of two parts lies in a storage."""
    sector, end = 512, 0xFFFFFFFE
    folders = dict.fromkeys(path.partition("/")[0] for path in streams if "/" in path)
    names = ["Root Entry", *folders, *streams]
    parents = [None, *("" for _ in folders), *(p.rpartition("/")[0] for p in streams)]
    body, starts = b"", dict[str, int]()
    directory_sectors = -(-len(names) * 128 // sector)
    fat = [0xFFFFFFFD, *range(2, directory_sectors + 1), end]
    for path, content in streams.items():
        count = max(1, -(-len(content) // sector))
        starts[path] = len(fat)
        fat += [*range(len(fat) + 1, len(fat) + count), end]
        body += content.ljust(count * sector, b"\0")
    siblings: dict[str, list[int]] = {}
    for number, parent in enumerate(parents):
        if parent is not None:
            siblings.setdefault(parent, []).append(number)
    directory = b""
    for number, name in enumerate(names):
        own = siblings.get("" if number == 0 else name if name in folders else "?", [])
        beside = siblings.get(parents[number] or "", []) if number else []
        later = [other for other in beside if other > number]
        encoded = f"{name.rpartition('/')[2]}\0".encode("utf-16-le")
        kind = 5 if number == 0 else 1 if name in folders else 2
        directory += struct.pack(
            "<64sHBBIII36xIQ", encoded, len(encoded), kind, 1, 0xFFFFFFFF,
            later[0] if later else 0xFFFFFFFF, own[0] if own else 0xFFFFFFFF,
            starts.get(name, end), len(streams.get(name, b"")),
        )  # fmt: skip
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(24, b"\0")
    head += struct.pack("<HHHHH6xIII4xIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, end, 0, end, 0, 0)
    table = struct.pack("<128I", *fat, *[0xFFFFFFFF] * (128 - len(fat)))
    return (
        head[:76] + struct.pack("<109I", 0, *[0xFFFFFFFF] * 108)
        + table + directory.ljust(directory_sectors * sector, b"\0") + body
    )  # fmt: skip
