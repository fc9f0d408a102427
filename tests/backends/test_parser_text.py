"""Text, Markdown, JSON, notebooks and web pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.parsers.html_reader import read_html
from privategpt.backends.parsers.markdown import markdown_headings
from privategpt.domain.documents import Heading
from privategpt.domain.errors import CorruptFile, EmptyFile, FileExceedsBounds
from tests.fakes.parser_files import read, read_one


def _outline(text: str) -> list[tuple[str, int, str]]:
    return [(text[h.start :].partition("\n")[0], h.level, h.title) for h in markdown_headings(text)]


def test_text_is_kept_word_for_word(tmp_path: Path) -> None:
    text = "Title row\r\nTeam,Location\r\nMaple Leafs,TOR,13\r\n"
    assert read_one(tmp_path, "a.csv", text) == "Title row\nTeam,Location\nMaple Leafs,TOR,13\n"


def test_a_nul_in_a_text_is_removed_and_nothing_else(tmp_path: Path) -> None:
    assert read_one(tmp_path, "a.txt", b"first a\0b and then a long enough line") == (
        "first ab and then a long enough line"
    )


def test_markdown_headings_are_noted_and_the_text_stays(tmp_path: Path) -> None:
    text = "# One\n\ntext\n\nTwo\nlines\n---\n\n## *Three* [link](x) ##\n"
    (document,) = read(tmp_path, "a.md", text).documents
    assert document.text == text
    assert document.headings == (
        Heading(start=0, level=1, title="One"),
        Heading(start=text.index("Two"), level=2, title="Two lines"),
        Heading(start=text.index("## *"), level=2, title="Three link"),
    )


@pytest.mark.parametrize(
    ("text", "outline"),
    [
        ("```\n# no\n```\n# yes", [("# yes", 1, "yes")]),
        ("~~~~ x\n# no\n~~~\n# no\n~~~~\n# yes", [("# yes", 1, "yes")]),
        ("``` `` x\n# yes", [("# yes", 1, "yes")]),
        ("#no\n####### no\n    # no\n#", []),
        ("para\n===", [("para", 1, "para")]),
        ("- item\n---\n> quote\n===\n\n---\n", []),
        ("---\ntitle: x\n# no\n---\n# yes", [("# yes", 1, "yes")]),
        ("a\n# b", [("# b", 1, "b")]),
    ],
)
def test_only_what_commonmark_calls_a_heading_is_one(
    text: str, outline: list[tuple[str, int, str]]
) -> None:
    assert _outline(text) == outline


def test_json_is_kept_and_its_escapes_become_readable(tmp_path: Path) -> None:
    text = r'{"a": "\u4e2d\u6587 \ud83d\ude00 \ud800 \n \\u4e2d \u0041"}'
    assert read_one(tmp_path, "a.json", text) == (r'{"a": "中文 😀 \ud800 \n \\u4e2d \u0041"}')


@pytest.mark.parametrize("name", ["a.json", "a.ipynb"])
def test_json_nested_without_end_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileExceedsBounds, match="nested"):
        read(tmp_path, name, "[" * 100_000)


def test_brackets_in_json_strings_are_not_nesting(tmp_path: Path) -> None:
    text = json.dumps(["a" + "[" * 5000, '"' + "{" * 5000])
    assert read_one(tmp_path, "a.json", text) == text


def test_a_notebook_gives_its_cells_in_order(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["Intro\n", "# Part one\n", "words"]},
        {
            "cell_type": "code",
            "source": "print(6 * 7)",
            "outputs": [{"text": ["42\n"]}, {"data": {"text/plain": "'x'"}}, {"data": 1}],
        },
        {"cell_type": "raw", "source": None},
        "not a cell",
    ]
    (document,) = read(tmp_path, "a.ipynb", json.dumps({"cells": cells})).documents
    assert document.text == "Intro\n\n# Part one\nwords\n\nprint(6 * 7)\n\n42\n\n'x'"
    assert document.headings == (Heading(start=7, level=1, title="Part one"),)


def test_a_notebook_that_is_no_json_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="JSON"):
        read(tmp_path, "a.ipynb", "{cells")


@pytest.mark.parametrize("text", ["[]", '{"cells": 1}'])
def test_a_notebook_without_cells_has_no_text(text: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyFile):
        read(tmp_path, "a.ipynb", text)


_PAGE = """<!DOCTYPE html><html lang="pt-BR"><head><title>A  page</title>
<meta name="Author" content="The Office"><meta property="article:published_time"
content="2021-05-06"><meta name=viewport content=x><style>p{}</style></head><body>
<h1>Top <em>news</em></h1><p>First<br>second&nbsp;part</p>
<script>var x = "<p>hidden</p>";</script><template><p>hidden</p><template>x</template></template>
<table><caption>Cap</caption><tr><th>A1</th><th>B1</th></tr>
<tr><td><p>A2</p><p>more</p></td><td>B2</td></tr></table>
<ul><li>one</li><li>two</li></ul><pre>a
  b</pre><h2></h2><img alt="A picture"><nav><a href=x>Docs</a><a href=y>Blog</a></nav>
