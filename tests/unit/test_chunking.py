"""Chunks are exact ranges that cover a document once, and cut where a reader would."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privategpt.backends.embedding import bundled
from privategpt.backends.embedding.encoder import Prompts
from privategpt.backends.embedding.text_reader import TextReader
from privategpt.backends.embedding.tokenizer import load_fast_tokenizer
from privategpt.chunking.identity import chunk_id, document_id
from privategpt.chunking.splitter import MAX_CHARACTERS, split
from privategpt.domain.documents import Chunk, Heading, ParsedDocument
from privategpt.domain.ports import Tokenizer
from tests.fakes.embedding import WordTokenizer


@cache
def minilm() -> Tokenizer:
    fast = load_fast_tokenizer(bundled.locate())
    return TextReader(fast=fast, max_tokens=256, prompts=Prompts()).tokenizer


class CharacterTokenizer:
    """The other extreme: every character is a token, white space too."""

    max_tokens = 40

    def count(self, text: str) -> int:
        return len(text)

    def ends(self, text: str) -> Sequence[int]:
        return range(1, len(text) + 1)


class GreedyTokenizer(CharacterTokenizer):
    """Reads a piece worse than the same piece in its text, as a merging tokenizer may.

    Only texts that begin with "a" are cheap: two characters to a token.
    """

    def count(self, text: str) -> int:
        return len(self.ends(text))

    def ends(self, text: str) -> Sequence[int]:
        return range(1, len(text) + 1, 2 if text.startswith("a") else 1)


def _split(
    text: str,
    *,
    tokenizer: Tokenizer | None = None,
    max_tokens: int | None = None,
    headings: Sequence[Heading] = (),
) -> list[Chunk]:
    document = ParsedDocument(text=text, headings=tuple(headings))
    return split(document, doc_id="d", tokenizer=tokenizer or minilm(), max_tokens=max_tokens)


def _texts(text: str, *, max_tokens: int, headings: Sequence[Heading] = ()) -> list[str]:
    chunks = _split(text, tokenizer=WordTokenizer(), max_tokens=max_tokens, headings=headings)
    return [chunk.text for chunk in chunks]


def _assert_exact(text: str, chunks: Sequence[Chunk], tokenizer: Tokenizer, limit: int) -> None:
    end = 0
    for position, chunk in enumerate(chunks):
        assert chunk.position == position
        assert chunk.start >= end
        assert text[end : chunk.start].strip() == ""
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert len(chunk.text) <= MAX_CHARACTERS
        assert tokenizer.count(chunk.passage) <= limit or len(chunk.text) == 1
        end = chunk.end
    assert text[end:].strip() == ""


PIECES = st.sampled_from(
    ["Word", " ", "  ", "\n", "\n\n", "\r\n", "\f", "\t", ". ", "! ", "。", "？", "؟ ", "।", "…",
     ", ", "Dr. ", "# ", "- ", "1. ", "| a | b |\n", "x | y | z\n", "a,b;c\n",
     "```\n", "x = f(y);\n", "漢字",
     "かな", "한국어", "שלום", "मुझे", "e\u0301", "👩‍👩‍👧", "🇮🇸", "\u200b", "\u00a0", "\u2028",
     "\ufeff", "\x00", "ﷺ", "ß", "İ", "supercalifragilistic", "[SEP]", "A" * 120, "\ud800"]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=120).map("".join), st.text(max_size=300))


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, limit=st.integers(20, 254))
def test_chunks_cover_any_text_exactly_once_within_the_models_window(text: str, limit: int) -> None:
    chunks = _split(text, max_tokens=limit)

    _assert_exact(text, chunks, minilm(), limit)


@settings(max_examples=100, deadline=None)
@given(
    text=TEXTS,
    tokenizer=st.sampled_from([WordTokenizer(), CharacterTokenizer(), GreedyTokenizer()]),
    limit=st.integers(1, 40),
)
def test_chunks_stay_within_the_window_of_any_tokenizer(
    text: str, tokenizer: Tokenizer, limit: int
) -> None:
    chunks = _split(text, tokenizer=tokenizer, max_tokens=limit)

    _assert_exact(text, chunks, tokenizer, limit)


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, positions=st.lists(st.integers(0, 400), max_size=8, unique=True))
def test_headings_anywhere_change_no_invariant(text: str, positions: list[int]) -> None:
    headings = [
        Heading(start=position, level=position % 4 + 1, title=str(position))
        for position in positions
        if position < len(text)
    ]

    chunks = _split(text, tokenizer=WordTokenizer(), max_tokens=12, headings=headings)

    _assert_exact(text, chunks, WordTokenizer(), 12)


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=40),
    stop=st.sampled_from([". ", "? ", "! ", ".\n", ".\n\n"]),
)
def test_a_sentence_that_fits_is_never_cut(sizes: list[int], stop: str) -> None:
    sentences = [" ".join(["Word"] * size) + stop for size in sizes]

    texts = _texts("".join(sentences), max_tokens=14)

    assert [text[-1] for text in texts] == [stop[0]] * len(texts)


@pytest.mark.parametrize("stop", ["。", "！", "？", "؟ ", "। ", "۔ ", "。」"])
def test_other_scripts_sentences_are_kept_whole(stop: str) -> None:
    text = ("一 二 三 四 五 六" + stop) * 10

    texts = _texts(text, max_tokens=20)

    assert len(texts) > 3
    assert [piece[-1] for piece in texts] == [stop.strip()[-1]] * len(texts)


def test_abbreviations_initials_and_numbers_do_not_end_a_sentence() -> None:
    sentence = "We met Dr. A. Smith at 3.5 km, i.e. near No. 7 of St. James Street. "

    texts = _texts(sentence * 4, max_tokens=30)

    assert texts == [sentence.strip()] * 4


def test_lines_of_a_table_are_not_cut() -> None:
    row = "| Alpha beta. Gamma delta | 12 | 7 |"

    texts = _texts("\n".join([row] * 9), max_tokens=25)

    assert {line for text in texts for line in text.splitlines()} == {row}


def test_records_of_a_csv_file_are_not_cut() -> None:
    record = "17;Anna lives here. She works there;Reykjavik;IS;" + "x" * 200

    texts = _texts("\n".join([record] * 9), max_tokens=30)

    assert {line for text in texts for line in text.splitlines()} == {record}


def test_lines_of_code_are_not_cut() -> None:
    line = "    total = first(value) + second[index]; print('Done. Next')  # Add. Then say so"
    code = "```python\n" + f"{line}\n" * 12 + "```"

    texts = _texts(code, max_tokens=60)

    assert {line.strip() for text in texts for line in text.splitlines()} == {
        "```python", line.strip(), "```",
    }  # fmt: skip


def test_a_paragraph_wrapped_at_a_column_is_cut_between_its_sentences() -> None:
    sentence = (
        "The quick brown fox jumps over the lazy\ndog while everybody else in the village sleeps. "
    )

    texts = _texts(sentence.replace(". ", ".\n") * 6, max_tokens=40)

    assert texts == [sentence.strip() + "\n" + sentence.strip()] * 3


def test_a_heading_starts_a_chunk_and_names_the_path_of_what_is_below() -> None:
    text = "# One\n\n" + "Alpha beta gamma. " * 4 + "\n\n## Two\n\n" + "Delta epsilon. " * 4
    headings = [
        Heading(start=0, level=1, title="One"),
        Heading(start=text.index("## Two"), level=2, title="Two"),
    ]

    chunks = _split(text, tokenizer=WordTokenizer(), max_tokens=30, headings=headings)

    assert [(chunk.text.split("\n")[0], chunk.heading_path) for chunk in chunks] == [
        ("# One", ("One",)),
        ("## Two", ("One", "Two")),
    ]


def test_a_heading_given_behind_its_marks_still_takes_them_along() -> None:
    text = "Alpha beta gamma delta. " * 3 + "\n## Two\nEpsilon."
    headings = [Heading(start=text.index("Two"), level=1, title="Two")]

    assert _texts(text, max_tokens=16, headings=headings)[-1] == "## Two\nEpsilon."


def test_a_heading_is_not_parted_from_its_text() -> None:
    text = "Alpha beta gamma. Delta epsilon zeta.\n\nTitle\n\nEta theta iota kappa lambda."
    headings = [Heading(start=text.index("Title"), level=1, title="Title")]

    assert _texts(text, max_tokens=10, headings=headings) == [
        "Alpha beta gamma. Delta epsilon zeta.",
        "Title\n\nEta theta iota kappa lambda.",
    ]


def test_a_heading_goes_alone_rather_than_cut_the_sentence_below_it() -> None:
    headings = [Heading(start=0, level=1, title="A long title of words")]
    sentence = "One two three four five six seven."

    text = f"A long title of words\n{sentence} {sentence}"

    assert _texts(text, max_tokens=9, headings=headings) == [
        "A long title of words", sentence, sentence,
    ]  # fmt: skip


def test_a_sibling_heading_replaces_the_one_before_in_the_path() -> None:
    text = "A\n" + "word " * 9 + "\nB\n" + "word " * 9
    headings = [
        Heading(start=0, level=2, title="A"),
        Heading(start=text.index("B"), level=1, title="B"),
    ]

    chunks = _split(text, tokenizer=WordTokenizer(), max_tokens=12, headings=headings)

    assert [chunk.heading_path for chunk in chunks] == [("A",), ("B",)]


def test_a_small_last_chunk_is_balanced_with_the_one_before() -> None:
    texts = _texts("One two three. " * 16 + "End.", max_tokens=64)

    assert [len(text) for text in texts] == [119, 124]


def test_a_long_word_is_cut_between_characters_and_keeps_accents_and_emoji_whole() -> None:
    chunks = _split("e\u0301" * 60, tokenizer=CharacterTokenizer(), max_tokens=15)

    assert {chunk.text for chunk in chunks} == {"e\u0301" * 7, "e\u0301" * 4}


def test_a_sentence_too_long_is_cut_at_a_clause_or_else_at_a_word() -> None:
    assert _texts("one two three four five, six seven eight nine ten", max_tokens=8) == [
        "one two three four five,", "six seven eight nine ten",
    ]  # fmt: skip
    assert _texts("one two three four five six seven eight nine", max_tokens=5) == [
        "one two three four five", "six seven eight nine",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["a" * 50_000, "漢" * 200_000, "漢字かな。" * 40_000, "x " * 100_000, "[" * 100_000,
     "e\u0301" * 50_000, "a,b;c\n" * 20_000, "# h\n" * 20_000, "Dr. " * 50_000, "\u200b" * 50_000],
    ids=["letters", "cjk", "cjk-sentences", "words", "brackets", "accents", "records", "headings",
         "abbreviations", "invisible"],
)  # fmt: skip
def test_monotonous_giants_are_covered_exactly(text: str) -> None:
    _assert_exact(text, _split(text), minilm(), 254)


def test_each_character_is_tokenised_a_bounded_number_of_times() -> None:
    class Counting(WordTokenizer):
        read = 0

        def ends(self, text: str) -> Sequence[int]:
            self.read += len(text)
            return super().ends(text)

    tokenizer = Counting(max_tokens=50)
    text = "Some words here, and some there. " * 5_000 + "x" * 100_000 + "," * 100_000

    _split(text, tokenizer=tokenizer)

    assert tokenizer.read < 4 * len(text)


@pytest.mark.parametrize("word", ["word ", "漢"])
def test_a_book_read_in_blocks_is_chunked_as_if_read_at_once(word: str) -> None:
    text = word * (1_200_000 // len(word))

    chunks = _split(text, tokenizer=WordTokenizer(max_tokens=100))

    _assert_exact(text, chunks, WordTokenizer(), 100)


def test_a_piece_that_alone_is_more_tokens_than_in_its_text_is_cut_again() -> None:
    text = "abcdefgh" * 50

    chunks = _split(text, tokenizer=GreedyTokenizer())

    _assert_exact(text, chunks, GreedyTokenizer(), GreedyTokenizer.max_tokens)
    assert max(len(chunk.text) for chunk in chunks) == 79
    assert len(chunks) < 12


def test_white_space_alone_has_no_chunks() -> None:
    assert _split(" \n\t\u3000" * 25_000) == []
    assert _split("") == []


def test_ids_are_a_function_of_the_file_and_the_positions() -> None:
    document = document_id("file-1", 0)

    assert document == document_id("file-1", 0)
    assert len({document, document_id("file-1", 1), document_id("file-2", 0)}) == 3
    assert chunk_id(document, 3) == chunk_id(document, 3)
    assert len({chunk_id(document, 0), chunk_id(document, 1), chunk_id("other", 0)}) == 3
