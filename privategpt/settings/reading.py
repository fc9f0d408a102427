"""Settings from files, from the environment and from the command line, each over the one before."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

import yaml
from pydantic import BaseModel, SecretStr, ValidationError

from privategpt.domain.errors import InvalidSettings
from privategpt.settings.refusing import explain
from privategpt.settings.sections import Settings

PREFIX = "PRIVATEGPT_"
DEFAULT_FOLDER = Path(__file__).parents[2]


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    folder: Path = DEFAULT_FOLDER,
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Read settings.yaml in `folder`, the profiles of PRIVATEGPT_PROFILES over it (from
    PRIVATEGPT_SETTINGS_FOLDER, else from `folder`), PRIVATEGPT_SECTION__KEY over both, and the
    command line's `options` over all.

    Raises `InvalidSettings`, naming the key and the nearest one that exists.
    """
    environ = os.environ if environ is None else environ
    tree = _read_yaml(folder / "settings.yaml", required=False)
    profile_folder = Path(environ.get(f"{PREFIX}SETTINGS_FOLDER", str(folder)))
    for profile in environ.get(f"{PREFIX}PROFILES", "").split(","):
        if profile.strip():
            path = profile_folder / f"settings-{profile.strip()}.yaml"
            tree = _merge(tree, _read_yaml(path, required=True))
    variables: dict[tuple[str, ...], str] = {}
    for name, keys, value in _environment_overrides(environ):
        variables[keys] = name
        tree = _merge(tree, _nest(keys, value))
    tree = _merge(tree, dict(options or {}))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise InvalidSettings(explain(error, variables=variables)) from error


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, of which YAML would keep the last without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for at, key in enumerate(keys):
            if key.value in (before.value for before in keys[:at]):
                raise yaml.constructor.ConstructorError(
                    problem=f"{key.value!r} is there twice", problem_mark=key.start_mark
                )
        return super().construct_mapping(node, deep=deep)


def _read_yaml(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if required:
            raise InvalidSettings(f"Settings file {path.name!r} does not exist") from error
        return {}
    except OSError as error:
        raise InvalidSettings(
            f"Settings file {path.name!r} cannot be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"Settings file {path.name!r} is not in UTF-8") from error
    try:
        loaded = _parse(text)
    except yaml.YAMLError as error:
        raise InvalidSettings(f"Settings file {path.name!r}{_fault(error)}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InvalidSettings(f"Settings file {path.name!r} must be a mapping of sections")
    return cast("dict[str, Any]", loaded)


def _parse(text: str) -> object:
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a SafeLoader


def _fault(error: yaml.YAMLError) -> str:
    """What is wrong and where, without the line itself, which may hold a secret."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f" is not YAML: {str(error).splitlines()[0]}"
    line = f", line {error.problem_mark.line + 1}," if error.problem_mark else ""
    return f"{line} is not YAML: {error.problem}"


def _environment_overrides(
    environ: Mapping[str, str],
) -> Iterator[tuple[str, tuple[str, ...], object]]:
    """Each variable that sets something, with its keys and its value."""
    if data_dir := environ.get(f"{PREFIX}DATA_DIR"):
        yield f"{PREFIX}DATA_DIR", ("server", "data_dir"), data_dir
    for name in sorted(environ):
        if not name.startswith(PREFIX):
            continue
        keys = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if keys[0] in Settings.model_fields or len(keys) > 1:
            yield name, keys, _value(name, keys, environ[name])
        else:
            _refuse_single_underscore(name, environ[name])


def _refuse_single_underscore(name: str, value: str) -> None:
    """PRIVATEGPT_SERVER_PORT would otherwise be passed over without a word.

    Kubernetes gives a pod such variables for a service of that name, with tcp:// addresses.
    """
    for section in Settings.model_fields:
        key = name.removeprefix(f"{PREFIX}{section.upper()}_")
        if key != name and _annotation((section, key.lower())) and not value.startswith("tcp://"):
            raise InvalidSettings(
                f"Variable {name!r} sets nothing; did you mean '{PREFIX}{section.upper()}__{key}'?"
            )


def _value(name: str, keys: tuple[str, ...], text: str) -> object:
    """What a variable says: YAML, but for a key that holds text what stands there.

    Keys and passwords may look like numbers, comments or anything else to YAML.
    """
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    if _holds_text(_annotation(keys)) and not quoted:
        return None if text in ("", "null", "~") else text
    try:
        return _parse(text)
    except yaml.YAMLError as error:
        raise InvalidSettings(f"Variable {name!r}{_fault(error)}") from error


def _annotation(keys: tuple[str, ...]) -> Any:
    """The type of a key's value; None where there is no such key."""
    found: Any = Settings
    for key in keys:
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            return None
        field = found.model_fields.get(key)
        found = field.annotation if field else None
    return found


def _holds_text(annotation: Any) -> bool:
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(map(_holds_text, get_args(annotation)))
    return annotation in (str, SecretStr, Path)


def _nest(keys: tuple[str, ...], value: object) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return cast("dict[str, Any]", value)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merge(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged
