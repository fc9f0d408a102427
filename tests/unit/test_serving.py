"""How a server process takes its signals."""

from __future__ import annotations

import asyncio
import logging
import signal

import pytest
import uvicorn
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette

from privategpt.serving import GracefulServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> GracefulServer:
    # A signal sets it for the whole process, and every stream of the tests after this would end.
    monkeypatch.setattr(AppStatus, "should_exit", False)
    return GracefulServer(uvicorn.Config(Starlette(), port=0, log_config=None))


async def started(server: GracefulServer) -> asyncio.Task[None]:
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0)
    return running


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_it_well_and_leaves_signals_as_they_were(
    server: GracefulServer, sig: signal.Signals
) -> None:
    before = signal.signal(sig, signal.SIG_DFL)
    try:
        running = await started(server)
        signal.raise_signal(sig)
        await running
        assert signal.getsignal(sig) == signal.SIG_DFL
    finally:
        signal.signal(sig, before)


def test_nohup_is_left_alone(server: GracefulServer) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with server.capture_signals():
            signal.raise_signal(signal.SIGHUP)
        assert not server.should_exit
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_second_signal_leaves_no_traceback(
    server: GracefulServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        running = await started(server)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        await running
    assert server.force_exit
    assert "Application shutdown complete." in caplog.messages
    assert [line for line in caplog.records if line.levelno >= logging.ERROR] == []
