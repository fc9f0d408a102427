"""What a place is called: the number that its paragraph carries, and what only looks like one."""

from __future__ import annotations

import pytest

from privategpt.grounding.places import paragraph_number


@pytest.mark.parametrize(
    ("paragraph", "number"),
    [
        ("34. The teaching of the Church", "34"),
        ("2.3.1. Scope", "2.3.1"),
        ("12) Fees", "12"),
        ("7: The fee", "7"),
        ("> 5a. Quoted", "5a"),
        ("## 3. Heading", "3"),
        ("Art. 5. Persons", "Art. 5"),
        ("§ 12: Fees", "§ 12"),
        ("Artículo 1.º Nadie", "Artículo 1"),
        ("1.° Nadie", "1"),
        ("Article 4 – Persons", "Article 4"),
    ],
)
def test_a_paragraphs_own_number_is_its_reference(paragraph: str, number: str) -> None:
    text = f"Before\n{paragraph} and more."
    assert paragraph_number(text, text.index("more")) == number


@pytest.mark.parametrize(
    "paragraph",
    [
        "00:11.000 --> 00:13.000",
        "12:30 The library opens",
        "10.5 million people live there",
        "1.5°C of warming",
        "24°C at noon",
        "192.168.0.1 is the address",
        "5.1 Infrastructure",
        "12.05.2024 was a Sunday",
        "1,500 people came",
        "2024-05-01 was a Wednesday",
        "No number here",
    ],
)
def test_times_dates_and_quantities_are_no_reference(paragraph: str) -> None:
    assert paragraph_number(f"Before\n{paragraph}", 10) is None
