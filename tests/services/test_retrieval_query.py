"""Which text is searched for in the middle of a conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.conversation import Message, Role
from privategpt.services.conversation_query import retrieval_query


def conversation(*questions: str) -> list[Message]:
    """User turns with an answer between each two."""
    messages: list[Message] = [Message(Role.SYSTEM, "You are a librarian.")]
    for question in questions:
        messages += [Message(Role.USER, question), Message(Role.ASSISTANT, "Some words.")]
    return messages[:-1]


HORIZON = "What is the goal of the Horizon project in Norway?"

FOLLOW_UPS = [
    (HORIZON, "and its budget?", ["Horizon", "Norway", "budget"]),
    (HORIZON, "What about its budget?", ["Horizon", "budget"]),
    (HORIZON, "why?", ["Horizon", "goal"]),
    (HORIZON, "Who leads it?", ["Horizon", "leads"]),
    (HORIZON, "And in Denmark?", ["Horizon", "Denmark"]),
    (HORIZON, "in 2024?", ["Horizon", "2024"]),
    (HORIZON, "Tell me more.", ["Horizon"]),
    (HORIZON, "Can you give an example?", ["Horizon"]),
    (HORIZON, "the budget", ["Horizon", "budget"]),
    (HORIZON, "What is the budget?", ["Horizon", "budget"]),
    (HORIZON, "thanks!", ["Horizon"]),
    (HORIZON, "How much?", ["Horizon"]),
    (HORIZON, "Does this project have partners?", ["Horizon", "partners"]),
    ("Who was Marie Curie?", "What about him?", ["Marie", "Curie"]),
    ("Who was Marie Curie?", "When was she born?", ["Marie", "Curie", "born"]),
    ("Who was Marie Curie?", "Did she also win prizes in Stockholm?", ["Curie", "Stockholm"]),
    ("Was ist das Ziel des Projekts Horizont?", "Und das Budget?", ["Horizont", "Budget"]),
    ("Was ist das Ziel des Projekts Horizont?", "Warum?", ["Horizont"]),
    ("Was ist das Ziel des Projekts Horizont?", "Wer leitet es?", ["Horizont", "leitet"]),
    ("Was ist das Ziel des Projekts Horizont?", "Wie hoch ist sein Budget?", ["Horizont"]),
    ("Was ist das Ziel des Projekts Horizont?", "Für Norwegen?", ["Horizont", "Norwegen"]),
    ("Quel est le but du projet Horizon ?", "Et son budget ?", ["Horizon", "budget"]),
    ("Quel est le but du projet Horizon ?", "Pourquoi ?", ["Horizon"]),
    ("Quel est le but du projet Horizon ?", "Qui le dirige ?", ["Horizon", "dirige"]),
    ("Quel est le but du projet Horizon ?", "Qui est son directeur ?", ["Horizon", "directeur"]),
    ("¿Cuál es el objetivo del proyecto Horizonte?", "¿Y su presupuesto?", ["Horizonte"]),
    ("¿Cuál es el objetivo del proyecto Horizonte?", "¿Por qué?", ["Horizonte"]),
    ("¿Cuál es el objetivo del proyecto Horizonte?", "¿Cuál es el presupuesto?", ["Horizonte"]),
    ("Qual è lo scopo del progetto Orizzonte?", "E il suo bilancio?", ["Orizzonte"]),
    ("Qual è lo scopo del progetto Orizzonte?", "Perché?", ["Orizzonte"]),
    ("Qual é o objetivo do projeto Horizonte?", "E o orçamento dele?", ["Horizonte"]),
    ("Wat is het doel van project Horizon?", "En het budget?", ["Horizon", "budget"]),
    ("Wat is het doel van project Horizon?", "Waarom?", ["Horizon"]),
    ("Jaki jest cel projektu Horyzont?", "A jego budżet?", ["Horyzont", "budżet"]),
    ("Jaki jest cel projektu Horyzont?", "Dlaczego?", ["Horyzont"]),
    ("Vad är målet med projektet Horisont?", "Och dess budget?", ["Horisont", "budget"]),
    ("Какова цель проекта Горизонт?", "А его бюджет?", ["Горизонт", "бюджет"]),
    ("Какова цель проекта Горизонт?", "Почему?", ["Горизонт"]),
    ("地平线项目的目标是什么？", "那它的预算呢？", ["地平线项目", "预算"]),
    ("地平线项目的目标是什么？", "为什么？", ["地平线项目"]),
    ("地平线项目的目标是什么？", "预算呢？", ["地平线项目", "预算"]),
    ("地平线项目的目标是什么？", "它什么时候开始的？", ["地平线项目", "开始"]),
    ("ホライズン計画の目的は何ですか？", "その予算は？", ["ホライズン計画", "予算"]),
    ("ホライズン計画の目的は何ですか？", "なぜですか？", ["ホライズン計画"]),
    ("ホライズン計画の目的は何ですか？", "ノルウェーでは？", ["ホライズン計画", "ノルウェー"]),
]


@pytest.mark.parametrize(("first", "question", "expected"), FOLLOW_UPS)
def test_a_follow_up_is_searched_for_with_what_the_first_question_was_about(
    first: str, question: str, expected: list[str]
) -> None:
    query = retrieval_query(conversation(first, question))
    assert query.endswith(question)
    assert query != question
    assert [word for word in expected if word not in query] == []


STANDING_ALONE = [
    (HORIZON, "What is photosynthesis?"),
    (HORIZON, "Explain photosynthesis"),
    (HORIZON, "Who is Albert Einstein?"),
    (HORIZON, "What is the capital of France?"),
    (HORIZON, "What is the difference between TCP and UDP?"),
    (HORIZON, "What did Albert Einstein say about his theory?"),
    (HORIZON, "How tall is the Eiffel Tower?"),
    (HORIZON, "termination notice period employment contract"),
    (HORIZON, "Is it true that drinking coffee causes liver cancer?"),
    ("Was ist das Ziel des Projekts Horizont?", "Was ist Photosynthese?"),
    ("Was ist das Ziel des Projekts Horizont?", "Wie lang ist die Kündigungsfrist im Mietvertrag?"),
    ("Quel est le but du projet Horizon ?", "Qu'est-ce que la photosynthèse ?"),
    ("Quel est le but du projet Horizon ?", "Quelle est la capitale de la Norvège ?"),
    ("¿Cuál es el objetivo del proyecto Horizonte?", "¿Qué es la fotosíntesis?"),
    ("¿Cuál es el objetivo del proyecto Horizonte?", "¿Cuál es la capital de Noruega?"),
    ("Qual è lo scopo del progetto Orizzonte?", "Che cos'è la fotosintesi?"),
    ("Qual é o objetivo do projeto Horizonte?", "O que é a fotossíntese?"),
    ("Wat is het doel van project Horizon?", "Wat is fotosynthese?"),
    ("Jaki jest cel projektu Horyzont?", "Co jest stolicą Norwegii?"),
    ("Vad är målet med projektet Horisont?", "Vad är fotosyntes?"),
    ("Какова цель проекта Горизонт?", "Что такое фотосинтез?"),
    ("Какова цель проекта Горизонт?", "Какая столица Норвегии?"),
    ("地平线项目的目标是什么？", "光合作用是什么？"),
    ("地平线项目的目标是什么？", "其他国家如何处理个人数据保护问题？"),
    ("ホライズン計画の目的は何ですか？", "光合成とは何ですか？"),
    ("ホライズン計画の目的は何ですか？", "賃貸契約の解約予告期間はどのくらいですか？"),
]


@pytest.mark.parametrize(("first", "question"), STANDING_ALONE)
def test_a_question_that_stands_alone_is_searched_for_as_it_is(first: str, question: str) -> None:
    assert retrieval_query(conversation(first, question)) == question


@pytest.mark.parametrize("question", ["why?", "and its budget?", HORIZON, "那它呢？", "  why? "])
def test_the_first_question_is_searched_for_as_it_is(question: str) -> None:
    assert retrieval_query(conversation(question)) == question.strip()


def test_a_chain_of_follow_ups_reaches_back_to_the_last_question_of_its_own() -> None:
    query = retrieval_query(
        conversation("What is photosynthesis?", HORIZON, "and its budget?", "in 2024?", "why?")
    )
    assert query == "goal Horizon project Norway budget 2024\nwhy?"


def test_a_change_of_topic_leaves_the_old_one_behind() -> None:
    query = retrieval_query(conversation(HORIZON, "Who was Marie Curie?", "When was she born?"))
    assert query == "Marie Curie\nWhen was she born?"


def test_a_pasted_text_lends_a_bounded_number_of_words() -> None:
    pasted = " ".join(f"word{n}" for n in range(5000))
    query = retrieval_query(conversation(pasted, "why?"))
    assert len(query.split()) <= 30


def test_only_user_turns_count() -> None:
    messages = [
        Message(Role.USER, HORIZON),
        Message(Role.ASSISTANT, "See Bananas Incorporated."),
        Message(Role.USER, "Who leads it?"),
        Message(Role.ASSISTANT, "Let me look."),
        Message(Role.TOOL, "tool output", tool_call_id="1"),
    ]
    query = retrieval_query(messages)
    assert query == "Horizon Norway\nWho leads it?"


@pytest.mark.parametrize("messages", [[], [Message(Role.ASSISTANT, "Hello")]])
def test_without_a_user_turn_there_is_nothing_to_search_for(messages: list[Message]) -> None:
    assert retrieval_query(messages) == ""


def test_a_picture_alone_is_searched_for_with_the_turn_before() -> None:
    assert retrieval_query(conversation(HORIZON, "")) == "goal Horizon project Norway"


TEXT = st.text(max_size=60) | st.sampled_from([one for case in FOLLOW_UPS for one in case[:2]])


@given(st.lists(TEXT, min_size=1, max_size=6))
def test_the_question_itself_is_never_lost(turns: list[str]) -> None:
    assert retrieval_query(conversation(*turns)).endswith(turns[-1].strip())


@pytest.mark.parametrize(
    ("question", "follows_up"),
    [
        ("What kingdom annexed it in 1796?", True),
        ("What is the largest botanical garden in it?", True),
        ("Which kings made war against them?", True),
        ("What did Einstein say when people doubted him?", False),
        ("Why does the moon look larger when it rises?", False),
        ("What must a reader pay after it expired?", False),
    ],
)
def test_a_pronoun_behind_a_verb_refers_back_unless_the_question_has_a_name(
    question: str, follows_up: bool
) -> None:
    turns = (Message(Role.USER, "Where is Warsaw?"), Message(Role.USER, question))
    expected = f"Warsaw\n{question}" if follows_up else question
    assert retrieval_query(turns) == expected
