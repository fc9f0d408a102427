"""The embedded engine's own process: llama.cpp's server, and nothing else.

Run as a script by `llama_cpp`, so that it imports the standard library and xllamacpp alone. It
reads one line of JSON from standard input (`ChildConfig` as an object), writes one line to
standard output when it listens ({"url": …}) and lives until standard input ends, which it does
when the parent closes it or dies in any way. A crash in native code ends this process and not
the server. llama.cpp's log goes to standard error.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any, TextIO

PR_SET_PDEATHSIG = 1
PROMPT_CACHE_MIB = 512
"""llama.cpp would take 8 GB for prompts that are no longer in a slot."""
BATCH_TOKENS = 128
"""A batch cannot be interrupted: a longer one keeps other slots, and a cancelled reply, waiting."""
LOG_WARNINGS = 2


def main() -> None:
    """Serve until standard input ends."""
    die_with_parent()
    answers = private_stdout()
    config = json.loads(sys.stdin.readline())
    server = start_server(config)
    answers.write(json.dumps({"url": server.listening_address}) + "\n")
    answers.flush()
    sys.stdin.read()
    # There is nothing to save, and joining llama.cpp's threads can wait for a running batch.
    os._exit(0)


def die_with_parent() -> None:
    """On Linux the kernel kills us with our parent, even while a model loads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def private_stdout() -> TextIO:
    """Our answers' own stream; whatever native code prints goes to standard error instead."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def start_server(config: dict[str, Any]) -> Any:
    """Load the model and listen on a free port of loopback."""
    # Untyped, and slow to import: it is no business of the module's readers.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = config["model_path"]
    params.model_alias = [config["alias"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [config["api_key"]]
    params.n_parallel = config["slots"]
    params.n_ctx = config["slots"] * config["context_tokens"]  # llama.cpp divides it by slots
    params.cpuparams.n_threads = config["threads"]
    params.cpuparams_batch.n_threads = config["prompt_threads"]
    params.n_batch = BATCH_TOKENS
    params.n_ubatch = min(params.n_ubatch, BATCH_TOKENS)
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.fit_params = False  # it would shrink the window in silence
    params.warmup = False  # it costs the start more than it saves the first answer
    params.ui = False
    params.cors_origins = ""
    params.verbosity = LOG_WARNINGS
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
