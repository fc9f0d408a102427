"""EPUB: a document per item of the spine, named by its chapter in the table of contents."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.charsets import decode
from privategpt.backends.parsers.cleaning import noted_heading, one_line
from privategpt.backends.parsers.file_metadata import facts
from privategpt.backends.parsers.html_reader import read_html
from privategpt.backends.parsers.packages import (
    Package,
    child,
    descendants,
    local,
    resolve,
)
from privategpt.domain.documents import Metadata, ParsedDocument, ParsedFile
from privategpt.domain.errors import CorruptFile, EncryptedFile

_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_HTML_TYPES = frozenset(("application/xhtml+xml", "text/html"))


def read_epub(package: Package, media_type: str) -> ParsedFile:
    """The book in reading order. Raises `EncryptedFile` for one with rights management."""
    _refuse_encrypted(package)
    container = package.tree("META-INF/container.xml", named_doctype=True)
    root = next((r.get("full-path", "") for r in descendants(container, "rootfile")), "")
    opf = package.tree(root, named_doctype=True)
    items = {item.get("id", ""): item for item in descendants(opf, "item")}
    chapters = _chapters(package, root, list(items.values()))
    documents: list[ParsedDocument] = []
    for reference in descendants(opf, "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or item.get("media-type") not in _HTML_TYPES:
            continue
        part = resolve(root, item.get("href", ""))
        document = _read_item(package, part, chapters.get(part))
        if document.text:
            documents.append(document)
    return ParsedFile(media_type=media_type, documents=tuple(documents), metadata=_facts(opf))


def _refuse_encrypted(package: Package) -> None:
    encryption = package.optional_tree("META-INF/encryption.xml")
    for method in () if encryption is None else descendants(encryption, "EncryptionMethod"):
        if method.get("Algorithm") not in _FONT_OBFUSCATION:
            raise EncryptedFile("The book is protected by rights management and cannot be read")


def _read_item(package: Package, part: str, chapter: str | None) -> ParsedDocument:
    document = read_html(decode(package.read(part), declared=True)).builder.build()
    if document.headings or not chapter:
        return document
    heading = noted_heading(chapter, start=0, level=1)
    return ParsedDocument(text=document.text, headings=(heading,))


def _chapters(package: Package, root: str, items: Iterable[ET.Element]) -> dict[str, str]:
    """Each content part's title by the table of contents (EPUB 2's ncx, EPUB 3's nav)."""
    found: dict[str, str] = {}
    for item in items:
        part = resolve(root, item.get("href", ""))
        if part not in package:
            continue
        try:
            if item.get("media-type") == "application/x-dtbncx+xml":
                _note_ncx(package, part, found)
            elif "nav" in item.get("properties", "").split():
                _note_nav(package, part, found)
        except CorruptFile:
            continue  # a table of contents that cannot be read costs names, not the book
    return found


def _note_ncx(package: Package, part: str, found: dict[str, str]) -> None:
    for point in descendants(package.tree(part, named_doctype=True), "navPoint"):
        label, content = child(point, "navLabel", "text"), child(point, "content")
        if label is not None and content is not None:
            found.setdefault(resolve(part, content.get("src", "")), one_line(label.text or ""))


def _note_nav(package: Package, part: str, found: dict[str, str]) -> None:
    for link in descendants(package.tree(part, named_doctype=True), "a"):
        title = one_line("".join(link.itertext()))
        found.setdefault(resolve(part, link.get("href", "")), title)


def _facts(opf: ET.Element) -> Metadata:
    values: dict[str, str] = {}
    for element in descendants(opf, "metadata"):
        for entry in element:
            if entry.text and entry.text.strip():
                values.setdefault(local(entry), entry.text)
    found = facts(title=values.get("title"), author=values.get("creator"), date=values.get("date"))
    if language := one_line(values.get("language", "")):
        found["language"] = language
    return found
