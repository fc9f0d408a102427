"""What has been measured, kept so that a run that was interrupted goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, cast

Figure: TypeAlias = float | str
Figures: TypeAlias = Mapping[str, Figure]


class Notebook:
    """A file of JSON lines: a measure's name and its figures. The last of a name holds."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, name: str, figures: Figures) -> None:
        """Keep what was measured."""
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"name": name, "figures": dict(figures)}) + "\n")

    def find(self, name: str) -> Figures | None:
        """What was measured, or None where it was not yet."""
        return self.all().get(name)

    def all(self) -> dict[str, Figures]:
        """Everything, in the order of the first time."""
        if not self._path.exists():
            return {}
        found: dict[str, Figures] = {}
        for line in self._path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found[entry["name"]] = cast("Figures", entry["figures"])
        return found
