"""Zip containers of XML, opened with care: OOXML, OpenDocument, EPUB.

Sizes are checked before anything is unpacked and while it is; a document type declaration, the
door of entity bombs and of text lost in silence, is refused, since none of these formats has one.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Protocol
from urllib.parse import unquote
from xml.etree import ElementTree as ET
from xml.parsers import expat

from privategpt.backends.parsers.archives import Carried, bounded
from privategpt.backends.parsers.bounds import (
    MAX_MEMBERS,
    MAX_UNPACKED_BYTES,
    MAX_XML_BYTES,
    MAX_XML_TAGS,
    require,
    require_honest_ratio,
)
from privategpt.backends.parsers.compound import embedded_object
from privategpt.backends.parsers.kinds import ZIP_DAMAGE
from privategpt.domain.errors import CorruptFile, EncryptedFile

_XML_SUFFIXES = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm")
_NAMED_DOCTYPE = re.compile(
    rb"""<!DOCTYPE\s[^<>\[\]"']*(?:"[^"<>\[\]]*"[^<>\[\]"']*|'[^'<>\[\]]*'[^<>\[\]"']*){0,2}>"""
)
_ENCRYPTED_FLAG = 1
_STREAM_BYTES = 1 << 18


class XmlHandlers(Protocol):
    """What a run through XML calls; names come as `namespace}local`."""

    def start(self, name: str, attributes: dict[str, str], /) -> None:
        """An element begins."""
        ...

    def end(self, name: str, /) -> None:
        """An element ends."""
        ...

    def text(self, data: str, /) -> None:
        """A run of characters, whole."""
        ...


class _NoDoctype(ET.TreeBuilder):
    """Builds a tree and refuses a DOCTYPE, the door of entity bombs and of text lost in silence."""

    def doctype(self, name: str, *_: str | None) -> None:
        """Called by the parser where a document type declaration stands."""
        _refuse_doctype(name)


def _refuse_doctype(name: str, *_: object) -> None:
    raise CorruptFile(
        f"The file's XML declares a document type ({name!r}), which this format forbids: its "
        "entities would lose or multiply text"
    )


class Package:
    """A zip container whose members can be read within bounds."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except ZIP_DAMAGE as error:
            raise CorruptFile("The file is a damaged or cut-off zip container") from error
        self._members = {info.filename: info for info in self._zip.infolist()}
        self._check_sizes()

    def _check_sizes(self) -> None:
        members = self._members.values()
        require(len(members) <= MAX_MEMBERS, f"it has over {MAX_MEMBERS} members")
        total = sum(info.file_size for info in members)
        require(total <= MAX_UNPACKED_BYTES, "it unpacks to over a gigabyte")
        for info in members:
            if info.filename.lower().endswith(_XML_SUFFIXES):
                require(info.file_size <= MAX_XML_BYTES, f"{info.filename!r} is too large")
                require_honest_ratio(
                    f"{info.filename!r}",
                    packed_bytes=info.compress_size,
                    unpacked_bytes=info.file_size,
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Every member, in the container's order."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """The member's bytes. Raises `CorruptFile` where it is missing or damaged."""
        info = self._members.get(name)
        if info is None:
            raise CorruptFile(f"The file lacks its part {name!r}")
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise EncryptedFile("The container is encrypted: upload it without a password")
        try:
            with self._zip.open(info) as member:
                # A header may understate what follows; zipfile stops at the stated size.
                return member.read()
        except ZIP_DAMAGE as error:
            raise CorruptFile(f"The file's part {name!r} is damaged") from error

    def tree(self, name: str, *, named_doctype: bool = False) -> ET.Element:
        """The member as an XML tree. With `named_doctype` it may name a document type, as parts of
        older books do, though not define one.
        """
        data = self.read(name)
        require(data.count(b"<") <= MAX_XML_TAGS, f"{name!r} has too many elements")
        return parse_xml(_NAMED_DOCTYPE.sub(b"", data, 1) if named_doctype else data, name)

    def optional_tree(self, name: str) -> ET.Element | None:
        """The member as an XML tree, or None where there is no such member."""
        return self.tree(name) if name in self else None

    def stream(self, name: str, handlers: XmlHandlers) -> None:
        """Run through the member's XML without a tree; for parts too large to hold."""
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = handlers.start
        parser.EndElementHandler = handlers.end
        parser.CharacterDataHandler = handlers.text
        data = self.read(name)
        try:
            for start in range(0, len(data), _STREAM_BYTES):
                parser.Parse(data[start : start + _STREAM_BYTES], False)
            parser.Parse(b"", True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            raise CorruptFile(
                f"The file's part {name!r} is not well-formed XML: {error}"
            ) from error

    def relationships(self, part: str) -> dict[str, tuple[str, str]]:
        """Of an OOXML part: relation id → (last word of its type, target part's name)."""
        folder, base = posixpath.split(part)
        tree = self.optional_tree(posixpath.join(folder, "_rels", f"{base}.rels"))
        found: dict[str, tuple[str, str]] = {}
        for relation in () if tree is None else tree:
            if relation.get("TargetMode") != "External":
                kind = relation.get("Type", "").rpartition("/")[2]
                found[relation.get("Id", "")] = kind, resolve(part, relation.get("Target", ""))
        return found

    def related(self, part: str, kind: str) -> list[str]:
        """The parts that `part` relates to as `kind`, in order, those that exist."""
        return [
            target
            for found, target in self.relationships(part).values()
            if found == kind and target in self
        ]

    def main_part(self, fallback: str) -> str:
        """The part an OOXML package starts with."""
        return next(iter(self.related("", "officeDocument")), fallback)


def embedded_files(data: bytes) -> Iterator[Carried]:
    """The files that an OOXML document has embedded."""
    package = Package(data)
    for name in package.names:
        folder, _, base = name.rpartition("/")
        if not base or not folder.endswith("/embeddings"):
            continue
        if base.lower().endswith(".bin"):
            with suppress(CorruptFile):
                yield from embedded_object(package.read(name), base)
        else:
            yield Carried(path=base, read=partial(_embedded, package, name))


def _embedded(package: Package, name: str, limit: int) -> bytes:
    return bounded(package.read(name), limit)


def parse_xml(data: bytes, name: str) -> ET.Element:
    """`data` as a tree; `name` is for the message. Raises `CorruptFile`."""
    # Entities, which S314 is about, cannot be declared: a DOCTYPE is refused.
    parser = ET.XMLParser(target=_NoDoctype())  # noqa: S314
    try:
        parser.feed(data)
        return parser.close()
    except (ET.ParseError, ValueError, LookupError) as error:
        raise CorruptFile(f"The file's part {name!r} is not well-formed XML: {error}") from error


def local(element: ET.Element) -> str:
    """The element's name without its namespace: OOXML comes in a transitional and a strict one."""
    return element.tag.rpartition("}")[2]


def attribute(element: ET.Element, name: str) -> str | None:
    """The attribute of that local name, whatever its namespace."""
    for key, value in element.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


def whole_number(stated: str | None, otherwise: int) -> int:
    """What an attribute states in up to eight digits; `otherwise` where it is anything else."""
    return int(stated) if stated and stated.isdecimal() and len(stated) < 9 else otherwise


def child(element: ET.Element, *path: str) -> ET.Element | None:
    """The first descendant along `path` of local names."""
    current: ET.Element | None = element
    for name in path:
        if current is None:
            return None
        current = next((c for c in current if local(c) == name), None)
    return current


def children(element: ET.Element, name: str) -> Iterator[ET.Element]:
    """The direct children of that local name."""
    return (c for c in element if local(c) == name)


def descendants(element: ET.Element, name: str) -> Iterator[ET.Element]:
    """All elements below of that local name, in document order."""
    return (e for e in element.iter() if local(e) == name)


def resolve(part: str, target: str) -> str:
    """`target` as `part` refers to it, as a member's name."""
    target = unquote(target.partition("#")[0])
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))
