"""What every test shares: async tests run on asyncio."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The server runs on asyncio (uvloop), so the tests do too."""
    return "asyncio"
