"""The app over fakes behind a real uvicorn on loopback, for clients that need a socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import uvicorn
from fastapi import FastAPI

from privategpt.api.deps import ApiOptions

START_TIMEOUT_S = 30.0


class Servable(Protocol):
    """Fakes with an app over them."""

    def app(self, options: ApiOptions | None = None) -> FastAPI:
        """The app."""
        ...


@contextmanager
def served(edge: Servable, options: ApiOptions | None = None) -> Generator[str]:
    """Serve `edge` from a thread; yields the base URL."""
    config = uvicorn.Config(
        # uvicorn's own logging would be the whole process's, and so that of the tests after this.
        edge.app(options),
        host="127.0.0.1",
        port=0,
        log_config=None,
        lifespan="on",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{_port(server)}"
    finally:
        server.should_exit = True
        thread.join(timeout=START_TIMEOUT_S)


def _port(server: uvicorn.Server) -> int:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not server.started:
        if time.monotonic() > deadline:
            raise TimeoutError("uvicorn did not start")
        time.sleep(0.01)
    return int(server.servers[0].sockets[0].getsockname()[1])
