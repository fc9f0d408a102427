"""What is wrong with the settings, a line each, for the person who wrote them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError

from privategpt.settings.sections import Settings

_WORDS = {
    "dict_type": "Input should be a mapping, as in {key: value}",
    "model_type": "Input should be a mapping of keys",
    "path_type": "Input should be a path",
    "string_type": "Input should be text; put it in quotes",
    "too_short": "Input should have at least one item",
    "tuple_type": "Input should be a list, as in [one, another]",
}
"""Pydantic's own words for these speak of Python."""


def explain(error: ValidationError, *, variables: Mapping[tuple[str, ...], str]) -> str:
    """A line for each fault: its key, the variable that set it if one did, and what to do."""
    problems = {
        tuple(map(str, problem["loc"])): problem
        for problem in error.errors(include_input=False, include_url=False)
    }
    lines: list[str] = []
    for place, problem in problems.items():
        # A list of which one entry is wrong is called too short as well.
        if any(other[: len(place)] == place for other in problems if other != place):
            continue
        name = ".".join(place).removesuffix(".[key]")
        origin = _variable_of(place, variables)
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, list(_all_keys(Settings)), n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            lines.append(f"Unknown setting {name!r}{origin}{hint}")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            lines.append(f"Setting {name!r}{origin}: {_WORDS.get(problem['type'], message)}")
    return "\n".join(lines)


def _variable_of(place: tuple[str, ...], variables: Mapping[tuple[str, ...], str]) -> str:
    for length in range(len(place), 0, -1):
        if name := variables.get(place[:length]):
            return f" ({name})"
    return ""


def _all_keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _all_keys(field.annotation, f"{prefix}{name}.")
