"""pdfium behind types: just what reading text takes. It must be called from one thread only."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

import pypdfium2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from privategpt.backends.parsers.ocr import MAX_PIXELS, PIXELS_PER_INCH, Picture
from privategpt.backends.parsers.pdf_columns import Box, Char, may_have_columns, placed

_MAX_ATTACHMENTS = 10_000
_MAX_BOOKMARKS = 20_000
_MAX_ANNOTATIONS = 5_000
_OUTLINE_DEPTH = 8
_MAX_RUNS = 20_000
_MAX_CHARS_PLACED = 50_000
"""Of a page whose text is put in columns; a newspaper's has 30,000."""

_WRONG_PASSWORD = 4
_POINTS_PER_INCH = 72

_pdfium = cast("Any", pypdfium2)
_raw = cast("Any", pypdfium2).raw

_FIELDS = frozenset(
    (_raw.FPDF_FORMFIELD_TEXTFIELD, _raw.FPDF_FORMFIELD_COMBOBOX, _raw.FPDF_FORMFIELD_LISTBOX)
)
_BOXES = frozenset((_raw.FPDF_FORMFIELD_CHECKBOX, _raw.FPDF_FORMFIELD_RADIOBUTTON))
_REMARKS = frozenset(
    (_raw.FPDF_ANNOT_TEXT, _raw.FPDF_ANNOT_HIGHLIGHT, _raw.FPDF_ANNOT_UNDERLINE,
     _raw.FPDF_ANNOT_STRIKEOUT, _raw.FPDF_ANNOT_SQUIGGLY)
)  # fmt: skip


class PdfNotOpened(Exception):
    """pdfium could not open the file; `needs_password` where that is the reason."""

    def __init__(self, *, needs_password: bool) -> None:
        super().__init__()
        self.needs_password = needs_password


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline: its page, 0-based, and how deep it is, 1 being the top."""

    page: int
    level: int
    title: str


class Pdf:
    """An open PDF."""

    def __init__(self, data: bytes, *, password: str | None) -> None:
        try:
            self._document: Any = _pdfium.PdfDocument(data, password=password)
            self._pages: int = len(self._document)
        except _pdfium.PdfiumError as error:
            code = cast("int | None", getattr(error, "err_code", None))
            raise PdfNotOpened(needs_password=code == _WRONG_PASSWORD) from error
        self._has_form = self._document.get_formtype() != _raw.FORMTYPE_NONE
        if self._has_form:
            self._document.init_forms()

    def close(self) -> None:
        """Release pdfium's memory."""
        self._document.close()

    def __len__(self) -> int:
        return self._pages

    def label(self, index: int) -> str:
        """The page's label in the document's own numbering, "" where it has none."""
        return _utf16(partial(_raw.FPDF_GetPageLabel, self._document, index))

    def information(self) -> dict[str, str]:
        """The document information dictionary: Title, Author, CreationDate and so on."""
        return {
            key: _utf16(partial(_raw.FPDF_GetMetaText, self._document, key.encode()))
            for key in cast("Sequence[str]", self._document.METADATA_KEYS)
        }

    def outline(self) -> list[Bookmark]:
        """The bookmarks that lead to a page, in reading order."""
        found: list[Bookmark] = []
        entries = self._document.get_toc(max_depth=_OUTLINE_DEPTH)
        for entry in islice(cast("Iterator[Any]", entries), _MAX_BOOKMARKS):
            target = entry.get_dest()
            page = None if target is None else cast("int | None", target.get_index())
            if page is not None:
                title = _utf16(partial(_raw.FPDFBookmark_GetTitle, entry))
                found.append(Bookmark(page=page, level=entry.level + 1, title=title))
        return found

    def attachments(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """The name of each embedded file, and what reads it (b"" where it is damaged)."""
        for index in range(min(self._document.count_attachments(), _MAX_ATTACHMENTS)):
            try:
                attachment: Any = self._document.get_attachment(index)
            except _pdfium.PdfiumError:
                continue
            name = _utf16(partial(_raw.FPDFAttachment_GetName, attachment))
            yield name, partial(_attached, attachment)

    def page_text(self, index: int) -> str | None:
        """What stands on the page and, behind it, what was filled into its form or noted on it.

        None where the page is too damaged to load.
        """
        try:
            page: Any = self._document.get_page(index)
        except _pdfium.PdfiumError:
            return None
        try:
            text = _text_of(page)
            values = "\n".join(self._annotated(page))
        except _pdfium.PdfiumError:
            return None
        finally:
            page.close()
        return f"{text}\n\n{values}" if values else text

    def picture(self, index: int) -> Picture | None:
        """The page as an image; None where nothing is drawn on it or it is too damaged."""
        try:
            page: Any = self._document.get_page(index)
        except _pdfium.PdfiumError:
            return None
        try:
            if _raw.FPDFPage_CountObjects(page) <= 0:
                return None
            return _rendered(page)
        except _pdfium.PdfiumError:
            return None
        finally:
            page.close()

    def _annotated(self, page: Any) -> Iterator[str]:
        count = min(_raw.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)
        for index in range(count):
            annotation: Any = _raw.FPDFPage_GetAnnot(page, index)
            if not annotation:
                continue
            try:
                if line := self._form_value(annotation) or _note(annotation):
                    yield line
            finally:
                _raw.FPDFPage_CloseAnnot(annotation)

    def _form_value(self, annotation: Any) -> str:
        if not self._has_form or _raw.FPDFAnnot_GetSubtype(annotation) != _raw.FPDF_ANNOT_WIDGET:
            return ""
        form: Any = self._document.formenv
        kind = _raw.FPDFAnnot_GetFormFieldType(form, annotation)
        ticked = kind in _BOXES and _raw.FPDFAnnot_IsChecked(form, annotation)
        if kind not in _FIELDS and not ticked:
            return ""

        def read(function: Callable[..., int]) -> str:
            return _utf16(lambda buffer, size: function(form, annotation, buffer, size))

        value = read(
            _raw.FPDFAnnot_GetFormFieldExportValue if ticked else _raw.FPDFAnnot_GetFormFieldValue
        )
        name = read(_raw.FPDFAnnot_GetFormFieldAlternateName) or read(
            _raw.FPDFAnnot_GetFormFieldName
        )
        return f"{name}: {value}" if value.strip() else ""


def _note(annotation: Any) -> str:
    """What someone has written onto the page or remarked beside it."""
    kind = _raw.FPDFAnnot_GetSubtype(annotation)
    if kind != _raw.FPDF_ANNOT_FREETEXT and kind not in _REMARKS:
        return ""
    text = _utf16(
        lambda buffer, size: _raw.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size)
    ).strip()
    return f"Comment: {text}" if text and kind in _REMARKS else text


