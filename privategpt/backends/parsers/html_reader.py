"""HTML and XHTML to text: blocks apart, table rows on lines of their own, headings noted.

It reads events and keeps no tree, so neither depth nor broken nesting can hurt it, and no text
is lost to either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser

from privategpt.backends.parsers.bounds import (
    MAX_ATTRIBUTES,
    MAX_ENTITIES,
    MAX_XML_TAGS,
    require,
)
from privategpt.backends.parsers.cleaning import DocumentBuilder, one_line, raised, table_row
from privategpt.backends.parsers.file_metadata import facts
from privategpt.backends.parsers.mathml import MathMarks
from privategpt.backends.parsers.merged_cells import MergedRows, span
from privategpt.backends.parsers.numerals import FORMS, numeral
from privategpt.domain.documents import Metadata

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd"),
        *("details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure"),
        *("footer", "form", "head", "header", "hgroup", "hr", "html", "legend", "li", "link"),
        *("main", "menu", "meta", "nav", "ol", "optgroup", "option", "p", "search", "section"),
        *("summary", "tbody", "tfoot", "thead", "title", "ul"),
    )
)
_UNSEEN = frozenset(
    (
        *("script", "style", "template", "noembed", "noframes", "iframe", "object", "svg"),
        *("annotation", "annotation-xml"),  # of an equation, whose letters are there already
    )
)
_KATEX_TWIN = "katex-html"
"""The class of what shows an equation that is there as MathML too."""

_FIELDS = frozenset(("a", "button", "input", "select", "textarea"))
_GUIDES = frozenset(("rt", "rp"))  # how to read the characters beside them
_GUIDE_ENDS = frozenset(("rt", "rp", "rb", "ruby"))
_INLINE = frozenset(("title", "br", "img", "sup", "math")) | _FIELDS | _GUIDE_ENDS
_LISTS = frozenset(("ol", "ul", "menu", "dir"))
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr", "frame"),
    )
)
_NO_CHARACTER = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{8,}+);?")
_TAG = re.compile(r"""<[a-zA-Z](?:[^>=]++|=\s*+"[^"]*+"|=\s*+'[^']*+'|=)*+""")
_QUOTED = re.compile(r"""=\s*+(?:"[^"]*+"|'[^']*+')""")
_ATTRIBUTE = re.compile(r"[\s/]++(?=[^\s/])")
_LONG_TAG = 10 * MAX_ATTRIBUTES
_MARKED_SECTION = re.compile(r"<!\[[^<>\]]{0,200}\]>")
_AUTHORS = frozenset({"author", "dc.creator", "dcterms.creator", "citation_author"})
_DATES = frozenset(
    {"date", "dc.date", "dcterms.date", "dcterms.issued", "article:published_time"}
    | {"citation_publication_date", "datepublished"}
)


@dataclass(slots=True)
class _Numbers:
    """The numbers of a list's items."""

    form: str
    following: int

    @classmethod
    def of(cls, attributes: Mapping[str, str | None]) -> _Numbers | None:
        """None for a list that shows none."""
        if "list-style" in (style := attributes.get("style") or "") and "none" in style:
            return None
        form = FORMS.get(attributes.get("type") or "1", "decimal")
        return cls(form=form, following=_integer(attributes.get("start"), 1))

    def next(self, stated: str | None) -> str:
        """That of the next item, which may state its own."""
        number = _integer(stated, self.following)
        self.following = number + 1
        return f"{numeral(number, self.form)}."


def _integer(stated: str | None, otherwise: int) -> int:
    return int(stated) if stated and _INTEGER.fullmatch(stated) else otherwise


