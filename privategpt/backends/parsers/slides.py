"""Presentations in Office Open XML: a document per slide, numbered as the presenter sees them."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from privategpt.backends.parsers.cleaning import DocumentBuilder, table_text
from privategpt.backends.parsers.file_metadata import dublin_core
from privategpt.backends.parsers.graphics import graphic_texts, paragraphs
from privategpt.backends.parsers.packages import (
    Package,
    child,
    children,
    descendants,
    local,
)
from privategpt.domain.documents import ParsedDocument, ParsedFile

_TITLES = frozenset(("title", "ctrTitle"))
_NO_TEXT = frozenset(("sldNum", "sldImg"))
_DATED = frozenset(("dt", "ftr", "hdr"))
"""Placeholders that mostly hold fields, which change by the day; what is typed in them stays."""


def read_pptx(package: Package, media_type: str) -> ParsedFile:
    """Every slide with text, in the order of the show; speaker's notes follow the slide's text."""
    main = package.main_part("ppt/presentation.xml")
    relations = package.relationships(main)
    documents: list[ParsedDocument] = []
    for number, slide in enumerate(descendants(package.tree(main), "sldId"), start=1):
        # The element's own numeric `id` comes beside the relation's, which has a namespace.
        relation = next((v for k, v in slide.items() if k.endswith("}id")), "")
        _, part = relations.get(relation, ("", ""))
        if part in package:
            builder = _SlideReader(package, part).read()
            if not builder.is_empty:
                documents.append(builder.build(page_label=str(number)))
    metadata = dublin_core(package, "docProps/core.xml")
    return ParsedFile(media_type=media_type, documents=tuple(documents), metadata=metadata)


class _SlideReader:
    def __init__(self, package: Package, part: str) -> None:
        self._package = package
        self._part = part
        self._relations = package.relationships(part)
        self._builder = DocumentBuilder()

    def read(self) -> DocumentBuilder:
        tree = child(self._package.tree(self._part), "cSld", "spTree")
        if tree is not None:
            self._read_shapes(tree)
        for notes in self._package.related(self._part, "notesSlide"):
            self._read_notes(self._package.tree(notes))
        for comments in self._package.related(self._part, "comments"):
            self._read_comments(self._package.tree(comments))
        return self._builder

    def _read_shapes(self, tree: ET.Element) -> None:
        for shape in tree:
            name = local(shape)
            if name == "sp":
                self._read_shape(shape)
            elif name == "graphicFrame":
                self._read_frame(shape)
            elif name == "AlternateContent":
                if (choice := child(shape, "Choice")) is not None:
                    self._read_shapes(choice)
            elif name in {"grpSp", "contentPart"}:
                self._read_shapes(shape)

    def _read_shape(self, shape: ET.Element) -> None:
        body = child(shape, "txBody")
        kind = _placeholder(shape)
        if body is None or kind in _NO_TEXT:
            return
        text = "\n".join(paragraphs(body, fields=kind not in _DATED))
        if kind in _TITLES:
            self._builder.heading(text, 1)
        else:
            self._builder.add(text)

    def _read_frame(self, frame: ET.Element) -> None:
        for table in descendants(frame, "tbl"):
            self._builder.add(table_text(_rows(table)))
        for text in graphic_texts(self._package, self._relations, frame):
            self._builder.add(text)

    def _read_comments(self, comments: ET.Element) -> None:
        """Newer ones are bodies of paragraphs, with their replies inside them."""
        for element in comments.iter():
            if local(element) == "text":
                self._builder.add(element.text or "")
            elif local(element) == "txBody":
                self._builder.add("\n".join(paragraphs(element)))

    def _read_notes(self, notes: ET.Element) -> None:
        for shape in descendants(notes, "sp"):
            body = child(shape, "txBody")
            if body is not None and _placeholder(shape) not in _NO_TEXT | _DATED:
                self._builder.add("\n".join(paragraphs(body)))


def _placeholder(shape: ET.Element) -> str | None:
    for found in descendants(shape, "ph"):
        return found.get("type", "body")
    return None


def _rows(table: ET.Element) -> Iterator[list[str]]:
    for row in children(table, "tr"):
        yield ["\n".join(paragraphs(c)) for tc in children(row, "tc") for c in _bodies(tc)]


def _bodies(cell: ET.Element) -> Iterator[ET.Element]:
    body = child(cell, "txBody")
    yield ET.Element("txBody") if body is None else body
