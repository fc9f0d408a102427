"""What goes wrong between us and a Qdrant server, in our words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import grpc
import httpx
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    Unavailable,
)


@asynccontextmanager
async def server_errors(timeout_s: float) -> AsyncGenerator[None]:
    """Bound what is done inside by `timeout_s`, and tell its failures in our words."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise EngineTimedOut("The vector database did not answer in time") from error
    except ResourceExhaustedResponse as error:
        raise EngineUnavailable(
            "The vector database is overloaded", retry_after_s=error.retry_after_s
        ) from error
    except ResponseHandlingException as error:
        raise _connection_failure(error.source) from error
    except (json.JSONDecodeError, QdrantException) as error:
        raise EngineFailed("The vector database answered with what is no answer") from error
    except UnexpectedResponse as error:
        raise _refusal(error) from error
    except grpc.aio.AioRpcError as error:
        raise _rpc_failure(error.code()) from error


def _connection_failure(source: Exception) -> Unavailable:
    if isinstance(source, httpx.TimeoutException):
        return EngineTimedOut("The vector database did not answer in time")
    if isinstance(source, httpx.TransportError):
        return EngineUnavailable("The vector database cannot be reached")
    return EngineFailed("The vector database answered with what is no answer")


def _refusal(error: UnexpectedResponse) -> Unavailable:
    if error.status_code in {429, 502, 503, 504}:
        return EngineUnavailable("The vector database is not available")
    return EngineFailed(f"The vector database refused with status {error.status_code}")


def _rpc_failure(code: grpc.StatusCode) -> Unavailable:
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return EngineTimedOut("The vector database did not answer in time")
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}:
        return EngineUnavailable("The vector database is not available")
    return EngineFailed(f"The vector database refused with {code.name}")
