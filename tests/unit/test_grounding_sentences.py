"""Where sentences end, at once and as they arrive."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privategpt.grounding.sentences import (
    MAX_SENTENCE_LENGTH,
    SentenceSplitter,
    split_sentences,
)

# fmt: off
CASES = {
    "two sentences": ["It boils.", "Then it stops."],
    "question and exclamation": ["Really?", "Yes!", "Good."],
    "decimal": ["It is 3.5 mg.", "It is 4."],
    "abbreviations": ["Dr. Smith and Prof. Jones saw Fig. 2.", "They left."],
    "et al. in a sentence": ["Smith et al. Found it."],
    "etc. at the end": ["Apples, pears, etc.", "The rest is gone."],
    "initials": ["J. R. R. Tolkien wrote it.", "He was English."],
    "country at the end": ["He lives in the U.S.", "The law is old."],
    "country in the middle": ["The U.S. Army came."],
    "goes on in lower case": ["He said e.g. this and i.e. that."],
    "ellipsis that goes on": ["Well... perhaps."],
    "ellipsis that ends": ["Well...", "Perhaps."],
    "quotes": ["He said \"Go.\"", "She went."],
    "bold full stop": ["**It boils.**", "Then."],
    "ordinal before a German month": ["Er kam am 3. Mai 1990.", "Er ging."],
    "number at the end": ["It was founded in 12.", "Then it fell."],
    "Icelandic month": ["Hann kom 17. júní.", "Hann fór."],
    "Chinese": ["水在100度沸腾。", "然后停止！", "好吗？"],
    "Japanese quotes": ["「行く。」", "彼は言った。"],
    "Hindi": ["यह पानी है।", "यह ठंडा है।"],
    "Sanskrit": ["धर्मः॥", "सत्यम्॥"],
    "Armenian": ["Ջուրը եռում է։", "Հետո կանգնում է։"],
    "Amharic": ["ውሃ ይፈላል።", "ከዚያ ይቆማል።"],
    "Khmer": ["ទឹកពុះ។", "វាត្រជាក់។"],
    "Burmese with a marker behind": ["ရေဆူသည်။[1]", "ရပ်သည်။"],
    "marker behind the full stop": ["It boils.[1]", "Then it stops. [2]", "End."],
    "marker as a subject": ["It boils.", "[3] says so."],
    "marker before the full stop": ["It boils [1][2].", "Then."],
    "Chinese with a marker behind": ["水沸腾。[1]", "停止。"],
}
# fmt: on

BLOCKS = {
    "# Heading\nText one. Text two": ["# Heading", "Text one.", "Text two"],
    "- one\n- two\n\nthree": ["- one", "- two", "three"],
    "1. One\n2. Two. More": ["1. One", "2. Two.", "More"],
    "| a | b |\n| c | d |\nEnd": ["| a | b |", "| c | d |", "End"],
    "This follows:\nfoo": ["This follows:", "foo"],
    "**Bold**\nText": ["**Bold**", "Text"],
    "a line\nthat goes on. End": ["a line\nthat goes on.", "End"],
    "one\fTwo": ["one", "Two"],
    "\n\n  One.  \n\n": ["One."],
    "": [],
    " \n ": [],
    "x\n```\ny": ["x", "```\ny"],
}


def texts(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text)]


def segments(*parts: str) -> list[str]:
    splitter = SentenceSplitter()
    return [*(one for part in parts for one in splitter.feed(part)), *splitter.finish()]


@pytest.mark.parametrize("name", CASES)
def test_sentences_end_where_a_reader_says(name: str) -> None:
    gap = "" if name in {"Chinese", "Japanese quotes", "Chinese with a marker behind"} else " "
    assert texts(gap.join(CASES[name])) == CASES[name]


@pytest.mark.parametrize("text", BLOCKS)
def test_blocks_end_sentences(text: str) -> None:
    assert texts(text) == BLOCKS[text]


FRAGMENTS = st.sampled_from(
    [
        "a", "B", " ", ". ", "\n", ".", "! ", "[1]", " [2]", "[", "1", "3. ", "Mai", "- ", "#",
        "**", ":", "。", "।", "။", "\f", "  ", "Dr. ", "etc. ", "The ", '"', ")", "`", "~", "|",
        " " * 18, "x" * 700,
    ]
)  # fmt: skip


@given(parts=st.lists(FRAGMENTS, max_size=20))
@settings(max_examples=300, deadline=None)
def test_the_sentences_do_not_depend_on_the_cuts_and_lose_nothing(parts: list[str]) -> None:
    text = "".join(parts)
    whole = segments(text)
    assert "".join(whole) == text
    assert segments(*parts) == segments(*text) == whole


@given(parts=st.lists(FRAGMENTS, max_size=20))
@settings(max_examples=200, deadline=None)
def test_offsets_point_at_text_without_white_space_around_it(parts: list[str]) -> None:
    text = "".join(parts)
    spans = split_sentences(text)
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    covered = "".join(text[span.start : span.end] for span in spans)
    assert "".join(covered.split()) == "".join(text.split())


def test_a_sentence_is_released_once_the_next_word_is_known() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("It boils. Then") == []
    assert splitter.feed(" ") == ["It boils. "]


def test_a_text_without_full_stops_is_cut_at_a_space() -> None:
    (first, *_) = segments("word " * 1000)
    assert MAX_SENTENCE_LENGTH - 5 <= len(first) <= MAX_SENTENCE_LENGTH
    assert first.endswith("word ")


def test_a_text_without_spaces_is_cut_all_the_same() -> None:
    assert [len(one) for one in segments("x" * 4000)] == [1500, 1500, 1000]


@pytest.mark.parametrize("text", [". ", "a", ".", " ", "\n", "。", "[1]", "A. ", "a\n", "- "])
def test_the_work_grows_in_proportion_to_the_text(text: str) -> None:
    def seconds(length: int) -> float:
        started = time.process_time()
        segments((text * length)[:length])
        return time.process_time() - started

    small = min(seconds(5_000) for _ in range(3))
    large = min(seconds(20_000) for _ in range(3))
    assert large < 0.01 or large < 10 * small
