"""Published packages in environments of their own, kept in pytest's cache between runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INSTALL_S = 170


def kept(request: pytest.FixtureRequest, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` filled, now or in an earlier run that came to its end."""
    cache: Any = request.config.cache
    folder: Path = cache.mkdir(name)
    done = folder / "complete"
    if not done.exists():
        shutil.rmtree(folder)
        folder.mkdir()
        make(folder)
        done.touch()
    return folder


def environment(folder: Path, *requirements: str) -> None:
    """A virtual environment in `folder`, with these packages from the package index."""
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(folder / "bin" / "pip"), "install", "--quiet", *requirements])


def source(folder: Path, requirement: str) -> None:
    """The source distribution of a package, unpacked into `folder`."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    _run([*pip, "--no-binary", ":all:", "--dest", str(folder), requirement])
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder, filter="data")


def npm_package(folder: Path, requirement: str) -> None:
    """A package of npm's, without what it would run while it is installed."""
    npm = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    _run([*npm, "--prefix", str(folder), requirement])


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S)
