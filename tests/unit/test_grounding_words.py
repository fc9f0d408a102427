"""Words of scripts whose letters have marks, or that write no spaces."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.conversation import Message, Role
from privategpt.grounding.abstention import guess_language
from privategpt.grounding.claims import is_claim
from privategpt.grounding.gate import read_statement
from privategpt.grounding.lexical import read_terms
from privategpt.grounding.markdown import Piece
from privategpt.grounding.waiting import insert_marker
from privategpt.services.conversation_query import retrieval_query

DELHI = "दिल्ली भारत की राजधानी है।"


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        (DELHI, {"दिल्ली", "भारत", "की", "राजधानी", "है"}),
        ("தண்ணீர் நூறு டிகிரியில் கொதிக்கிறது.", {"தண்ணீர்", "நூறு", "டிகிரியில்", "கொதிக்கிறது"}),
        ("Das Cafe\u0301 o\u0308ffnet um acht.", {"café", "öffnet", "acht"}),
        ("הַמַּיִם רוֹתְחִים.", {"המים", "רותחים"}),
        ("كَتَبَ الوَلَدُ", {"كتب", "الولد"}),
        ("水が沸く", {"水が", "が沸", "沸く"}),
        ("น้ำเดือด", {"น้", "้ำ", "ำเ", "เด", "ดื", "ือ", "อด"}),
        ("𠮷野家", {"𠮷野", "野家"}),
    ],
)
def test_a_word_is_whole_with_its_marks(sentence: str, words: set[str]) -> None:
    assert read_terms(sentence).words == words
    assert is_claim(sentence)


def test_two_cities_are_not_the_same_word() -> None:
    other = DELHI.replace("दिल्ली", "मुंबई")
    assert read_terms(DELHI).words - read_terms(other).words == {"दिल्ली"}


@given(
    st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("가각한\u0301\u0308"), max_size=30)
)
def test_accents_count_alike_whether_they_are_apart_or_not(text: str) -> None:
    apart, together = (unicodedata.normalize(form, text) for form in ("NFD", "NFC"))
    assert read_terms(apart) == read_terms(together)
    assert read_statement(apart) == read_statement(together)


@pytest.mark.parametrize("stop", "।॥۔։።။។。")
def test_a_marker_goes_before_the_full_stop_of_every_script(stop: str) -> None:
    pieces, at = insert_marker([Piece(f"Es regnet{stop} ")], 2)
    assert "".join(piece.text for piece in pieces) == f"Es regnet [2]{stop} "
    assert pieces[at].number == 2


@pytest.mark.parametrize("question", ["¿Qué dice el señor?", "Où était la maison à côté?"])
def test_a_language_is_told_from_accents_apart(question: str) -> None:
    apart = unicodedata.normalize("NFD", question)
    assert guess_language(apart) == guess_language(question) != "en"


def test_what_a_follow_up_in_hindi_is_about_comes_in_whole_words() -> None:
    turns = [Message(Role.USER, "दिल्ली भारत की राजधानी है"), Message(Role.USER, "?")]
    assert retrieval_query(turns) == "दिल्ली भारत की राजधानी है\n?"
