"""PDF: a document per page, through pdfium; pypdf reads again what pdfium finds no text in."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from privategpt.backends.parsers.archives import Carried, bounded
from privategpt.backends.parsers.bounds import MAX_TEXT_CHARS, Bounds, require
from privategpt.backends.parsers.file_metadata import facts
from privategpt.backends.parsers.pdf_bounds import check_streams
from privategpt.backends.parsers.pdf_text import clean_title, page_texts
from privategpt.backends.parsers.pdfium import Bookmark, Pdf, PdfNotOpened
from privategpt.domain.documents import Heading, ParsedDocument, ParsedFile
from privategpt.domain.errors import CorruptFile, EncryptedFile, NoTextFound

_MAX_BOOKMARKS = 500
_LONGEST_PAGE = 50_000
"""So many bookmarks of a page are looked for, each in so much of its text."""

_OCR_ADVICE = "The PDF has no text, only images or drawings: run OCR on it, and upload the result"
_OCR_FAILED = "The PDF has no text, only images or drawings, and OCR found none in them"


def read_pdf(data: bytes, media_type: str, *, bounds: Bounds, password: str | None) -> ParsedFile:
    """Every page with text, labelled as the document numbers it (else from 1).

    Raises `EncryptedFile`, `CorruptFile`, and `NoTextFound` for a scan.
    """
    check_streams(data)
    try:
        pdf = _open(data, password)
    except PdfNotOpened as error:
        if error.needs_password:
            raise EncryptedFile(_password_advice(password)) from error
        raw = _read_again(data, bounds)
        if not any(map(str.strip, raw)):
            raise CorruptFile("The PDF is damaged or cut off and cannot be opened") from error
        return _parsed_file(page_texts(raw), media_type, labels={}, outline=(), information={})
    try:
        return _read_open(pdf, data, media_type, bounds)
    finally:
        pdf.close()


def pdf_files(data: bytes, password: str | None) -> Iterator[Carried]:
    """The files that a PDF has embedded."""
    try:
        pdf = _open(data, password)
    except PdfNotOpened:
        return  # whoever reads its pages says why
    try:
        for name, read in pdf.attachments():
            yield Carried(path=name, read=partial(_embedded, read))
    finally:
        pdf.close()


def _embedded(read: Callable[[], bytes], limit: int) -> bytes:
    return bounded(read(), limit)


def _open(data: bytes, password: str | None) -> Pdf:
    """With the empty password first, which many encrypted files have, then with the given one."""
    try:
        return Pdf(data, password=None)
    except PdfNotOpened as error:
        if not (error.needs_password and password):
            raise
        return Pdf(data, password=password)


def _password_advice(password: str | None) -> str:
    if password:
        return "The PDF is encrypted, and the password given does not open it"
    return "The PDF is encrypted: send its password with it"


def _read_open(pdf: Pdf, data: bytes, media_type: str, bounds: Bounds) -> ParsedFile:
    _require_pages(len(pdf), bounds)
    raw: list[str] = []
    damaged = chars = 0
    for index in range(len(pdf)):
        text = pdf.page_text(index)
        damaged += text is None
        chars += len(text or "")
        require(chars <= MAX_TEXT_CHARS, "it has too much text")
        raw.append(text or "")
    texts = page_texts(raw)
    if not any(texts):
        if damaged == len(raw):
            raise CorruptFile("The PDF is damaged: none of its pages can be read")
        raw = _read_again(data, bounds) or raw
        texts = page_texts(raw)
    scanned = _read_pictures(pdf, texts, bounds)
    if scanned:
        texts = page_texts([scanned.get(index, text) for index, text in enumerate(raw)])
    if not any(texts):
        raise NoTextFound(_OCR_ADVICE if bounds.ocr is None else _OCR_FAILED)
    return _parsed_file(
        texts,
        media_type,
        labels={index: pdf.label(index) for index in range(len(pdf))},
        outline=pdf.outline(),
        information=pdf.information(),
        scanned=scanned.keys(),
    )


def _read_pictures(pdf: Pdf, texts: Sequence[str], bounds: Bounds) -> dict[int, str]:
    """What OCR finds on the pages without text, by their index."""
    if bounds.ocr is None:
        return {}
    found: dict[int, str] = {}
    for index, text in enumerate(texts):
        if not text and (picture := pdf.picture(index)) is not None:
            found[index] = bounds.ocr(picture)
    return found


def _require_pages(count: int, bounds: Bounds) -> None:
    require(count <= bounds.max_pages, f"it has {count:,} pages, {bounds.max_pages:,} are allowed")


def _read_again(data: bytes, bounds: Bounds) -> list[str]:
    """The pages' texts by pypdf, [] where it fails as well."""
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        _require_pages(len(reader.pages), bounds)
        return [page.extract_text() for page in reader.pages]
    except DependencyError:
        return []  # AES without the optional cryptography package
    except (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return []  # pypdf's own errors do not cover what damage leads its code to
    except (RecursionError, OSError, ZeroDivisionError, NotImplementedError):
        return []


def _parsed_file(
    texts: Sequence[str],
    media_type: str,
    *,
    labels: Mapping[int, str],
    outline: Sequence[Bookmark],
    information: Mapping[str, str],
    scanned: Collection[int] = (),
) -> ParsedFile:
    headings = _page_headings(texts, outline)
    documents = tuple(
        ParsedDocument(
            text=text,
            page_label=clean_title(labels.get(index, "")) or str(index + 1),
            headings=headings[index],
            page_number=index + 1,
            metadata={"ocr": True} if index in scanned else {},
        )
        for index, text in enumerate(texts)
        if text
    )
    metadata = facts(
        title=information.get("Title"),
        author=information.get("Author"),
        date=information.get("CreationDate"),
    )
    return ParsedFile(media_type=media_type, documents=documents, metadata=metadata)


def _page_headings(texts: Sequence[str], outline: Sequence[Bookmark]) -> list[tuple[Heading, ...]]:
    """For each page, the sections it starts in (at offset 0) and those that begin on it."""
    by_page: dict[int, list[Bookmark]] = {}
    for bookmark in outline:
        by_page.setdefault(bookmark.page, []).append(bookmark)
    running: list[Heading] = []
    pages: list[tuple[Heading, ...]] = []
    for index, text in enumerate(texts):
        headings = [Heading(start=0, level=h.level, title=h.title) for h in running]
        position = 0
        for bookmark in by_page.get(index, [])[:_MAX_BOOKMARKS]:
            title = clean_title(bookmark.title)
            if not title:
                continue
            position = _find_title(text, title, position)
            heading = Heading(start=position, level=bookmark.level, title=title)
            headings.append(heading)
            running = [h for h in running if h.level < heading.level] + [heading]
        pages.append(tuple(headings))
    return pages


def _find_title(text: str, title: str, start: int) -> int:
    """Where the title's words stand on the page, whatever the blanks; else `start`."""
    words = r"\s*".join(map(re.escape, title.replace(" ", "")[:200]))
    match = re.compile(words, re.IGNORECASE).search(text, start, start + _LONGEST_PAGE)
    return match.start() if match else start
