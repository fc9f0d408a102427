"""One server process: its socket, its parts, its last words."""

from __future__ import annotations

import gc
import math
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from opentelemetry.trace import TracerProvider
from uvicorn.server import HANDLED_SIGNALS

from privategpt.api.logs import configure_logging
from privategpt.app import create_app
from privategpt.domain.errors import InvalidSettings, StartRefused
from privategpt.settings import Settings
from privategpt.wiring import open_server

CLOSING_S = 5.0
"""What streams get beyond the grace to send their last words and be closed."""


class GracefulServer(uvicorn.Server):
    """Stops at the first signal with the grace, at the second at once; both end with status 0.

    uvicorn's own raises the signal again when it has stopped, so a stop that went well would
    look to a supervisor like a process that was killed. And it does not hear when the terminal is
    closed (SIGHUP), which `nohup` has ignored.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        signals = [*HANDLED_SIGNALS]
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signals.append(signal.SIGHUP)
        before = {sig: signal.signal(sig, self.handle_exit) for sig in signals}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:
            # Else the application is cancelled instead, and a traceback is the log's last word.
            await self.lifespan.shutdown()


async def serve(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` gets the lines that a person should see.

    Raises `StartRefused` where the address is taken, the folder in use or the model changed.
    """
    configure_logging(
        level=settings.server.log_level,
        form=settings.server.log_format,
        secrets=settings.secrets(),
    )
    # Bound first: a port that is taken is told before the models are loaded.
    with (
        _traced(settings.server.traces_url) as tracer_provider,
        _bind(settings.server.host, settings.server.port) as bound,
    ):
        async with open_server(settings) as parts:
            server = GracefulServer(
                uvicorn.Config(
                    create_app(
                        parts.services,
                        options=parts.options,
                        metrics=parts.metrics,
                        tracer_provider=tracer_provider,
                    ),
                    log_config=None,
                    access_log=False,
                    server_header=False,
                    timeout_graceful_shutdown=math.ceil(
                        settings.server.shutdown_grace_s + CLOSING_S
                    ),
                )
            )
            # What is there now stays until the end. To look through all of it for garbage again and
            # again would stop the event loop for a fifth of a second each time.
            gc.freeze()
            bound.listen(1024)
            for line in (*parts.description, *_addresses(bound)):
                announce(line)
            await server.serve(sockets=[bound])


@contextmanager
def _traced(url: str | None) -> Generator[TracerProvider | None]:
    """What makes the traces for the collector at `url`, if there is one."""
    if url is None:
        yield None
        return
    try:
        from privategpt.api.tracing import make_tracer_provider, otlp_exporter
    except ModuleNotFoundError as error:
        raise InvalidSettings(
            "Setting 'server.traces_url' needs OpenTelemetry: pip install 'privategpt[otel]'"
        ) from error
    provider = make_tracer_provider(otlp_exporter(url))
    try:
        yield provider
    finally:
        provider.shutdown()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise StartRefused(
            f"Cannot listen on {host} port {port}: {error.strerror}. "
            "Choose another with --port or server.port."
        ) from error
    return bound


def _addresses(bound: socket.socket) -> tuple[str, str]:
    host, port = bound.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return f"  listening on   {url}", f"  documentation  {url}/docs"
