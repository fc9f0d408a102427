"""POST /v1/embeddings."""

from __future__ import annotations

import base64
import sys
from typing import Annotated, Any, Literal

from pydantic import Field

from privategpt.api.wire.body import Body, Items, TokenIds
from privategpt.domain.errors import InvalidRequest
from privategpt.domain.ports import Embeddings, Vector
from privategpt.services.embeddings import MAX_INPUTS

Texts = Annotated[Items[str], Field(max_length=MAX_INPUTS)]


class EmbeddingsBody(Body):
    """Texts to embed. OpenAI's SDKs ask for base64 on their own, and decode it."""

    input: str | Texts | TokenIds | Items[TokenIds]
    model: str | None = Field(default=None, max_length=512)
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(default=None, ge=1, le=1_000_000)


def texts(body: EmbeddingsBody) -> list[str]:
    """What to embed. Raises `InvalidRequest` for token ids and where there is no text."""
    given = [body.input] if isinstance(body.input, str) else body.input
    found = [text for text in given if isinstance(text, str)]
    if len(found) < len(given):
        raise InvalidRequest(
            "The input must be text, not token ids (LangChain: check_embedding_ctx_length=False)",
            param="input",
        )
    if not found or not all(found):
        raise InvalidRequest("The input has no text, or an empty one", param="input")
    return found


def embeddings_json(embeddings: Embeddings, *, model: str, base64_floats: bool) -> dict[str, Any]:
    """The reply, in the order of the input."""
    encode = _base64 if base64_floats else _floats
    return {
        "object": "list",
        "model": model,
        "data": [
            {"object": "embedding", "index": index, "embedding": encode(vector)}
            for index, vector in enumerate(embeddings.vectors)
        ],
        "usage": {"prompt_tokens": embeddings.tokens, "total_tokens": embeddings.tokens},
    }


def _floats(vector: Vector) -> list[float]:
    return vector.tolist()


def _base64(vector: Vector) -> str:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return base64.b64encode(vector).decode("ascii")
