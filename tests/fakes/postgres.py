"""A PostgreSQL database for one test, on the server that POSTGRES_URL names."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine


@asynccontextmanager
async def postgres_database() -> AsyncGenerator[str]:
    """The address of a new, empty database; it is dropped at the end. Skips without a server."""
    server = os.environ.get("POSTGRES_URL")
    if server is None:
        pytest.skip("POSTGRES_URL names no server")
    url = make_url(server)
    name = f"privategpt_test_{uuid4().hex}"
    engine = create_async_engine(
        url.set(drivername="postgresql+asyncpg"), isolation_level="AUTOCOMMIT"
    )
    try:
        async with engine.connect() as connection:
            await connection.execute(text(f"CREATE DATABASE {name}"))
        yield url.set(database=name).render_as_string(hide_password=False)
        async with engine.connect() as connection:
            await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    finally:
        await engine.dispose()
