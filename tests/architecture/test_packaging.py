"""What ships beside the code: container files, locks, links, names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from privategpt.settings import load_settings

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_dockerfile_passes_hadolint() -> None:
    done = _run(str(BIN / "hadolint"), "--no-color", "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_compose_file_follows_the_compose_specification() -> None:
    done = _run(
        str(BIN / "check-jsonschema"),
        "--builtin-schema",
        "vendor.compose-spec",
        "docker-compose.yaml",
    )
    assert done.returncode == 0, done.stdout


def test_shell_scripts_pass_shellcheck() -> None:
    done = _run(str(BIN / "shellcheck"), ".ci/run", "examples/curl.sh")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("profile", ["qdrant", "ollama", "searxng"])
def test_every_compose_profile_is_a_settings_profile_that_names_its_service(profile: str) -> None:
    compose = yaml.safe_load(_read("docker-compose.yaml"))
    assert compose["services"][profile]["profiles"] == [profile]
    settings = load_settings({"PRIVATEGPT_PROFILES": profile})
    searxng = settings.web_search.searxng.url
    assert f"//{profile}:" in f"{settings.vectors.url} {settings.llm.base_url} {searxng}"


def test_the_searxng_of_the_compose_file_answers_in_json() -> None:
    service = yaml.safe_load(_read("docker-compose.yaml"))["services"]["searxng"]
    (mounted,) = service["volumes"]
    path, target, mode = mounted.split(":")
    assert (target, mode) == ("/etc/searxng/settings.yml", "ro")
    searxng = yaml.safe_load(_read(path))
    assert "json" in searxng["search"]["formats"]
    assert searxng["use_default_settings"] is True
    settings = load_settings({"PRIVATEGPT_PROFILES": "searxng"})
    assert settings.web_search.provider == "searxng"


def test_the_dockerfile_installs_as_the_makefile_does() -> None:
    dockerfile, makefile = _read("Dockerfile"), _read("Makefile")
    for step in (
        "-r requirements.lock",
        "--no-deps -r requirements-nodeps.lock",
        "--no-deps --no-build-isolation --editable .",
        "privategpt models --verify",
    ):
        assert step in dockerfile
        assert step in makefile


def test_everything_the_dockerfile_copies_exists_and_is_not_ignored() -> None:
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", _read("Dockerfile"), re.MULTILINE)
        for name in shlex.split(line)[:-1]
    ]
    kept = {line[1:] for line in _read(".dockerignore").splitlines() if line.startswith("!")}
    assert copied
    for name in copied:
        assert list(ROOT.glob(name)), name
        assert name in kept


def test_the_health_check_is_a_command_that_python_can_run() -> None:
    (command,) = re.findall(r"CMD \[\"python\", \"-c\", \"(.+)\"\]", _read("Dockerfile"))
    compile(command, "HEALTHCHECK", "exec")
    assert "/health'" in command


def test_locks_pin_every_requirement_exactly_and_agree() -> None:
    pins = {
        name: dict(re.findall(r"^([\w.-]+)==(\S+)$", _read(name), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    }
    for name, pinned in pins.items():
        assert len(pinned) == len(_read(name).splitlines()), name
    runtime, dev = pins["requirements.lock"], pins["requirements-dev.lock"]
    assert {name: dev.get(name) for name in runtime} == runtime


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:3])


@pytest.mark.parametrize(
    ("package", "floor"),
    [
        ("starlette", "0.49.1"),
        ("python-multipart", "0.0.31"),
        ("pypdf", "6.16.1"),
        ("llama-index-core", "0.12.45"),
        ("h11", "0.16"),
    ],
)
def test_what_is_installed_is_not_below_a_known_vulnerability(package: str, floor: str) -> None:
    assert _numbers(version(package)) >= _numbers(floor)


def test_the_version_is_written_once() -> None:
    assert tomllib.loads(_read("pyproject.toml"))["project"]["version"] == version("privategpt")


def test_relative_links_in_the_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []
