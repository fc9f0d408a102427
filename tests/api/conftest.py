"""The app over fakes of its use cases, and clients that speak to it in the process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias

import httpx
import pytest
from hypothesis import settings

from privategpt.api.deps import ApiOptions
from tests.fakes.edge import Edge

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

BASE_URL = "http://gpt.test"

NewClient: TypeAlias = Callable[[ApiOptions], httpx.AsyncClient]


@pytest.fixture
def edge() -> Edge:
    """Fakes that a test may change before its first request."""
    return Edge()


@pytest.fixture
def new_client(edge: Edge) -> NewClient:
    """Makes a client of an app with options of the test's choice."""

    def make(options: ApiOptions) -> httpx.AsyncClient:
        # Errors are looked at as a client sees them, not as Python raises them.
        transport = httpx.ASGITransport(edge.app(options), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=BASE_URL)

    return make


@pytest.fixture
async def client(new_client: NewClient) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the app as it is shipped."""
    async with new_client(ApiOptions()) as opened:
        yield opened
