"""The operator's choices reach the edge."""

from __future__ import annotations

from pathlib import Path

import pytest

from privategpt.domain.errors import InvalidSettings
from privategpt.settings import load_settings
from privategpt.wiring import edge_options


def test_links_web_pages_and_images_are_the_operators_choice(tmp_path: Path) -> None:
    environ = {
        "PRIVATEGPT_SERVER__PUBLIC_URL": "https://docs.example.org/gpt",
        "PRIVATEGPT_SERVER__CORS_ORIGINS": '["https://chat.example.org"]',
        "PRIVATEGPT_LLM__REMOTE_IMAGES": "true",
    }
    options = edge_options(load_settings(environ, folder=tmp_path), uploads=tmp_path)
    assert options.public_url == "https://docs.example.org/gpt"
    assert options.cors_origins == ("https://chat.example.org",)
    assert options.remote_images is True


def test_as_shipped_no_page_may_call_and_no_image_is_fetched(tmp_path: Path) -> None:
    options = edge_options(load_settings({}, folder=tmp_path), uploads=tmp_path)
    assert (options.public_url, options.cors_origins, options.remote_images) == (None, (), False)


def test_an_address_that_browsers_cannot_follow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"server\.public_url"):
        load_settings({"PRIVATEGPT_SERVER__PUBLIC_URL": "docs.example"}, folder=tmp_path)