def _attached(attachment: Any) -> bytes:
    try:
        return bytes(attachment.get_data())
    except _pdfium.PdfiumError:
        return b""


def _rendered(page: Any) -> Picture:
    width, height = cast("tuple[float, float]", page.get_size())
    scale = min(PIXELS_PER_INCH / _POINTS_PER_INCH, math.sqrt(MAX_PIXELS / max(1, width * height)))
    bitmap: Any = page.render(scale=scale, grayscale=True)
    try:
        rows, stride = bytes(bitmap.buffer), cast("int", bitmap.stride)
        columns, count = cast("int", bitmap.width), cast("int", bitmap.height)
    finally:
        bitmap.close()
    if stride != columns:
        rows = b"".join(rows[start : start + columns] for start in range(0, len(rows), stride))
    return Picture(width=columns, height=count, pixels=rows)


def _text_of(page: Any) -> str:
    textpage: Any = page.get_textpage()
    try:
        # Bounded by the page's box: text outside of it is not on the page that people see.
        text = cast("str", textpage.get_text_bounded())
        if not text.strip() and textpage.count_chars() > 0:
            return cast("str", textpage.get_text_range())
        if _runs_together(text, textpage) or may_have_columns(_runs(textpage), text):
            # pdfium gives what lies beyond the first plane in halves.
            halves = placed(_chars(page, textpage)).encode("utf-16-le", "surrogatepass")
            return halves.decode("utf-16-le", "replace") or text
        return text
    finally:
        textpage.close()


def _runs_together(text: str, textpage: Any) -> bool:
    """True where cells of a single letter stick to their neighbours in the bounded text: pdfium
    breaks a line around each, and then leaves the breaks out.
    """
    return len(cast("str", textpage.get_text_range()).split()) > len(text.split())


def _runs(textpage: Any) -> list[Box]:
    """Where each run of text stands, in the order drawn; [] if they are too many to look at."""
    count = cast("int", _raw.FPDFText_CountRects(textpage, 0, -1))
    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    places = [ctypes.byref(place) for place in (left, top, right, bottom)]
    boxes: list[Box] = []
    for index in range(count if count <= _MAX_RUNS else 0):
        _raw.FPDFText_GetRect(textpage, index, *places)
        boxes.append((left.value, bottom.value, right.value, top.value))
    return boxes


def _chars(page: Any, textpage: Any) -> list[Char]:
    """The characters on the page; [] if they are too many to look at."""
    count = cast("int", textpage.count_chars())
    edges = cast("Box", page.get_bbox())
    rect = _raw.FS_RECTF()
    place = ctypes.byref(rect)
    chars: list[Char] = []
    for index in range(count if count <= _MAX_CHARS_PLACED else 0):
        text = chr(_raw.FPDFText_GetUnicode(textpage, index))
        drawn = not text.isspace() and _raw.FPDFText_GetLooseCharBox(textpage, index, place)
        box = (rect.left, rect.bottom, rect.right, rect.top) if drawn else None
        if box is None or _touch(box, edges):
            chars.append(Char(text, box))
    return chars


def _touch(one: Box, other: Box) -> bool:
    across = one[0] <= other[2] and one[2] >= other[0]
    return across and one[1] <= other[3] and one[3] >= other[1]


def _utf16(read: Callable[[Any, int], int]) -> str:
    """What `read` writes into a buffer. pdfium takes files at their word, so halves of characters
    are in it, over which the library's own reading of these strings breaks off.
    """
    size = read(None, 0)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    read(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
