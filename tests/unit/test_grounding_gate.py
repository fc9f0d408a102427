"""What a passage denies of a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.grounding.gate import (
    Ground,
    compare,
    contradictions,
    read_statement,
    replaced_names,
)
from privategpt.grounding.quantities import Quantity, read_figures

DENIED = [
    ("It rose by 5 %.", "It rose by 50 %.", Ground.NUMBER),
    ("It weighs 1,000 kg.", "It weighs 1,500 kg.", Ground.NUMBER),
    ("It is 24 °C.", "It is 24 °F.", Ground.UNIT),
    ("Up to 40 books may be borrowed.", "Up to 12 books may be borrowed.", Ground.NUMBER),
    ("It takes twenty days.", "It takes 30 days.", Ground.NUMBER),
    ("It was founded in 1999.", "It was founded in 2001.", Ground.YEAR),
    ("It opens on 3 May.", "It opens on 4 May.", Ground.DATE),
    ("It opens on 2024-05-03.", "It opens on June 3, 2024.", Ground.DATE),
    ("It opens in April 2024.", "It opens on 3 May 2024.", Ground.DATE),
    ("It opens on 3 April.", "It opens in May 2024.", Ground.DATE),
    ("Es öffnet am 03.04.2024.", "It opens on 3 May 2024.", Ground.DATE),
    ("It opens on 4/30/2024.", "It opens on 3 May 2024.", Ground.DATE),
    ("It does not work.", "It works.", Ground.NEGATION),
    ("It works.", "It doesn’t work.", Ground.NEGATION),
    ("Es funktioniert nicht.", "Es funktioniert.", Ground.NEGATION),
    ("Il ne marche pas.", "Il marche.", Ground.NEGATION),
    ("Nunca funciona.", "Funciona.", Ground.NEGATION),
    ("Não funciona.", "Funciona.", Ground.NEGATION),
    ("Non lo fa senza acqua.", "Lo fa con acqua.", Ground.NEGATION),
    ("Het werkt niet.", "Het werkt.", Ground.NEGATION),
    ("Það virkar ekki.", "Það virkar.", Ground.NEGATION),
    ("它不工作。", "它工作。", Ground.NEGATION),
    ("動きません。", "動きます。", Ground.NEGATION),
    ("यह काम नहीं करता है।", "यह काम करता है।", Ground.NEGATION),
    ("هذا لا يعمل.", "هذا يعمل.", Ground.NEGATION),
    ("זה לא עובד.", "זה עובד.", Ground.NEGATION),
    ("ไม่ทำงาน", "ทำงาน", Ground.NEGATION),
    ("작동하지 않습니다.", "작동합니다.", Ground.NEGATION),
    ("Bu çalışır değil.", "Bu çalışır.", Ground.NEGATION),
    ("Δεν λειτουργεί.", "Λειτουργεί.", Ground.NEGATION),
    ("ارتفع ٥٪.", "ارتفع ٥٠٪.", Ground.NUMBER),
    ("It increases growth.", "It reduces growth.", Ground.DIRECTION),
    ("The test was positive.", "The test was negative.", Ground.DIRECTION),
    ("It is open at the weekend.", "It is open on weekdays.", Ground.DIRECTION),
    ("Dogs are allowed.", "Dogs are forbidden.", Ground.DIRECTION),
    ("Lunch is included.", "Lunch is excluded.", Ground.DIRECTION),
    ("The course is optional.", "The course is mandatory.", Ground.DIRECTION),
    ("一次最多可借40本书。", "一次最多可借12本书。", Ground.NUMBER),
    ("一度に４０冊まで借りられます。", "一度に12冊まで借りられます。", Ground.NUMBER),
    ("年费为25美元。", "年费为25欧元。", Ground.UNIT),
    ("約10キロメートルです。", "約10マイルと12キロメートルです。", Ground.NUMBER),
    ("40권까지 빌릴 수 있다.", "12권을 빌릴 수 있다.", Ground.NUMBER),
]

AGREED = [
    ("It is 24 °C.", "It reached 23.8 degrees, or 24 °C."),
    ("About 24 people came.", "23.8 people came on average."),
    ("It costs 1,000 dollars.", "It costs $1000."),
    ("Es kostet 1.000 Euro.", "It costs €1,000."),
    ("It has 1 000 members.", "It has 1000 members."),
    ("Es sind 3,5 %.", "It is 3.5 percent."),
    ("It takes five days.", "It takes 5 days."),
    ("ارتفع ٣٫٥٪.", "It rose by 3.5 %."),
    ("上がり３．５％。", "It rose by 3.5 %."),
    ("It costs 2 million dollars.", "It costs $2,000,000."),
    ("It takes 10–20 mg.", "It takes 10 mg to 20 mg."),
    ("It opens on 3 May 2024.", "It opens on May 3rd, 2024."),
    ("Am 3. Mai 2024.", "On 2024-05-03."),
    ("2024年5月3日。", "On May 3, 2024."),
    ("In May 2024.", "On 3 May 2024."),
    ("Am 03.05.2024.", "On May 3, 2024."),
    ("On 5/31/2024 or 31/5/2024.", "On May 31, 2024."),
    ("On 5/3/2024.", "On May 3, 2024, or on 5 March."),
    ("One of them works.", "Some of them work."),
    ("It rose.", "It rose, and then fell."),
    ("It does not work.", "It never works."),
    ("可借12本。", "読者は12本まで。"),
    ("年费25欧元。", "It costs €25."),
    ("约10公里。", "It is 10 km away."),
    ("用了3小时。", "3時間かかりました。"),
    ("人口3万人。", "It has 30,000 people."),
    ("12권까지 빌립니다.", "최대 12권을 빌립니다."),
]


@pytest.mark.parametrize(("sentence", "passage", "ground"), DENIED)
def test_a_contradiction_is_named_with_its_ground(
    sentence: str, passage: str, ground: Ground
) -> None:
    found = contradictions(sentence, passage)
    assert ground in {one.ground for one in found}
    assert all(one.detail for one in found)


@pytest.mark.parametrize(("sentence", "passage"), AGREED)
def test_the_same_said_otherwise_is_no_contradiction(sentence: str, passage: str) -> None:
    assert contradictions(sentence, passage) == ()


@pytest.mark.parametrize("sentence", [pair[0] for pair in AGREED])
def test_nothing_contradicts_itself(sentence: str) -> None:
    said = read_statement(sentence)
    found = compare(said, said)
    assert found.contradictions == ()
    assert (found.numbers_found, found.names_found) == (found.numbers, found.names)


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("1,234.5 m", Quantity(frozenset({1234.5}), "m")),
        ("1.234,5 m", Quantity(frozenset({1234.5}), "m")),
        ("1,234,567", Quantity(frozenset({1234567.0}))),
        ("1,000", Quantity(frozenset({1.0, 1000.0}))),
        ("0,125", Quantity(frozenset({0.125}))),
        ("12 per cent", Quantity(frozenset({12.0}), "%")),
        ("$3.5 billion", Quantity(frozenset({3.5e9}), "$")),
        ("twenty-five", Quantity(frozenset({25.0}))),
        ("three hundred miles", Quantity(frozenset({300.0}), "mi")),
        ("3 Mio Euro", Quantity(frozenset({3e6}), "€")),
        ("one", Quantity(frozenset({1.0}), demanded=False)),
        ("５ kg", Quantity(frozenset({5.0}), "kg")),
        ("可借12本书", Quantity(frozenset({12.0}), counted="本")),
        ("約３万円です", Quantity(frozenset({30000.0}), "¥")),
        ("25유로입니다", Quantity(frozenset({25.0}), "€")),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, quantity: Quantity) -> None:
    assert read_figures(text).quantities == (quantity,)


def test_a_range_gives_its_unit_to_both_ends() -> None:
    found = read_figures("between 10 and 20 mg").quantities
    assert [one.unit for one in found] == ["mg", "mg"]


def test_decades_and_years_are_years() -> None:
    assert read_figures("from 1998 to the 2010s").years == frozenset({1998, 2010})


def test_names_are_found_by_their_words_and_by_their_initials() -> None:
    sentence = read_statement("In Geneva the WHO met Anna Berg's team.")
    assert sentence.names == {"geneva", "who", "anna", "berg"}
    passage = read_statement("The World Health Organization met Anna in Geneva.")
    found = compare(sentence, passage)
    assert (found.names, found.names_found) == (4, 3)


@pytest.mark.parametrize(
    ("sentence", "place", "another"),
    [
        ("The merger with Beta was completed.", "The merger with Alpha was completed.", True),
        ("It was built by Dr. Karl Meier in Rome.", "Built by Dr. Anna Huber in Rome.", True),
        ("The merger with Alpha was completed.", "The merger with Alpha was completed.", False),
        ("In 1905 Einstein wrote four papers.", "In 1905 he wrote four papers in Bern.", False),
        ("The head of Beta resigned.", "The head of Alpha has resigned.", False),
        ("Die Firma und die Gebühr ist neu.", "Die Firma und die Abgabe ist neu.", False),
    ],
)
def test_another_name_between_the_same_words_is_another_name(
    sentence: str, place: str, another: bool
) -> None:
    said, there = read_statement(sentence), read_statement(place)
    assert bool(replaced_names(said, place=there, passage=there)) is another
    everywhere = there + read_statement("They met Beta and Karl Meier.")
    assert not replaced_names(said, place=there, passage=everywhere)


def test_in_a_german_passage_another_noun_is_no_other_name() -> None:
    said, there = (read_statement(f"Der {who} sagte gestern alles.") for who in ("Chef", "Leiter"))
    passage = there + read_statement("Das war im Mai.")
    assert replaced_names(said, place=there, passage=passage) == frozenset()


def test_the_first_word_is_a_name_only_if_it_is_one_elsewhere() -> None:
    assert read_statement("Water boils.").names == frozenset()
    assert read_statement("Paris grew, and all of Paris knew it.").names == {"paris"}


def test_where_every_noun_is_capitalised_nouns_are_no_names() -> None:
    assert read_statement("Der Hund und die Katze im Haus der NATO.").names == {"nato"}


@pytest.mark.parametrize(
    ("sentence", "passage", "contradicts"),
    [
        ("It opens at 9:00.", "Open from 9:00 to 18:30.", False),
        ("It opens at 10:00.", "Open from 9:00 to 18:30.", True),
        ("It is open until 6:30 pm.", "Open from 9:00 to 18:30.", False),
        ("It is open until 6 pm.", "Open from 9 a.m. to 6 p.m. daily.", False),
        ("It is open until 7 pm.", "Open from 9 a.m. to 6 p.m. daily.", True),
        ("It closes at 18.30.", "It grew by 18.30 per cent.", False),
        ("Schluss ist um 18.30 Uhr.", "Open from 9:00 to 18:30.", False),
        ("Schluss ist um 19 Uhr.", "Open from 9:00 to 18:30.", True),
        ("Elle ferme à 18 h 30.", "Open from 9:00 to 18:30.", False),
        ("Elle ferme à 18h45.", "Open from 9:00 to 18:30.", True),
        ("9時から18時30分までです。", "Open from 9:00 to 18:30.", False),
        ("9点30分开门。", "Open from 9:00 to 18:30.", True),
        ("9时开门。", "It takes 3时间 or 9:00.", False),
    ],
)
def test_times_of_day_are_compared_as_times(sentence: str, passage: str, contradicts: bool) -> None:
    assert bool(contradictions(sentence, passage)) is contradicts


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("NİNE BOOKS", "NINE BOOKS"),
        ("ſix books", "six books"),
        ("TWENTY-SİX", "TWENTY-SIX"),
        ("5 APRİL 2019", "5 APRIL 2019"),
        ("ſeptember 5, 2020", "September 5, 2020"),
    ],
)
def test_letters_that_patterns_take_for_others_are_read_as_these(written: str, plain: str) -> None:
    assert read_figures(written) == read_figures(plain)


PIECES = st.sampled_from(
    [
        "5 ", "24 °C", "23.8", "9" * 400, "km ", "nine ", "NİNE ", "ſix ", "MAY ", "mİl ", "APRİL ",
        "12:30 ", "p.m.", "2020-13-99", "٣", "²", "½", "1,000.", "$", "-", " ", "\n", "月",
        "年", "日", "not ", "K", "ß", "ſ", "ı", "İ",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=8).map("".join)


@given(sentence=TEXTS, passage=TEXTS)
def test_any_two_texts_can_be_held_against_each_other(sentence: str, passage: str) -> None:
    found = compare(read_statement(sentence), read_statement(passage))
    assert 0 <= found.numbers_found <= found.numbers
    assert compare(read_statement(sentence), read_statement(sentence)).contradictions == ()


OPEN = "The library is open on Saturday from 10 to 14."


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The library is open on Saturday from 11:30 to 14:30.", OPEN),
        ("The library is open on Saturday from 9 to 14.", OPEN),
        ("It is open on Saturday from 10 to 16.", OPEN),
        ("It opens at 11 am on Saturday.", OPEN),
        ("It opens at 11 on Saturday.", "On Saturday it is open from 10:00 to 14:00."),
        ("The shop closes at 19:00.", "The shop opens at 8 and closes at 6 in the evening."),
        ("Answer 7 is right.", "Answer 5 is right."),
    ],
)
def test_another_hour_or_bare_number_is_another_number(sentence: str, passage: str) -> None:
    assert [one.ground for one in contradictions(sentence, passage)][:1] == [Ground.NUMBER]


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The library is open on Saturday from 10:00 to 14:00.", OPEN),
        ("On Saturday it is open from 10 am to 2 pm.", OPEN),
        ("It opens at 10 on Saturday.", "On Saturday it is open from 10:00 to 14:00."),
        ("The shop closes at 18:00.", "The shop opens at 8 and closes at 6 in the evening."),
        ("It opens at 10:00.", "There are 3 floors and 14 rooms."),
        ("It has 3 floors.", "Answer 5 is right: there are 3 floors."),
    ],
)
def test_the_same_hour_in_other_words_and_what_is_counted_are_not(
    sentence: str, passage: str
) -> None:
    assert contradictions(sentence, passage) == ()
