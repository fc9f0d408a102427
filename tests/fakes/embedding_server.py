"""An OpenAI-compatible embeddings server on loopback, as strict or as odd as a test wants it."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from types import TracebackType
from typing import Any, Self

from tests.fakes.embedding import bag_of_words

WIDTH = 64


class EmbeddingServer:
    """Embeds words. `requests` are the bodies received.

    `floats_only` answers 400 to base64; `status` answers that to everything; `raw` is sent as the
    body as it is; `drop` takes so many vectors off the answer; `silent` never answers.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.reset()
        self._server: asyncio.Server | None = None
        self._leaving = asyncio.Event()

    def reset(self) -> None:
        """Back to a server that does as it should."""
        self.requests.clear()
        self.floats_only = False
        self.answers_floats = False
        self.usage = True
        self.status = 200
        self.raw: bytes | None = None
        self.drop = 0
        self.silent = False

    @property
    def url(self) -> str:
        """The base URL."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._leaving.set()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            self.requests.append(request)
            if self.silent:
                await self._leaving.wait()
            status, body = self._answer(request)
            writer.write(
                f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _answer(self, request: dict[str, Any]) -> tuple[int, bytes]:
        if self.raw is not None:
            return self.status, self.raw
        base64 = request["encoding_format"] == "base64"
        if self.status != 200 or (base64 and self.floats_only):
            return (400 if self.status == 200 else self.status), b'{"error":{"message":"no"}}'
        width = request.get("dimensions", WIDTH)
        vectors = [bag_of_words(text, dimensions=width) for text in request["input"]]
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": b64encode(vector.tobytes()).decode()
                if base64 and not self.answers_floats
                else vector.tolist(),
            }
            for index, vector in enumerate(vectors)
        ]
        body: dict[str, Any] = {"object": "list", "model": request["model"]}
        body["data"] = data[self.drop :][::-1]  # the order is the client's business
        if self.usage:
            tokens = sum(len(text.split()) for text in request["input"])
            body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        return 200, json.dumps(body).encode()
