"""What every test shares: async tests run on asyncio."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The server runs on asyncio (uvloop), so the tests do too."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that may take longest begin first: at the end one process would wait for the other."""
    allowed: dict[Path, float] = {}
    for item in items:
        marker = item.get_closest_marker("timeout")
        longest = max(allowed.get(item.path, 0.0), float(marker.args[0]) if marker else 0.0)
        allowed[item.path] = longest
    items.sort(key=lambda item: (-allowed[item.path], "e2e" not in item.path.parts))