</body></html>"""


def test_a_web_page_becomes_blocks_rows_and_headings(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.html", _PAGE)
    (document,) = parsed.documents
    assert document.text == (
        "Top news\n\nFirst\nsecond part\n\nCap\n\nA1 | B1\nA2 more | B2\n\none\ntwo\n\na\n  b\n\n"
        "A picture\n\nDocs Blog"
    )
    assert document.headings == (Heading(start=0, level=1, title="Top news"),)
    assert parsed.metadata == {
        "title": "A page",
        "author": "The Office",
        "year": 2021,
        "language": "pt-BR",
    }


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>a</p>tail with <", "a\n\ntail with <"),
        ("just text &amp; more", "just text & more"),
        ("<!-- never closed <p>a</p>", "never closed\n\na"),
        ("<!-- closed --><p>a</p>", "a"),
        ("<p><![CDATA[x]]></p>", "x"),
        ("<![if !IE]><p>a</p><![endif]>", "a"),
        ("<![foo[<p>a</p>", "foo[\n\na"),
        ("<table><tr><td>a<table><tr><td>b</td><td>c</td></tr></table>d</td></tr></table>e", ""),
        ("<td>loose</td></tr></table><p>b", "loose\n\nb"),
        ("<tr><td>row</td><td>cells</td></tr>", "row\n\ncells"),
        ("<table><td>a<td>b<tr><td>c<td>d", "a | b\nc | d"),
        ("<table><tr><th colspan=2>a<th>b<tr><td>c<td>d<td>e", "a |  | b\nc | d | e"),
        ("<table><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e", "a | b\n| c\nd | e"),
        (
            "<table><td>a<td rowspan=3>b<td>c<tr><td>d<td>e<tr><td>f<td>g<tr><td>h<td>i<td>j",
            "a | b | c\nd |  | e\nf |  | g\nh | i | j",
        ),
        ("<table><td rowspan=2 colspan=2>a<td>b<tr><td>c<tr></tr><tr><td>d", "a |  | b\n|  | c\nd"),
        ("<table><td colspan=99999>a<td colspan=-1 rowspan=\u00b2>b<tr><td>c", "WIDE"),
        ("<p/>a<br/>b<div/>c", "a\nb\n\nc"),
        ("<h1>one<h2>two</h2>", "one\n\ntwo"),
        ("<td><h3>x</h3></td>", "x"),
        ("<script>a</script>b</script></div>", "b"),
        ("<pre>a</pre></pre><p>b", "a\n\nb"),
        ("<title>only</title>", ""),
        ("<a>x</a> y<a>z</a><button>q</button>", "x yz q"),
        ("<img alt=' '><img><hr>x", "x"),
        ("a\xa0b  c", "a b c"),
    ],
)
def test_broken_and_odd_markup_loses_no_text(page: str, text: str) -> None:
    text = text.replace("WIDE", f"a{' | ' * 200}b\nc")
    expected = text or {"<table": "a\n\nb | c\n\nd\n\ne", "<title": ""}[page[:6]]
    assert read_html(page).builder.build().text == expected


@given(st.lists(st.sampled_from(["<p>", "<td>", "<table>", "</table>", "<tr>", "</td>", "<h1>",
    "</h1>", "<pre>", "</pre>", "<li>", "<br>", "<![CDATA[", "<!--", "-->", "<![x[", "<!x", "<?",
    "word", " ", "<a>", "</a>", "&amp;", "<", ">"])))  # fmt: skip
def test_no_markup_can_break_the_reader(pieces: list[str]) -> None:
    document = read_html("".join(pieces)).builder.build()
    for heading in document.headings:
        assert document.text[heading.start :].startswith(heading.title)


@pytest.mark.parametrize("piece", ["<!--", "<div>", "<![CDATA[", "<?", "<", "<a b='", "<![if "])
def test_reading_a_page_takes_time_in_proportion_to_it(piece: str) -> None:
    # Quadratic readers need minutes for this; the test's own timeout is the measure.
    read_html(piece * 100_000)


def test_a_page_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile):
        read(tmp_path, "a.html", "<script>x</script>")


@pytest.mark.parametrize(
    ("block", "metadata"),
    [
        ("title: My Day\nauthor: 'Ann'\ndate: 2023-04-05 # so far\n--- ",
         {"title": "My Day", "author": "Ann", "year": 2023}),
        ('Title: "C: a tale"\ntitle: second\ntags: [x]\n...', {"title": "C: a tale"}),
        ("title: >\n  folded\nauthor: [a, b]\n---", {}),
        ("  title: inside another\ntitle:none\n---", {}),
        ("title: never ends", {}),
    ],
)  # fmt: skip
def test_what_stands_above_a_markdown_text_says_of_it_is_metadata(
    block: str, metadata: dict[str, object], tmp_path: Path
) -> None:
    parsed = read(tmp_path, "a.md", f"---\n{block}\n\n# Head\n")
    assert parsed.metadata == metadata
    assert parsed.documents[0].text.startswith("---\n")
