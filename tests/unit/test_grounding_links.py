"""Links and images may lead to sources only, whatever the cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privategpt.grounding.links import LinkGuard
from privategpt.grounding.markdown import CodeLexer

ALLOWED = ("https://ok.example/a", "/v1/documents/1")

CASES = {
    "a [t](https://evil.example/x) b": "a t b",
    "![i](https://evil.example/x?d=1) b": " b",
    "[t](https://ok.example/a) ![i](https://ok.example/a/)": None,
    "[t](HTTPS://OK.example/a#part)": None,
    "[t](/v1/documents/1)": None,
    "[t](/v1/documents/2)": "t",
    "[t](#part)": None,
    "see https://evil.example/x. Then": "see evil.example/x. Then",
    "see https://ok.example/a. Then": None,
    "see (https://ok.example/a)": None,
    "see https://ok.example/ab": "see ok.example/ab",
    "see http://ok.example/a": "see ok.example/a",
    "see www.evil.example": "see evil.example",
    "see //evil.example/x": "see evil.example/x",
    "<https://evil.example>": "evil.example",
    "<https://ok.example/a>": None,
    "<mailto:a@b.example>": "mailto:a@b.example",
    '<img src="//evil.example/x">': "",
    "<a href='x'>t</a>": "t",
    "1 < 2 <b>": None,
    "x <imaginary": None,
    "`[t](https://evil.example)`": None,
    "```\nhttps://evil.example\n```": None,
    "[`c`](http://evil.example)": "`c`",
    "[![i](http://evil.example)](http://evil.example) x": " x",
    "[1](http://evil.example) [1]": "1 [1]",
    "[[1]](http://evil.example)": "[1]",
    "[x]: //evil.example/y": "[x]: evil.example/y",
    "[t][r]\n\n[r]: http://evil.example": "[t][r]\n\n[r]: evil.example",
    "[m](mailto:x@y.example) [j](javascript:alert(1))": "m j",
    "[a]( <http://evil.example/ a> 'title' ) ok": "a ok",
    f"[{'x' * 400}](http://evil.example) y": f"[{'x' * 400}] y",
    f"[{'x' * 400}](https://ok.example/a) y": None,
    f"[x](http://evil.example/{'y' * 1200})": f"[x](evil.example/{'y' * 1200})",
    "[x](not closed": None,
    "[x] (https://evil.example)": "[x] (evil.example)",
    "![x": None,
    "a // b and http:/ and ww": None,
}


def guard(*parts: str) -> str:
    lexer, links = CodeLexer(), LinkGuard(allowed=ALLOWED)
    pieces = [piece for part in parts for piece in links.feed(lexer.feed(part))]
    pieces += links.finish(lexer.finish())
    return "".join(piece.text for piece in pieces)


@pytest.mark.parametrize("text", CASES)
def test_foreign_addresses_are_defused_and_the_rest_is_left(text: str) -> None:
    expected = CASES[text]
    assert guard(text) == (text if expected is None else expected)


@pytest.mark.parametrize("text", CASES)
def test_the_cut_makes_no_difference(text: str) -> None:
    assert guard(*text) == guard(text)
    for cut in range(0, len(text), max(1, len(text) // 40)):
        assert guard(text[:cut], text[cut:]) == guard(text)


FRAGMENTS = st.sampled_from(
    [
        "[", "]", "(", ")", "![", "](", "http://", "https://ok.example/a", "evil.example", " ",
        "\n", "<", "img ", ">", "`", "a", "//", "www.", "/", ".", "<a ", "#", "x",
        "httpſ://",
    ]
)  # fmt: skip


@given(parts=st.lists(FRAGMENTS, max_size=14))
@settings(max_examples=400, deadline=None)
def test_no_cut_of_any_text_makes_a_difference(parts: list[str]) -> None:
    text = "".join(parts)
    assert guard(*parts) == guard(*text) == guard(text)


@given(parts=st.lists(FRAGMENTS, max_size=14))
@settings(max_examples=300, deadline=None)
def test_no_foreign_address_with_a_scheme_is_left_outside_code(parts: list[str]) -> None:
    text = "".join(parts).replace("`", "")
    left = guard(text).replace("https://ok.example/a", "")
    assert "http://evil" not in left
    assert "https://evil" not in left


def test_text_without_links_is_released_at_once() -> None:
    links = LinkGuard(allowed=())
    assert "".join(p.text for p in links.feed(CodeLexer().feed("Water boils (at 100)."))) == (
        "Water boils (at 100)."
    )
