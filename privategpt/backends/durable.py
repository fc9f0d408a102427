"""What must survive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def make_durable(path: Path) -> None:
    """Return when the disk has a file's bytes, or the names in a folder. Blocks; `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