class HtmlReader(HTMLParser):
    """Feed it a page, close it, then take `builder` and `metadata`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.builder = DocumentBuilder()
        self._text: list[str] = []
        self._title: list[str] = []
        self._unseen: list[str] = []
        self._in_title = False
        self._link_end = 0
        self._heading: int | None = None
        self._list_item = self._after_item = False
        self._preformatted = 0
        self._tables: list[MergedRows | None] = []  # None is a table for layout alone
        self._lists: list[_Numbers | None] = []
        self._navigations = 0  # their lists show no numbers
        self._number = ""
        self._raised_from: int | None = None
        self._in_guide = False
        self._math: MathMarks | None = None
        self._in_cell = False
        self._columns = self._down = 1  # of the open cell
        self._row_open = False
        self._facts: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.append(tag)
            return
        if tag in _UNSEEN:
            self._unseen.append(tag)
            return
        if tag == "span" and _KATEX_TWIN in (dict(attrs).get("class") or ""):
            self._unseen.append(tag)
            return
        self._note_facts(tag, attrs)
        if tag in _INLINE:
            self._open_inline(tag, attrs)
        elif tag in {"table", "tr", "td", "th"}:
            self._open_table_part(tag, dict(attrs))
        elif tag in _HEADINGS and not self._in_cell:
            self._end_block()
            self._heading = _HEADINGS[tag]
        elif tag == "pre":
            self._end_block()
            self._preformatted += 1
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._open_block(tag, dict(attrs))
        elif self._math:
            self._text.append(self._math.start(tag))

    def _open_inline(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag == "br":
            self._text.append("\n")
        elif tag in _FIELDS:
            self._part_fields(tag)
        elif tag == "img":
            self._add_alternative(attrs)
        elif tag == "sup":
            self._raised_from = len(self._text)
        elif tag == "math":
            self._math = MathMarks()
        else:
            self._in_guide = tag in _GUIDES

    def _open_block(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if self._heading is None or any(map(str.strip, self._text)):
            self._end_block()
        else:
            self._text.clear()  # blanks in front of a heading's block
        self._list_item = tag in {"li", "dt", "dd", "option"}
        self._navigations += tag == "nav"
        if tag in _LISTS:
            counts = tag == "ol" and not self._navigations
            self._lists.append(_Numbers.of(attributes) if counts else None)
        elif tag == "li":
            numbers = self._lists[-1] if self._lists else None
            self._number = numbers.next(attributes.get("value")) if numbers else ""
            if self._in_cell and self._number:
                self._text.append(f"{self._number} ")
                self._number = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<p/>` opens nothing in HTML's void elements and closes at once in XHTML's others."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
            return
        if tag in _INLINE:
            self._close_inline(tag)
        elif tag in {"table", "tr", "td", "th"}:
            self._close_table_part(tag)
        elif tag == "pre":
            self._end_block()
            self._preformatted = max(0, self._preformatted - 1)
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._end_block()
            self._heading = None
            if tag in _LISTS and self._lists:
                self._lists.pop()
            if tag == "nav":
                self._navigations = max(0, self._navigations - 1)
            if tag == "li" or tag in _LISTS:
                self._number = ""
        elif self._math:
            self._text.append(self._math.end(tag))

    def _close_inline(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in {"a", "button"}:
            self._link_end = len(self._text)
        elif tag in {"select", "textarea"}:
            self._text.append(" ")
        elif tag == "sup" and self._raised_from is not None:
            self._text[self._raised_from :] = [raised("".join(self._text[self._raised_from :]))]
            self._raised_from = None
        elif tag == "math":
            self._math = None
        elif tag in _GUIDE_ENDS:
            self._in_guide = False

    def handle_data(self, data: str) -> None:
        """Text between tags."""
        if self._in_title:
            self._title.append(data)
        elif not self._unseen and not self._in_guide:
            if not self._preformatted and not data.isspace():
                lead = " " if data[0].isspace() else ""
                tail = " " if data[-1].isspace() else ""
                data = lead + " ".join(data.split(None)) + tail if "\xa0" not in data else data
            elif not self._preformatted:
                data = " "
            self._text.append(data)

    def close(self) -> None:
        """End of the page: whatever is still open ends here."""
        super().close()
        while self._tables:
            self._close_table_part("table")
        self._end_block()

    @property
    def metadata(self) -> Metadata:
        """Title, author, year and language, where the page states them."""
        found = facts(
            title="".join(self._title),
            author=self._facts.get("author"),
            date=self._facts.get("date"),
        )
        if language := one_line(self._facts.get("language", ""))[:40]:
            found["language"] = language
        return found

    def _note_facts(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"html", "meta"}:
            return
        values = {key: value or "" for key, value in attrs}
        if tag == "html" and (language := values.get("lang") or values.get("xml:lang")):
            self._facts["language"] = language
        if tag == "meta":
            name = (values.get("name") or values.get("property") or "").lower()
            for fact, names in (("author", _AUTHORS), ("date", _DATES)):
                if name in names:
                    self._facts.setdefault(fact, values.get("content", ""))

    def _part_fields(self, tag: str) -> None:
        """Links side by side are items of a menu, which only styling keeps apart; so are fields of
        a form and what stands before them.
        """
        if tag not in {"a", "button"} or (self._link_end and self._link_end == len(self._text)):
            self._text.append(" ")

    def _add_alternative(self, attrs: list[tuple[str, str | None]]) -> None:
        alternative = dict(attrs).get("alt")
        if alternative and alternative.strip():
            self._text.append(f" {alternative} ")

    def _open_table_part(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if tag == "table":
            # A table in a cell makes the outer one mere layout: its text flows on as blocks.
            self._end_row()
            self._end_block()
            layout = attributes.get("role") in {"presentation", "none"}
            self._tables.append(None if layout else MergedRows())
            self._row_open = False
        elif tag == "tr":
            self._end_row()
        else:
            self._end_cell()
            self._end_block()
            self._in_cell = self._table is not None
            self._columns = span(attributes.get("colspan"))
            self._down = span(attributes.get("rowspan"))

    def _close_table_part(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._end_cell()
            self._end_block()
            return
        self._end_row()
        self._end_block()
        if tag == "table" and self._tables:
            self._tables.pop()
            self._row_open = False

    @property
    def _table(self) -> MergedRows | None:
        return self._tables[-1] if self._tables else None

    def _end_cell(self) -> None:
        if self._in_cell and (table := self._table):
            table.add("".join(self._text), columns=self._columns, rows=self._down)
            self._text.clear()
            self._in_cell = False

    def _end_row(self) -> None:
        self._end_cell()
        table = self._table
        if table and (line := table_row(table.end())):
            self._end_block()
            self.builder.add(line, separator="\n" if self._row_open else "\n\n")
            self._row_open = True
            self._after_item = False

    def _end_block(self) -> None:
        self._raised_from, self._in_guide = None, False
        if self._in_cell:
            self._text.append(" ")
            return
        text = "".join(self._text)
        self._text.clear()
        if self._number and text.strip():
            text, self._number = f"{self._number} {text.lstrip()}", ""
        if self._heading is not None:
            self.builder.heading(text, self._heading)
            self._heading = None
        elif self._preformatted:
            self.builder.add(text)
        elif text.strip():
            lines = (one_line(line) for line in text.split("\n"))
            follows = self._list_item and self._after_item
            separator = "\n" if follows else "\n\n"
            self.builder.add("\n".join(filter(None, lines)), separator=separator)
        if text.strip():
            self._after_item, self._list_item = self._list_item, False


def read_html(text: str) -> HtmlReader:
    """A page read to its end."""
    reader = HtmlReader()
    markup, rest = _prepared(text)
    reader.feed(markup)
    if rest:
        reader.handle_data(unescape(rest))
    reader.close()
    return reader


def _prepared(text: str) -> tuple[str, str]:
    """The page without what the standard parser fails on or rescans for ever, and its end.

    CDATA becomes plain markup, conditional sections go, and what is never closed (a comment
    without an end, text after the last tag) counts as text.
    """
    text = text.replace("<![CDATA[", "").replace("]]>", "")
    require(text.count("&") <= MAX_ENTITIES, f"it has over {MAX_ENTITIES:,} character references")
    text = _NO_CHARACTER.sub("\ufffd", text)
    text = _MARKED_SECTION.sub("", text).replace("<![", "")
    end = text.rfind("-->") + 3 if "-->" in text else 0
    text = text[:end] + text[end:].replace("<!--", " ")
    last = text.rfind(">") + 1
    _check_tags(text[:last])
    return text[:last], text[last:]


def _check_tags(markup: str) -> None:
    """Refuse what takes the standard parser long, or memory far beyond the page's own size."""
    require(markup.count("<") <= MAX_XML_TAGS, f"it has over {MAX_XML_TAGS:,} tags")
    for match in _TAG.finditer(markup):
        if match.end() - match.start() > _LONG_TAG:
            attributes = sum(1 for _ in _ATTRIBUTE.finditer(_QUOTED.sub("= ", match[0])))
            require(attributes <= MAX_ATTRIBUTES, f"a tag has over {MAX_ATTRIBUTES:,} attributes")
