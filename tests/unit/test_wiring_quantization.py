"""Which codes an index gets where nobody chose."""

from __future__ import annotations

import pytest

from privategpt.settings import VectorSettings
from privategpt.wiring.engines import quantization_of


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (VectorSettings(), "turbo"),
        (VectorSettings(mode="server"), "none"),
        (VectorSettings(mode="server", quantization="turbo"), "turbo"),
        (VectorSettings(quantization="none"), "none"),
        (VectorSettings(quantization="binary"), "binary"),
    ],
)
def test_an_embedded_index_has_codes_unless_told_otherwise_and_a_server_its_own(
    settings: VectorSettings, expected: str
) -> None:
    assert quantization_of(settings) == expected
