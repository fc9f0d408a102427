"""Published packages in environments of their own, kept in pytest's cache between runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

INSTALL_S = 170

_INSTALL = (find_uv_bin(), "pip", "install", "--quiet")
"""pip takes twenty times the processor time."""


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
    _run([find_uv_bin(), "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder])
    _run([*_INSTALL, "--python", folder, *requirements])


def library(folder: Path, *options: str) -> None:
    """Packages in `folder`, for a PYTHONPATH; `options` are uv's, requirements among them."""
    _run([*_INSTALL, "--python", sys.executable, "--target", folder, *options])


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


def node_folder(request: pytest.FixtureRequest, name: str, source: Path) -> Path:
    """The files of `source` with the packages that its lock names, kept between runs.

    Skips where node and npm are missing, but not in CI.
    """
    if not (shutil.which("npm") and shutil.which("node")) and not os.environ.get("CI"):
        pytest.skip("node and npm are not on this machine")
    cache: Any = request.config.cache
    folder: Path = cache.mkdir(name)
    lock = folder / "package-lock.json"
    fresh = (
        lock.exists()
        and lock.read_bytes() == (source / lock.name).read_bytes()
        and (folder / "node_modules").exists()
    )
    for file in ("package.json", lock.name, "sdk.mjs"):
        shutil.copy(source / file, folder / file)
    if not fresh:
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=150)
    return folder


def run_node(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the folder's sdk.mjs printed, as JSON."""
    done = subprocess.run(
        ["node", "sdk.mjs", *arguments],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def _run(command: Sequence[str | Path]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S)
