"""What every test shares: async tests run on asyncio."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import settings

# Hypothesis imports it within a test, where Python 3.11 may fail to parse it: a collection of
# garbage meanwhile confuses its parser ("AST constructor recursion depth mismatch").
import_module("hypothesis.internal.conjecture.optimiser")

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The server runs on asyncio (uvloop), so the tests do too."""
    return "asyncio"
