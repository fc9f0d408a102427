"""Which reranker the settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.domain.errors import InvalidSettings
from privategpt.settings import RerankSettings, load_settings
from privategpt.wiring.engines import load_reranker


async def test_there_is_none_by_default() -> None:
    assert await load_reranker(RerankSettings()) is None


def test_a_bare_off_in_yaml_is_off(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("rerank: {mode: off}")
    assert load_settings({}, folder=tmp_path).rerank.mode == "off"


async def test_a_server_is_not_asked_before_it_is_needed() -> None:
    settings = RerankSettings(mode="openai", model="m", base_url="http://127.0.0.1:9/v1")
    reranker = await load_reranker(settings)
    assert reranker is not None
    assert reranker.name == "m"
    await reranker.close()


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        (RerankSettings(mode="openai", model="m"), r"rerank\.base_url"),
        (RerankSettings(mode="openai", base_url="http://127.0.0.1:9/v1"), r"rerank\.model"),
        (RerankSettings(mode="sentence_transformers"), r"rerank\.model"),
    ],
)
async def test_what_a_mode_needs_is_asked_for_by_name(
    settings: RerankSettings, missing: str
) -> None:
    with pytest.raises(InvalidSettings, match=missing):
        await load_reranker(settings)
