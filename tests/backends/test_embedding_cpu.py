"""bfloat16 is chosen only where the processor multiplies it."""

from __future__ import annotations

from typing import Literal

import pytest

from privategpt.backends.embedding.cpu import choose_dtype, read_cpuinfo

SAPPHIRE_RAPIDS = "processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16 amx_tile\n"
SKYLAKE = "processor\t: 0\nflags\t\t: fpu avx2 avx512f\n"
GRAVITON = "processor\t: 0\nFeatures\t: fp asimd bf16\n"


@pytest.mark.parametrize(
    ("wanted", "cpuinfo", "chosen"),
    [
        ("auto", SAPPHIRE_RAPIDS, "bfloat16"),
        ("auto", GRAVITON, "bfloat16"),
        ("auto", SKYLAKE, "float32"),
        ("auto", "", "float32"),
        ("float32", SAPPHIRE_RAPIDS, "float32"),
        ("bfloat16", SKYLAKE, "bfloat16"),
    ],
)
def test_the_number_type_follows_the_processor_unless_the_operator_says(
    wanted: Literal["auto", "float32", "bfloat16"], cpuinfo: str, chosen: str
) -> None:
    assert choose_dtype(wanted, cpuinfo=cpuinfo) == chosen


def test_a_system_without_cpuinfo_has_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(
        "privategpt.backends.embedding.cpu._CPUINFO", tmp_path_factory.mktemp("none") / "cpuinfo"
    )

    assert read_cpuinfo() == ""
