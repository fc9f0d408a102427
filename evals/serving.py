"""A server of our own, for evals that go through the API."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server(data_dir: Path, *, model_path: Path | None = None) -> Generator[str]:
    """Start `privategpt serve` on a free port with a GGUF model (None: the bundled one).

    Yields its base URL. Raises `RuntimeError` if it does not start.
    """
    environ = dict(os.environ)
    if model_path is not None:
        environ["PRIVATEGPT_LLM__MODEL_PATH"] = str(model_path)
        environ["PRIVATEGPT_LLM__SLOTS"] = "1"
        environ["PRIVATEGPT_LLM__CONTEXT_TOKENS"] = "4096"
    # One question at a time: nothing else needs the cores while an answer is written.
    environ.setdefault("PRIVATEGPT_LLM__THREADS", str(os.cpu_count() or 1))
    environ["PRIVATEGPT_LLM__FIRST_BYTE_TIMEOUT_S"] = "600"
    command = [sys.executable, "-m", "privategpt", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data-dir", str(data_dir)], env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _base_url(process)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _base_url(process: subprocess.Popen[str]) -> str:
    for line in process.stdout or ():
        if "listening on" in line:
            return line.split()[-1]
    raise RuntimeError("The server did not start; see its messages above")
