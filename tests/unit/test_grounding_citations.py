"""The Grounder: what reaches the reader, and that every marker can be checked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privategpt.domain.answers import Citation, Source
from privategpt.domain.documents import DocumentInfo
from privategpt.domain.verification import Verdict, Verification
from privategpt.grounding.citations import Grounder, Grounding, GroundingOptions
from tests.fakes.bag_of_words import BagOfWords

DOCUMENTS = {
    1: "Intro.\n\nSaturday in Lisbon is sunny with a high of 24 °C. "
    "Sunday turns cloudy with light rain in the afternoon. Bread is baked daily.",
    2: "The cat sat on the mat 😀. Dogs bark loudly at night.",
    3: "東京は日本の首都です。大阪は大きな都市です。",
}


def source(number: int, start: int = 0) -> Source:
    text = DOCUMENTS[number]
    return Source(
        number=number,
        title=f"Document {number}",
        text=text[start:],
        document=DocumentInfo(f"d{number}", f"f{number}", 0, {}),
        start=start,
        end=len(text),
    )


SOURCES = (source(1, start=8), source(2), source(3))


async def ground(
    *parts: str, question: str = "", options: GroundingOptions | None = None
) -> Grounding:
    grounder = Grounder(SOURCES, BagOfWords(), question=question, options=options)
    text = "".join([await grounder.feed(part) for part in parts])
    rest = await grounder.finish()
    return rest._replace(text=text + rest.text)


def assert_invariants(answer: Grounding) -> None:
    for citation in answer.citations:
        number = citation.source.number
        marker = answer.text[citation.marker_start : citation.marker_end]
        assert marker == f"[{number}]"
        assert DOCUMENTS[number][citation.start : citation.end] == citation.cited_text
        assert 0 <= citation.support <= 1
        assert citation.sentence_start <= citation.marker_start
        assert citation.marker_end <= citation.sentence_end <= len(answer.text)
    places = [citation.marker_start for citation in answer.citations]
    assert places == sorted(set(places))
    assert answer.grounded == bool(answer.citations)


def cited(answer: Grounding) -> list[tuple[int, str]]:
    return [(one.source.number, one.cited_text) for one in answer.citations]


async def test_an_answer_without_markers_gets_them_before_the_full_stop() -> None:
    answer = await ground(
        "Saturday in Lisbon is sunny with a high of 24 °C. "
        "Sunday turns cloudy, with light rain in the afternoon."
    )
    assert answer.text == (
        "Saturday in Lisbon is sunny with a high of 24 °C [1]. "
        "Sunday turns cloudy, with light rain in the afternoon [1]."
    )
    assert cited(answer) == [
        (1, "Saturday in Lisbon is sunny with a high of 24 °C."),
        (1, "Sunday turns cloudy with light rain in the afternoon."),
    ]
    assert_invariants(answer)


async def test_a_marker_that_its_source_supports_stays_where_the_model_put_it() -> None:
    answer = await ground("Dogs bark loudly at night. [2] The cat sat on the mat【2†x】.")
    assert answer.text == "Dogs bark loudly at night. [2] The cat sat on the mat[2]."
    assert (answer.removed, len(answer.citations)) == (0, 2)
    assert_invariants(answer)


async def test_a_marker_that_its_source_does_not_support_goes_with_its_space() -> None:
    options = GroundingOptions(attribute=False)
    answer = await ground("Quantum gravity remains unsolved today [2].", options=options)
    assert answer == Grounding("Quantum gravity remains unsolved today.", (), False, 1)


async def test_a_sentence_that_lost_its_wrong_marker_is_attributed_to_the_right_source() -> None:
    answer = await ground("Dogs bark loudly at night [1].")
    assert answer.text == "Dogs bark loudly at night [2]."
    assert answer.removed == 1


async def test_two_markers_in_a_sentence_are_each_held_against_their_own_words() -> None:
    answer = await ground(
        "Saturday in Lisbon is sunny [1] and dogs bark loudly at night [2], they say."
    )
    assert cited(answer) == [
        (1, "Saturday in Lisbon is sunny with a high of 24 °C."),
        (2, "Dogs bark loudly at night."),
    ]


async def test_text_without_spaces_gets_its_marker_without_a_space() -> None:
    answer = await ground("東京は日本の首都です。")
    assert answer.text == "東京は日本の首都です[3]。"
    assert cited(answer) == [(3, "東京は日本の首都です。")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- The cat sat on the mat\n- No", "- The cat sat on the mat [2]\n- No"),
        ("Dogs bark loudly at night", "Dogs bark loudly at night [2]"),
        ("Dogs bark loudly at night \n", "Dogs bark loudly at night [2] \n"),
        ('"Dogs bark loudly at night."', '"Dogs bark loudly at night." [2]'),
        ("**Dogs bark loudly at night.** Go", "**Dogs bark loudly at night.** [2] Go"),
        ("Dogs bark loudly at `night.`", "Dogs bark loudly at `night.` [2]"),
        ("Dogs bark loudly at night!", "Dogs bark loudly at night [2]!"),
        ("Dogs bark loudly at night...", "Dogs bark loudly at night [2]..."),
    ],
)
async def test_the_marker_goes_to_the_end_of_the_sentence(text: str, expected: str) -> None:
    answer = await ground(text)
    assert answer.text == expected
    assert_invariants(answer)


@pytest.mark.parametrize(
    "text",
    [
        "Do dogs bark loudly at night?",
        "# Dogs bark loudly at night",
        "**Dogs bark loudly at night**",
        "| Dogs | bark loudly at night |",
        "Dogs bark loudly at night:",
        "I don't know whether dogs bark loudly at night.",
        "The documents do not say whether dogs bark at night.",
        "Hello!",
        "Dogs.",
        "```\nDogs bark loudly at night.\n```",
        "`Dogs bark loudly at night`",
    ],
)
async def test_what_claims_nothing_is_not_attributed(text: str) -> None:
    answer = await ground(text)
    assert (answer.text, answer.citations, answer.grounded) == (text, (), False)


async def test_what_the_gate_denies_is_not_attributed() -> None:
    answer = await ground("Saturday in Lisbon is not sunny with a high of 30 °C.")
    assert answer.citations == ()


@pytest.mark.parametrize("marker", ["", " [1]"])
@pytest.mark.parametrize(
    ("said", "written"),
    [
        (
            "The library was founded in 1982",
            "The library was founded in 1892 by Anna Huber in Rome.",
        ),
        ("The tower is 300 m high", "The tower is 324 m high, with its antenna and its new light."),
        ("Maps and old newspapers are lent", "Maps and old newspapers are not lent."),
        ("The fee of the pool is not 5 €", "The fee of the pool is 5 €."),
        ("Der alte Turm ist im Winter geöffnet", "Der alte Turm ist im Winter nicht geöffnet."),
        ("读者一次最多可借40本书", "读者一次最多可借12本书。"),
        (
            "The merger with Beta was completed",
            "The merger with Alpha was completed in March 2020.",
        ),
        (
            "The merger of both old firms ended in April 2020",
            "The merger of both old firms ended on 3 March 2020.",
        ),
        (
            "The yearly profit of both firms was 5.1 billion €",
            "The yearly profit of both firms was 5.1 million €.",
        ),
    ],
)
async def test_what_differs_in_nothing_but_what_counts_is_not_supported(
    said: str, written: str, marker: str
) -> None:
    text = f"{written} Bread is baked daily. Dogs bark loudly at night."
    only = Source(number=1, title="A", text=text, document=None, start=0, end=len(text))
    grounder = Grounder([only], BagOfWords())
    for sentence in (f"{said}{marker}.", written):
        await grounder.feed(sentence + " ")
    ended = await grounder.finish()
    assert [citation.cited_text for citation in ended.citations] == [written]


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Quantum gravity is unsolved **[2]**.", "Quantum gravity is unsolved."),
        ("Quantum gravity is unsolved *[9]* today.", "Quantum gravity is unsolved today."),
        ("Quantum gravity is unsolved ([9]).", "Quantum gravity is unsolved."),
        ("Quantum gravity is unsolved (see [2]).", "Quantum gravity is unsolved."),
        ("Quantum gravity is unsolved (Source [1], [9]).", "Quantum gravity is unsolved."),
        ("Quantum gravity is unsolved.<sup>[9]</sup> So.", "Quantum gravity is unsolved. So."),
        ("Quantum gravity is unsolved [1], [2].", "Quantum gravity is unsolved."),
        ("Quantum gravity is unsolved [1] and [9].", "Quantum gravity is unsolved."),
        ("Quantum gravity is unsolved [7][8] / [9].", "Quantum gravity is unsolved."),
        ("Is it? [2] Quantum gravity is unsolved.", "Is it? Quantum gravity is unsolved."),
        ("- [9] Quantum gravity is unsolved.", "- Quantum gravity is unsolved."),
        ("量子引力（参见[9]）未解决。", "量子引力未解决。"),
        ("Is **it** [9] **not**?", "Is **it** **not**?"),
        ("Is (it [9])?", "Is (it)?"),
        ("Quantum gravity is unsolved\u00a0[9].", "Quantum gravity is unsolved."),
        ("Is it (see [9], chapter 3)?", "Is it (see, chapter 3)?"),
    ],
)
async def test_with_a_marker_goes_what_stood_there_for_it_alone(
    said: str, left: str, visible: bool
) -> None:
    options = GroundingOptions(visible=visible)
    answer = await ground(said, options=options)
    assert answer.text == left
    assert await ground(*said, options=options) == answer


async def test_of_markers_in_a_row_what_joins_them_stays_with_those_that_stay() -> None:
    answer = await ground("Dogs bark loudly at night [2], [9]. The cat sat on the mat [9] and [2].")
    assert answer.text == "Dogs bark loudly at night [2]. The cat sat on the mat [2]."
    assert answer.removed == 2
    assert_invariants(answer)


async def test_a_marker_that_the_end_cuts_through_is_dropped_and_its_sentence_attributed() -> None:
    for cut in (" [", " [2", " [Source 2", " 【2"):
        answer = await ground("Dogs bark loudly at night", cut)
        assert answer.text == "Dogs bark loudly at night [2]"
        assert_invariants(answer)


async def test_a_marker_alone_has_nothing_to_support() -> None:
    answer = await ground("\n\n[1]\n\n[2]: https://x.example\n")
    assert answer.citations == ()
    assert answer.removed == 1


@pytest.mark.parametrize("marker", ["", " [1]"])
async def test_a_few_words_are_held_against_a_source_with_the_question_they_answer(
    marker: str,
) -> None:
    answer = await ground(f"24 °C{marker}.", question="How high is it in sunny Lisbon on Saturday?")
    assert answer.text == "24 °C [1]."
    assert cited(answer) == [(1, "Saturday in Lisbon is sunny with a high of 24 °C.")]
    assert (await ground("24 °C.", question="How warm was Oslo in May?")).citations == ()
    assert_invariants(answer)


@pytest.mark.parametrize(
    "text", ["30 °C [1].", "30 °C.", "Rainy [1].", "[1]", "I don't know.", "Is it?"]
)
async def test_a_question_supports_nothing_that_the_sources_do_not_say(text: str) -> None:
    answer = await ground(text, question="How high is it in sunny Lisbon on Saturday?")
    assert (answer.citations, answer.grounded) == ((), False)


async def test_a_few_words_that_are_a_sentence_of_their_source_need_no_question() -> None:
    asked = "What will the weather be like in Porto, Faro and Coimbra on Monday?"
    answer = await ground("Bread is  baked daily [1].", question=asked)
    assert cited(answer) == [(1, "Bread is baked daily.")]
    assert_invariants(answer)
    assert (await ground("Bread is sold daily [1].", question=asked)).citations == ()
    assert (await ground("Bread is baked daily [2].", question=asked)).citations == ()
    must = GroundingOptions(must_answer=True)
    assert not (await ground("Bread is baked daily [1].", question=asked, options=must)).grounded


@pytest.mark.parametrize("marker", ["", " [1]"])
async def test_a_few_words_that_deny_what_their_source_says_are_not_supported(marker: str) -> None:
    asked = "Is bread baked daily in Lisbon?"
    assert (await ground(f"Bread is baked daily{marker}.", question=asked)).grounded
    assert not (await ground(f"Bread is not baked daily{marker}.", question=asked)).grounded
    about = "Tell me everything about the town, please"
    assert not (await ground(f"Dogs never bark loudly{marker}.", question=about)).grounded


LENT = "Books are lent to readers for a month. Maps and newspapers are not lent to anybody."


@pytest.mark.parametrize(
    ("question", "said", "grounded"),
    [
        ("Are maps lent to readers?", "Maps are lent", False),
        ("Are maps lent to readers?", "Maps are not lent", True),
        ("Are books lent to readers?", "Books are lent", True),
        ("What is not lent to anybody?", "Maps and newspapers", True),
        ("What are maps and newspapers not lent to?", "Anybody", True),
    ],
)
@pytest.mark.parametrize("form", ["{}.", "{} [1].", "- {} [1]\n", "2. {} [1]\n", "> {} [1]\n"])
async def test_a_few_words_are_not_supported_by_what_says_the_opposite(
    question: str, said: str, grounded: bool, form: str
) -> None:
    only = Source(number=1, title="A", text=LENT, document=None, start=0, end=len(LENT))
    grounder = Grounder([only], BagOfWords(), question=question)
    await grounder.feed(form.format(said))
    assert (await grounder.finish()).grounded is grounded


@pytest.mark.parametrize("mark", ["- ", "2. ", "17) ", "> ", "> 3. "])
async def test_a_list_mark_is_no_part_of_what_its_item_states(mark: str) -> None:
    for said in ("The cat sat on the mat", "Saturday in Lisbon is sunny with a high of 24 °C"):
        (citation,) = (await ground(f"{mark}{said} [1][2]\n")).citations
        assert citation.support == (await ground(f"{said} [1][2]\n")).citations[0].support


@pytest.mark.parametrize(
    ("question", "grounded"),
    [
        ("Is Saturday in Lisbon sunny?", True),
        ("Tell me of the sea.", True),  # no question: a summary is asked for, or a letter
        ("Is Saturday in Lisburn sunny?", False),
        ("Which 7 days in Lisbon are sunny?", False),
        ("Is Saturday in Lisbon not sunny?", False),
        ("Who painted the ceiling with angels of gold?", False),
    ],
)
@pytest.mark.parametrize("marker", ["", " [1]"])
async def test_what_must_answer_has_to_do_with_what_was_asked(
    question: str, grounded: bool, marker: str
) -> None:
    said = f"Saturday in Lisbon is sunny with a high of 24 °C{marker}."
    answer = await ground(said, question=question, options=GroundingOptions(must_answer=True))
    assert answer.grounded == grounded
    assert (await ground(said, question=question)).grounded
    assert_invariants(answer)


@pytest.mark.parametrize(("question", "grounded"), [("rose", True), ("fell", False)])
async def test_a_question_the_other_way_round_is_not_answered(
    question: str, grounded: bool
) -> None:
    text = "The rents of the old harbour rose."
    rents = Source(number=1, title="Rents", text=text, document=None, start=0, end=len(text))
    grounder = Grounder(
        [rents],
        BagOfWords(),
        question=f"Which rents of the harbour {question}?",
        options=GroundingOptions(must_answer=True),
    )
    await grounder.feed(text)
    assert (await grounder.finish()).grounded == grounded


async def test_once_a_question_is_answered_more_may_be_said() -> None:
    options = GroundingOptions(must_answer=True)
    parts = ["Saturday in Lisbon is sunny with a high of 24 °C. ", "Dogs bark loudly at night."]
    for said in (parts, ["".join(parts)]):
        answer = await ground(*said, question="Is Saturday in Lisbon sunny?", options=options)
        assert [citation.source.number for citation in answer.citations] == [1, 2]
    for said in (parts[::-1], ["".join(parts[::-1])]):
        answer = await ground(*said, question="Is Saturday in Lisbon sunny?", options=options)
        assert [citation.source.number for citation in answer.citations] == [1]


async def test_no_sources_means_no_markers_and_no_question_to_the_model() -> None:
    embed = BagOfWords()
    grounder = Grounder((), embed)
    text = await grounder.feed("Dogs bark loudly at night [1]. Then")
    rest = await grounder.finish()
    assert text + rest.text == "Dogs bark loudly at night. Then"
    assert (rest.citations, rest.grounded, rest.removed, embed.batches) == ((), False, 1, [])


async def test_without_markers_the_text_passes_untouched() -> None:
    text = '{"a": "[9] https://evil.example `'
    answer = await ground(text, options=GroundingOptions(markers=False, addresses=()))
    assert answer == Grounding(text, (), True, 0)


async def test_foreign_links_lose_their_address_before_markers_are_read() -> None:
    answer = await ground(
        "Dogs bark loudly at night [[2]](https://evil.example). ![x](https://evil.example)",
        options=GroundingOptions(addresses=()),
    )
    assert answer.text == "Dogs bark loudly at night [2]. "
    assert_invariants(answer)


async def test_links_are_left_alone_where_no_addresses_are_given() -> None:
    text = "See [x](https://evil.example) now."
    assert (await ground(text)).text == text


async def test_sources_are_embedded_once_and_not_before_they_are_needed() -> None:
    embed = BagOfWords()
    grounder = Grounder(SOURCES, embed)
    await grounder.feed("Hello! ")
    await grounder.feed("How are you? Fine. ")
    assert embed.batches == []
    await grounder.feed("Dogs bark loudly at night. The cat sat on the mat. ")
    await grounder.feed("Sunday turns cloudy here. ")
    await grounder.finish()
    sentences = [batch for batch in embed.batches if "Bread is baked daily." in batch]
    assert len(sentences) == 1


async def test_only_a_word_is_held_back_and_what_follows_a_marker() -> None:
    grounder = Grounder(SOURCES, BagOfWords())
    released = [
        await grounder.feed(delta)
        for delta in (
            "Dogs bark loudly at night. The cat",
            " sat.",
            "\n\n```\nfor x in y:\n    pass",
            "\n```\nSaturday in Lisbon",
            " [1",
            "] is",
            " sunny. Birds fly",
        )
    ]
    assert released == [
        "Dogs bark loudly at night [2]. The",
        " cat",
        " sat [2].\n\n```\nfor x in y:\n    pass",
        "\n```\nSaturday in",
        "",
        " Lisbon",
        " [1] is sunny. Birds",
    ]


async def test_whole_sentences_go_out_where_they_are_asked_for() -> None:
    grounder = Grounder(SOURCES, BagOfWords(), options=GroundingOptions(whole_sentences=True))
    assert await grounder.feed("Dogs bark loudly at") == ""
    assert await grounder.feed(" night. The cat") == "Dogs bark loudly at night [2]. "


FRAGMENTS = st.sampled_from(
    [
        "Saturday in Lisbon is sunny", "24 °C", " [1]", "[2]", "[9]", " ", ". ", "\n", "`", "```",
        "Dogs bark loudly at night", "The cat sat on the mat", ". ", "[see it](http://e.example)",
        "。", "!", "- ", "# ", "**", "http://", "  ", "😀", "e\u0301", "[1, 2]", "【2†x】",
        "東京は首都です", " (", ")", " (see ", "（参见", "）", "**", "_", "<sup>", "</sup>", ", ",
        " and ", "[Source", "[",
    ]
)  # fmt: skip


@given(parts=st.lists(FRAGMENTS, max_size=14))
@settings(max_examples=200, deadline=None)
async def test_every_invariant_holds_for_every_text_and_every_cut(parts: list[str]) -> None:
    options = GroundingOptions(addresses=())
    text = "".join(parts)
    answer = await ground(text, options=options)
    assert_invariants(answer)
    assert await ground(*text, options=options) == answer
    assert await ground(*parts, options=options) == answer
    whole = GroundingOptions(addresses=(), whole_sentences=True)
    assert await ground(*parts, options=whole) == answer
    prose = re.sub(r"(?s)`.*", "", answer.text)
    found = [match.span() for match in re.finditer(r"\[\d+\](?![(:])", prose)]
    spans = [(one.marker_start, one.marker_end) for one in answer.citations]
    assert found == [span for span in spans if span[1] <= len(prose)]


LONG = st.sampled_from(
    ["word ", "a" * 700, "語" * 400, "...", ". . ", " ", "\n", " [2]", "Dogs bark loudly at night"]
)


@given(parts=st.lists(LONG, min_size=4, max_size=30))
@settings(max_examples=50, deadline=None)
async def test_the_words_of_a_sentence_too_long_to_hold_are_not_taken_back(
    parts: list[str],
) -> None:
    whole = GroundingOptions(whole_sentences=True)
    answer = await ground("".join(parts), options=whole)
    assert_invariants(answer)
    assert await ground(*parts) == answer
    assert await ground(*"".join(parts)) == answer


async def test_citations_are_domain_citations_in_order_of_appearance() -> None:
    answer = await ground("Dogs bark loudly at night. Saturday in Lisbon is sunny.")
    first, second = answer.citations
    assert first == Citation(
        source=SOURCES[1],
        marker_start=26,
        marker_end=29,
        start=26,
        end=52,
        cited_text="Dogs bark loudly at night.",
        support=first.support,
        sentence_start=0,
        sentence_end=31,
        verification=Verification(Verdict.SUPPORTED, first.support, "support"),
    )
    assert second.source is SOURCES[0]
