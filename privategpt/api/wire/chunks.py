"""POST /v1/chunks."""

from __future__ import annotations

from pydantic import Field

from privategpt.api.wire.body import Body, ContextFilter

DEFAULT_LIMIT = 10


class ChunksBody(Body):
    """What to look for, and how much of it."""

    text: str = Field(examples=["Q3 2023 sales"])
    context_filter: ContextFilter | None = None
    limit: int | None = Field(
        default=None, ge=1, le=100, description=f"Chunks at most. Default: {DEFAULT_LIMIT}."
    )
    prev_next_chunks: int | None = Field(
        default=None,
        ge=0,
        le=10,
        description="Chunks before and after each. Default: 0.",
        examples=[2],
    )
