"""A real server process on loopback, with the bundled models."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server process and where it listens."""

    base_url: str
    data_dir: Path
    process: subprocess.Popen[str]
    banner: str


def untraced(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a process runs at its own speed: coverage doubles what it takes."""
    return {name: value for name, value in environ.items() if not name.startswith("COVERAGE_")}


@contextmanager
def running_server(data_dir: Path, **environ: str) -> Generator[RunningServer]:
    """Start `privategpt serve` on a free port and stop it at the end, as an operator would."""
    with subprocess.Popen(
        [sys.executable, "-m", "privategpt", "serve", "--port", "0", "--data-dir", str(data_dir)],
        env={**untraced(os.environ), **environ},
        stdout=subprocess.PIPE,
        stderr=(data_dir.parent / f"{data_dir.name}.log").open("w"),
        text=True,
    ) as process:
        try:
            banner = _read_banner(process, data_dir)
            url = banner.partition("listening on")[2].split()[0]
            yield RunningServer(url, data_dir, process, banner)
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _read_banner(process: subprocess.Popen[str], data_dir: Path) -> str:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if "/docs" in line:
            return "".join(lines)
    log = (data_dir.parent / f"{data_dir.name}.log").read_text()
    raise AssertionError(f"The server did not start:\n{''.join(lines)}\n{log}")
