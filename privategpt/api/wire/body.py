"""What every request body has in common, and the pieces that several of them share."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from privategpt.api.profiles import CitationStyle
from privategpt.domain.documents import EVERYTHING, DocumentFilter, Scalar


class Body(BaseModel):
    """Strict in type, deaf to unknown fields; `null` means that a field is absent."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)


T = TypeVar("T")

INT64 = 2**63
"""Beyond the integers that engines count in."""

# Pydantic keeps an error for every wrong item, about a kilobyte each: a body of 20 MB could make
# millions. So lists stop at their first wrong item, and objects are counted before they are read.
Items = Annotated[list[T], Field(fail_fast=True)]

TokenIds = Annotated[Items[int], Field(max_length=100_000)]
"""Taken so that they can be refused by name: no endpoint here reads token ids."""


def at_most(limit: int) -> BeforeValidator:
    """Refuses an object of more than `limit` keys before any of them is looked at."""

    bound: dict[str, Any] = {"n": limit}

    def check(value: object) -> object:
        if _keys(value) > limit:
            raise PydanticCustomError("too_long", "Object should have at most {n} keys", bound)
        return value

    return BeforeValidator(check)


def of_scalars(*, null: bool) -> BeforeValidator:
    """Refuses an object with any other value in one sentence, where pydantic has one for every
    type that a value may have; `null` is a value or it is not.
    """
    taken = (str, int, float, bool, NoneType) if null else (str, int, float, bool)

    def check(value: object) -> object:
        if not all(isinstance(one, taken) for one in _values(value)):
            raise PydanticCustomError(
                "scalars_type", "Values should be strings, numbers or booleans"
            )
        return value

    return BeforeValidator(check)


def _values(value: object) -> Iterable[object]:
    return cast("dict[str, object]", value).values() if isinstance(value, dict) else ()


def _keys(value: object) -> int:
    return len(cast("Sized", value)) if isinstance(value, dict) else 0


MetadataKey = Annotated[str, Field(min_length=1, max_length=256)]
MetadataFilter = Annotated[dict[MetadataKey, Scalar], of_scalars(null=False), at_most(100)]


class ContextFilter(Body):
    """Which documents may be used: ids of documents or files (none where the list is empty),
    and metadata that must be equal.
    """

    docs_ids: Items[str] | None = Field(
        default=None, examples=[["c202d5e6-7b69-4869-81cc-dd574ee8ee11"]]
    )
    metadata: MetadataFilter | None = None


def document_filter(body: ContextFilter | None) -> DocumentFilter:
    """The domain's filter; everything where there is none."""
    if body is None:
        return EVERYTHING
    ids = None if body.docs_ids is None else frozenset(body.docs_ids)
    return DocumentFilter(ids=ids, metadata=dict(body.metadata or {}))


StyleName: TypeAlias = Literal["chunks", "citations", "annotations"]


class ContextOptions(Body):
    """How an answer uses the library, on both completion endpoints; beyond OpenAI's fields."""

    use_context: bool | None = Field(
        default=None, description="Answer from the ingested documents. Default: false."
    )
    context_filter: ContextFilter | None = None
    include_sources: bool | None = Field(
        default=None, description="Send the chunks that were used. Default: true."
    )
    citation_style: StyleName | Items[StyleName] | None = Field(
        default=None, description="In which shapes the answer shows what it rests on."
    )
    context_only: bool | None = Field(
        default=None, description="Answer from the documents or say that they do not tell."
    )
    verify_citations: bool | None = Field(
        default=None, description="Say of each citation how well its text supports the answer."
    )
    web_search: bool | None = Field(
        default=None, description="Search the web for the last user message first."
    )
    system_prompt: str | None = None


def first_said(asked: bool | None, default: bool) -> bool:
    """What the request says, else what the model's profile does."""
    return default if asked is None else asked


def styles(body: ContextOptions) -> frozenset[CitationStyle] | None:
    """The styles that were asked for; None where the model's own apply."""
    named = body.citation_style
    if named is None:
        return None
    names = [named] if isinstance(named, str) else named
    return frozenset(CitationStyle(name) for name in names)
