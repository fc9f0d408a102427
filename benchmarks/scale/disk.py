"""What files take on the disk."""

from __future__ import annotations

from pathlib import Path


def disk_mb(path: Path) -> float:
    """Of a file or of all below a folder; the index's files have holes, which take nothing."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6
