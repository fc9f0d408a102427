"""settings.yaml, profiles and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from privategpt.domain.errors import InvalidSettings
from privategpt.settings import DEFAULT_FOLDER, MODELS, Settings, load_settings


def test_the_shipped_file_names_every_key_with_its_default() -> None:
    shipped = yaml.safe_load((DEFAULT_FOLDER / "settings.yaml").read_text(encoding="utf-8"))
    assert shipped.pop("models") == [
        model.model_dump(mode="json", exclude_unset=True) for model in MODELS
    ]
    assert shipped == Settings().model_dump(mode="json", exclude={"models"})


def test_every_key_of_the_shipped_file_has_one_comment() -> None:
    lines = (DEFAULT_FOLDER / "settings.yaml").read_text(encoding="utf-8").splitlines()
    keys = [line for line in lines if line.startswith("  ")]
    assert [line for line in keys if line.count(" # ") != 1] == []


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings({}, folder=tmp_path) == Settings()


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("")
    assert load_settings({}, folder=tmp_path) == Settings()


def test_later_profiles_win_over_earlier_ones_and_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("server: {port: 1, log_level: error}")
    (tmp_path / "settings-a.yaml").write_text("server: {port: 2, heartbeat_s: 3}")
    (tmp_path / "settings-b.yaml").write_text("server: {port: 4}")
    settings = load_settings({"PRIVATEGPT_PROFILES": "a, b"}, folder=tmp_path)
    assert (settings.server.port, settings.server.heartbeat_s) == (4, 3)
    assert settings.server.log_level == "error"


def test_profiles_are_looked_for_in_the_settings_folder(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "settings-a.yaml").write_text("server: {port: 5}")
    environ = {"PRIVATEGPT_PROFILES": "a", "PRIVATEGPT_SETTINGS_FOLDER": str(folder)}
    assert load_settings(environ, folder=tmp_path).server.port == 5


def test_the_environment_wins_over_profiles(tmp_path: Path) -> None:
    (tmp_path / "settings-a.yaml").write_text("server: {port: 5}")
    environ = {"PRIVATEGPT_PROFILES": "a", "PRIVATEGPT_SERVER__PORT": "6"}
    assert load_settings(environ, folder=tmp_path).server.port == 6


def test_the_data_folder_has_a_variable_of_its_own(tmp_path: Path) -> None:
    settings = load_settings({"PRIVATEGPT_DATA_DIR": "/somewhere"}, folder=tmp_path)
    assert settings.server.data_dir == Path("/somewhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server: {prot: 1}", "Unknown setting 'server.prot'; did you mean 'server.port'?"),
        ("sever: {port: 1}", "Unknown setting 'sever'; did you mean 'server'?"),
        ("zzzzqqqq: 1", "Unknown setting 'zzzzqqqq'"),
        ("server: {port: 99999999}", "Setting 'server.port'"),
        ("- a list", "must be a mapping"),
        ("a: [", "is not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(InvalidSettings) as refusal:
        load_settings({}, folder=tmp_path)
    assert message in refusal.value.message


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"settings-x\.yaml"):
        load_settings({"PRIVATEGPT_PROFILES": "x"}, folder=tmp_path)


def test_an_unknown_variable_is_refused_like_a_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"did you mean 'llm\.mode'"):
        load_settings({"PRIVATEGPT_LLM__MOD": "openai"}, folder=tmp_path)


def test_secrets_do_not_show(tmp_path: Path) -> None:
    settings = load_settings({"PRIVATEGPT_LLM__API_KEY": "sk-visible"}, folder=tmp_path)
    assert "sk-visible" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{provider: searxng}", "provider 'searxng' needs 'web_search.searxng.url'"),
        ("{provider: brave}", "provider 'brave' needs 'web_search.brave.api_key'"),
        ("{provider: tavily}", "provider 'tavily' needs 'web_search.tavily.api_key'"),
        ("{provider: brave, brave: {api_key: ''}}", "needs 'web_search.brave.api_key'"),
        (
            "{provider: tavily, language: de, tavily: {api_key: k}}",
            "provider 'tavily' has no 'web_search.language'",
        ),
        ("{searxng: {urll: x}}", "did you mean 'web_search.searxng.url'?"),
    ],
)
def test_a_search_engine_without_what_it_needs_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "settings.yaml").write_text(f"web_search: {text}")
    with pytest.raises(InvalidSettings) as refusal:
        load_settings({}, folder=tmp_path)
    assert message in refusal.value.message


def test_the_environment_reaches_keys_inside_keys(tmp_path: Path) -> None:
    environ = {
        "PRIVATEGPT_WEB_SEARCH__PROVIDER": "searxng",
        "PRIVATEGPT_WEB_SEARCH__SEARXNG__URL": "http://127.0.0.1:8080",
    }
    settings = load_settings(environ, folder=tmp_path).web_search
    assert (settings.provider, settings.searxng.url) == ("searxng", "http://127.0.0.1:8080")
