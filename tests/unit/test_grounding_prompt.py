"""The prompt: stable part first, and nothing in a source can be anything but data."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privategpt.domain.answers import Source
from privategpt.domain.conversation import Message, Role
from privategpt.domain.documents import DocumentInfo
from privategpt.grounding.abstention import SENTENCES, abstention, guess_language
from privategpt.grounding.markers import MarkerScanner
from privategpt.grounding.prompt import (
    DEFAULT_SYSTEM_PROMPT,
    PromptStyle,
    compose,
    neutralise,
)


def source(number: int, text: str, title: str = "Report", page: str | None = None) -> Source:
    metadata = {"page_label": page} if page else {}
    document = DocumentInfo(f"d{number}", "f", 0, metadata)
    return Source(number, title, text, document, 0, len(text))


QUESTION = Message(Role.USER, "How hot is it?")


def test_sources_follow_the_instructions_and_precede_the_conversation() -> None:
    system, user = compose([QUESTION], [source(1, "It is hot.", page="4"), source(2, "No.")])
    assert user == QUESTION
    assert system.role is Role.SYSTEM
    assert system.text.startswith(DEFAULT_SYSTEM_PROMPT)
    assert system.text.endswith(
        "<source>[1] Report, page 4\nIt is hot.\n</source>\n\n<source>[2] Report\nNo.\n</source>"
    )


def test_the_prompt_up_to_the_conversation_does_not_depend_on_the_question() -> None:
    sources = [source(1, "It is hot.")]
    first, *_ = compose([QUESTION], sources)
    second, *_ = compose([QUESTION, Message(Role.ASSISTANT, "Hot."), QUESTION], sources)
    assert first == second


def test_without_sources_there_is_nothing_about_sources() -> None:
    assert compose([QUESTION], []) == (QUESTION,)
    assert compose([QUESTION], [], system_prompt="Be brief.") == (
        Message(Role.SYSTEM, "Be brief."),
        QUESTION,
    )


def test_own_system_messages_come_first_and_replace_the_default() -> None:
    own = Message(Role.SYSTEM, "Rhyme.")
    assert compose([own, QUESTION], []) == (own, QUESTION)
    system, _ = compose([QUESTION, own], [source(1, "x")], system_prompt="Be brief.")
    assert system.text.startswith("Be brief.\n\nRhyme.\n\nAnswer in")


def test_structured_answers_are_not_asked_for_markers() -> None:
    system, _ = compose([QUESTION], [source(1, "x")], style=PromptStyle.PLAIN)
    assert "brackets" not in system.text


def test_markers_of_earlier_answers_are_taken_out() -> None:
    earlier = Message(Role.ASSISTANT, "It is hot [3][1].")
    assert compose([earlier, QUESTION], [source(1, "x")])[1].text == "It is hot."
    assert compose([earlier, QUESTION], [])[0].text == "It is hot [3][1]."


@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>system", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>",
        "<|channel|>final", "<|start|>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>",
        "<start_of_turn>model",
        "<end_of_turn>", "<｜User｜>", "### Instruction:", "### Response", "## system", "[gMASK]",
        "</source>", "<source>", "< source>", "<think>", "<tool_call>", "[1]", "【1†source】",
        "[Source 2]", "[^1]", "[[1]]", "[1, 2]",
    ],
)  # fmt: skip
def test_control_tokens_markers_and_delimiters_do_not_survive(token: str) -> None:
    for text in (token, f"before\n{token}\nafter", token * 3, token.upper()):
        assert token.lower() not in neutralise(text).lower()


PARTS = st.sampled_from(
    [
        "<", "|", ">", "<|", "|>", "im_start", "s", "/", "[", "]", "INST", "<s>", "<|x|>",
        "<<SYS>>", "1", " ", "\n", "###", "system", ":", "source", "[INST]", "【", "】",
        "<start_of_turn>", "a", "#", "user",
    ]
)  # fmt: skip


@given(parts=st.lists(PARTS, max_size=14))
@settings(max_examples=400, deadline=None)
def test_no_nesting_of_tokens_leaves_one_behind(parts: list[str]) -> None:
    left = neutralise("".join(parts))
    tokens = (
        r"<\||\|>|</?(?:s|system|user)>|<<SYS|\[/?INST\]|<start_of_turn>|</?source\b|##[ \t]*user"
    )
    assert not re.search(tokens, left, re.I)


@given(parts=st.lists(PARTS, max_size=14))
@settings(max_examples=300, deadline=None)
def test_a_model_that_repeats_a_source_cites_nothing_by_it(parts: list[str]) -> None:
    scanner = MarkerScanner(sources=9)
    text = " ".join(parts)
    scans = [scanner.feed(neutralise(text)), scanner.finish()]
    assert [marker for scan in scans for marker in scan.markers] == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<<###system", "<< system"),
        ("<###system>", "< system>"),
        ("######## system", "system"),
        ("### ## ### user", "user"),
        ("So\n### Response\nwell", "So\nResponse\nwell"),
    ],
)
def test_what_stood_around_a_role_line_closes_up_to_no_token(text: str, left: str) -> None:
    assert neutralise(text) == left


def test_ordinary_text_is_not_changed() -> None:
    text = "In 2024 a[1] < 5, see the note (3). Ásta & Öskur 北京 🙂\n# Title\n- item"
    assert neutralise(text) == text


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What is the capital of France?", "en"),
        ("Wie hoch ist der Berg?", "de"),
        ("Quelle est la capitale de la France ?", "fr"),
        ("¿Cuál es la capital de Francia?", "es"),
        ("Qual é a capital da França?", "pt"),
        ("Qual è la capitale della Francia?", "it"),
        ("Wat is de hoofdstad van Frankrijk?", "nl"),
        ("Hver er höfuðborg Frakklands?", "is"),
        ("法国的首都是什么？", "zh"),
        ("フランスの首都は？", "ja"),
        ("Какая столица Франции?", "en"),
        ("", "en"),
        ("42", "en"),
    ],
)
def test_the_documents_lack_of_an_answer_is_told_in_the_questions_language(
    question: str, language: str
) -> None:
    assert guess_language(question) == language
    assert abstention(question) == SENTENCES[language]


@pytest.mark.parametrize("language", SENTENCES)
def test_each_sentence_is_of_its_own_language(language: str) -> None:
    assert guess_language(SENTENCES[language]) == language
