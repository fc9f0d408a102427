"""A vector database on loopback: the routes of Qdrant's REST API that we use, over its client's
own engine in memory.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pydantic import BaseModel
from qdrant_client import AsyncQdrantClient, models

from tests.fakes.websearch import SeenRequest, reply

Body: TypeAlias = dict[str, Any]
Route: TypeAlias = Callable[[str, Body], Awaitable[Any]]


class QdrantServer:
    """`answer` is what a `loopback_server` needs."""

    def __init__(self) -> None:
        self._client = AsyncQdrantClient(location=":memory:")
        self._routes: dict[tuple[str, str], Route] = {
            ("GET", "exists"): self._exists,
            ("GET", ""): self._info,
            ("PUT", ""): self._create,
            ("PUT", "index"): self._index,
            ("PUT", "points"): self._upsert,
            ("POST", "points/query/batch"): self._query,
            ("POST", "points/count"): self._count,
            ("POST", "points/delete"): self._delete,
        }

    async def answer(self, request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        """One request, as the server would answer it."""
        _, _, collection, *rest = request.target.partition("?")[0].split("/")
        route = self._routes[request.method, "/".join(rest)]
        result = await route(collection, json.loads(request.body or b"{}"))
        await reply({"result": _plain(result), "status": "ok", "time": 0.0})(request, writer)

    async def _exists(self, collection: str, _: Body) -> Any:
        return {"exists": await self._client.collection_exists(collection)}

    async def _info(self, collection: str, _: Body) -> Any:
        return await self._client.get_collection(collection)

    async def _create(self, collection: str, body: Body) -> Any:
        wanted = models.CreateCollection.model_validate(body)
        return await self._client.create_collection(
            collection,
            vectors_config=wanted.vectors,
            sparse_vectors_config=wanted.sparse_vectors,
        )

    async def _index(self, collection: str, body: Body) -> Any:
        with warnings.catch_warnings(action="ignore"):  # It has no indexes, and says so.
            return await self._client.create_payload_index(collection, body["field_name"])

    async def _upsert(self, collection: str, body: Body) -> Any:
        points = models.PointsList.model_validate(body).points
        return await self._client.upsert(collection, points)

    async def _query(self, collection: str, body: Body) -> Any:
        searches = models.QueryRequestBatch.model_validate(body).searches
        return await self._client.query_batch_points(collection, searches)

    async def _count(self, collection: str, body: Body) -> Any:
        wanted = models.CountRequest.model_validate(body)
        return await self._client.count(collection, count_filter=wanted.filter, exact=True)

    async def _delete(self, collection: str, body: Body) -> Any:
        return await self._client.delete(collection, models.FilterSelector.model_validate(body))


def _plain(result: Any) -> Any:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json")
    if hasattr(result, "append"):
        return [_plain(one) for one in result]
    return result
