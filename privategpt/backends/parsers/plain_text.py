"""The formats that are text: kept word for word, with their structure noted beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from privategpt.backends.parsers.bounds import MAX_DEPTH, require
from privategpt.backends.parsers.charsets import decode
from privategpt.backends.parsers.cleaning import DocumentBuilder, clean
from privategpt.backends.parsers.html_reader import read_html
from privategpt.backends.parsers.kinds import Kind
from privategpt.backends.parsers.markdown import front_matter_facts, markdown_headings
from privategpt.domain.documents import Heading, ParsedDocument, ParsedFile
from privategpt.domain.errors import CorruptFile

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ESCAPES = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-fA-F]{4})+)")


def read_text(data: bytes, kind: Kind) -> ParsedFile:
    """Text, Markdown, CSV, JSON, code, markup: one document, its text as it is in the file."""
    declared = kind in {Kind.XML, Kind.TEXT}
    text = clean(decode(data, declared=declared))
    if kind is Kind.JSON:
        _check_depth(text)
        text = clean(_ESCAPES.sub(_unescape, text))
    headings = markdown_headings(text) if kind is Kind.MARKDOWN else ()
    documents = tuple(_document(text, headings))
    if kind is Kind.MARKDOWN:
        facts = front_matter_facts(text)
        return ParsedFile(media_type=kind.value, documents=documents, metadata=facts)
    return ParsedFile(media_type=kind.value, documents=documents)


def _document(text: str, headings: tuple[Heading, ...] = ()) -> Iterator[ParsedDocument]:
    if text.strip():
        yield ParsedDocument(text=text, headings=headings)


def read_html_file(data: bytes, media_type: str) -> ParsedFile:
    """A web page."""
    reader = read_html(decode(data, declared=True))
    document = reader.builder.build()
    documents = (document,) if document.text else ()
    return ParsedFile(media_type=media_type, documents=documents, metadata=reader.metadata)


def read_notebook(data: bytes, media_type: str) -> ParsedFile:
    """A Jupyter notebook's cells and their text outputs, in order."""
    text = decode(data)
    _check_depth(text)
    try:
        notebook: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"The notebook is not JSON: {error}") from error
    builder = DocumentBuilder()
    for cell in _items(notebook, "cells"):
        source = clean(_joined(cell.get("source")))
        if cell.get("cell_type") == "markdown":
            _add_markdown(builder, source)
        else:
            builder.add(source)
            for output in _items(cell, "outputs"):
                builder.add(_output_text(output))
    documents = () if builder.is_empty else (builder.build(),)
    return ParsedFile(media_type=media_type, documents=documents)


def _items(owner: object, key: str) -> Iterator[Mapping[str, object]]:
    if isinstance(owner, Mapping):
        values = cast("Mapping[str, object]", owner).get(key)
        for value in cast("list[object]", values) if isinstance(values, list) else ():
            if isinstance(value, Mapping):
                yield cast("Mapping[str, object]", value)


def _joined(lines: object) -> str:
    if isinstance(lines, list):
        return "".join(map(str, cast("list[object]", lines)))
    return lines if isinstance(lines, str) else ""


def _add_markdown(builder: DocumentBuilder, source: str) -> None:
    """The cell verbatim; its headings split it, so that each is noted where it stands."""
    start = 0
    for heading in markdown_headings(source):
        builder.add(source[start : heading.start])
        builder.mark_heading(heading.title, heading.level)
        start = heading.start
    builder.add(source[start:])


def _output_text(output: Mapping[str, object]) -> str:
    if text := _joined(output.get("text")):
        return text
    data = output.get("data")
    if not isinstance(data, Mapping):
        return ""
    return _joined(cast("Mapping[str, object]", data).get("text/plain"))


def _check_depth(text: str) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in "[{":
            depth += 1
            require(depth <= MAX_DEPTH, f"its JSON is nested over {MAX_DEPTH} deep")
        elif match[0] in "]}":
            depth -= 1


def _unescape(match: re.Match[str]) -> str:
    r"""`\u4e2d` becomes the character, so that it can be found; ASCII stays escaped."""
    codes = [int(code, 16) for code in match[2].split("\\u")[1:]]
    if any(code < 0x80 for code in codes):
        return match[0]
    units = b"".join(code.to_bytes(2, "big") for code in codes)
    try:
        return match[1] + units.decode("utf-16-be")
    except UnicodeDecodeError:
        return match[0]
