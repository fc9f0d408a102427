"""settings.yaml, profiles and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from privategpt.domain.errors import InvalidSettings
from privategpt.settings import DEFAULT_FOLDER, MODELS, ModelSettings, Settings, load_settings


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
        ("server: 3", "Setting 'server': Input should be a mapping of keys"),
        ("server: {port: 1}\nserver: {host: a}", "line 2, is not YAML: 'server' is there twice"),
        ("server: {heartbeat_s: .inf}", "Setting 'server.heartbeat_s': Input should be less"),
        ("server: {data_dir: ''}", "Setting 'server.data_dir': Input should be a path, and is"),
        ("server: {cors_origins: [a.b]}", "as in https://chat.example.org"),
        ("server: {public_url: 'http://'}", "Setting 'server.public_url': Input should be an addr"),
        ("llm: {base_url: 'localhost:9'}", "Setting 'llm.base_url': Input should be an address"),
        ("llm: {base_url: 'http://a:x'}", "Setting 'llm.base_url': Input should be an address"),
        ("llm: {slots: yes}", "Setting 'llm.slots': Input should be a number"),
        ("llm: {model_path: ~nobody-is-called-that/x}", "write the whole path"),
        ("llm: {api_key: 1234}", "Setting 'llm.api_key': Input should be text; put it in quotes"),
        ("ingestion: {max_jobs: 9999999999999999}", "Setting 'ingestion.max_jobs'"),
        ("limits: {tenants: {A B: {}}}", "Setting 'limits.tenants.A B': 'A B' cannot be a tenant"),
        ("models: [{id: a}, {id: a}]", "Setting 'models': 'a' is there twice"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(InvalidSettings) as refusal:
        load_settings({}, folder=tmp_path)
    assert message in refusal.value.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("auth: {enabled: maybe}", "Setting 'auth.enabled': Input should be 'auto', True or False"),
        ("models: [{}]", "Setting 'models.0.id': Field required"),
        ("answers: {citation_style: chunks}", None),
    ],
)
def test_one_fault_is_one_line(tmp_path: Path, text: str, line: str | None) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(InvalidSettings) as refusal:
        load_settings({}, folder=tmp_path)
    expected = line or "Setting 'answers.citation_style': Input should be a list, as in [one, anoth"
    assert refusal.value.message.startswith(expected)
    assert "\n" not in refusal.value.message


def test_a_file_that_cannot_be_read_is_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").mkdir()
    with pytest.raises(InvalidSettings, match=r"'settings\.yaml' cannot be read"):
        load_settings({}, folder=tmp_path)
    (tmp_path / "settings-a.yaml").write_bytes(b"llm: {model: \xe9}")
    (tmp_path / "settings.yaml").rmdir()
    with pytest.raises(InvalidSettings, match=r"'settings-a\.yaml' is not in UTF-8"):
        load_settings({"PRIVATEGPT_PROFILES": "a"}, folder=tmp_path)


def test_a_fault_in_a_file_does_not_show_its_line(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("llm:\n  api_key: @sk-visible\n")
    with pytest.raises(InvalidSettings, match="line 2, is not YAML") as refusal:
        load_settings({}, folder=tmp_path)
    assert "sk-visible" not in refusal.value.message


def test_a_section_of_which_every_key_is_a_comment_is_as_shipped(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("server:\n  # port: 9000\nllm: {slots: 3}\n")
    assert load_settings({}, folder=tmp_path).server == Settings().server


@pytest.mark.parametrize("text", ["{ocr: off}", "{ocr: 'off'}"])
def test_off_needs_no_quotes(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.yaml").write_text(f"ingestion: {text}")
    assert load_settings({}, folder=tmp_path).ingestion.ocr == "off"
    assert load_settings({"PRIVATEGPT_INGESTION__OCR": "off"}).ingestion.ocr == "off"


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_variable_of_text_says_what_stands_in_it(text: str) -> None:
    assume(text not in ("null", "~"))
    assume(not (len(text) > 1 and text[0] == text[-1] and text[0] in "'\""))
    key = load_settings({"PRIVATEGPT_LLM__API_KEY": text}).llm.api_key
    assert key is not None
    assert key.get_secret_value() == text


@pytest.mark.parametrize(("text", "model"), [("", None), ("null", None), ("'null'", "null")])
def test_an_empty_variable_of_text_is_null(text: str, model: str | None) -> None:
    assert load_settings({"PRIVATEGPT_LLM__MODEL": text}).llm.model == model


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PRIVATEGPT_SERVER__PORT", "[", "Variable 'PRIVATEGPT_SERVER__PORT', line 1, is not YAML"),
        ("PRIVATEGPT_SERVER__PORT", "x", "Setting 'server.port' (PRIVATEGPT_SERVER__PORT): Input"),
        ("PRIVATEGPT_LLM__SLOT", "x", "Unknown setting 'llm.slot' (PRIVATEGPT_LLM__SLOT); did you"),
        ("PRIVATEGPT_SERVER_PORT", "9", "did you mean 'PRIVATEGPT_SERVER__PORT'?"),
        ("PRIVATEGPT_WEB_SEARCH_RESULTS", "9", "did you mean 'PRIVATEGPT_WEB_SEARCH__RESULTS'?"),
    ],
)
def test_a_variable_at_fault_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        load_settings({name: value})
    assert message in refusal.value.message


def test_what_kubernetes_says_of_a_service_is_no_setting() -> None:
    of_service = {
        "PRIVATEGPT_SERVER_PORT": "tcp://10.0.0.1:8001",
        "PRIVATEGPT_SERVER_SERVICE_HOST": "10.0.0.1",
        "PRIVATEGPT_PORT_8001_TCP_PORT": "8001",
    }
    assert load_settings(of_service) == load_settings({})


def test_the_models_can_be_set_by_a_variable() -> None:
    settings = load_settings({"PRIVATEGPT_MODELS": "[{id: one, use_context: true}]"})
    assert settings.models == (ModelSettings(id="one", use_context=True),)


def test_options_win_over_the_environment_and_are_checked_like_it() -> None:
    environ = {"PRIVATEGPT_SERVER__PORT": "6", "PRIVATEGPT_SERVER__HOST": "::1"}
    server = load_settings(environ, options={"server": {"port": 7}}).server
    assert (server.host, server.port) == ("::1", 7)
    with pytest.raises(InvalidSettings, match=r"server\.port"):
        load_settings(environ, options={"server": {"port": 99999}})


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of-somebody")
    settings = load_settings({"PRIVATEGPT_DATA_DIR": "~/library"})
    assert settings.server.data_dir == Path("/home/of-somebody/library")


def test_an_origin_is_as_browsers_send_it() -> None:
    origins = '["https://Chat.example.org/", "app://Notes", "*"]'
    settings = load_settings({"PRIVATEGPT_SERVER__CORS_ORIGINS": origins})
    assert settings.server.cors_origins == ("https://chat.example.org", "app://Notes", "*")


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
