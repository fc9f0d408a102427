"""What every test shares: async tests run on asyncio."""

from __future__ import annotations

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The server runs on asyncio (uvloop), so the tests do too."""
    return "asyncio"
