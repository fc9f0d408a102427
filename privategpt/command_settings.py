"""What all commands share: the operator's settings, with the command line's options over them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privategpt.settings import Settings, load_settings

DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder for everything that is stored.")
]


def read_settings(
    *, host: str | None = None, port: int | None = None, data_dir: Path | None = None
) -> Settings:
    """The settings; None leaves what they say. Raises `InvalidSettings`."""
    chosen = {"host": host, "port": port, "data_dir": data_dir}
    given = {key: value for key, value in chosen.items() if value is not None}
    return load_settings(options={"server": given})
