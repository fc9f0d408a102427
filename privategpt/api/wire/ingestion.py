"""What clients send to be ingested: a text in JSON, or a form with files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError

from privategpt.api.jsontext import parse
from privategpt.api.wire.body import Body, MetadataKey, at_most, of_scalars
from privategpt.domain.documents import Metadata, Scalar
from privategpt.domain.errors import InvalidRequest

Text = Annotated[str, Field(max_length=10_000)]
MetadataField = Annotated[
    dict[MetadataKey, Text | int | float | bool | None], of_scalars(null=True), at_most(100)
]


class IngestTextBody(Body):
    """A text under a name."""

    file_name: str = Field(examples=["Avatar: The Last Airbender"])
    text: str = Field(examples=["Avatar is set in an Asian and Arctic-inspired world."])
    metadata: MetadataField | None = None
    replace: bool | None = Field(
        default=None, description="Replace the file of that name. Default: false."
    )


FORM_SCHEMA: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "title": "File",
                            "description": "The file; the part may be repeated.",
                        },
                        "metadata": {
                            "type": "string",
                            "description": "A JSON object of strings, numbers and booleans.",
                        },
                        "replace": {
                            "type": "string",
                            "enum": ["true", "false"],
                            "description": "Replace the file of that name. Default: false.",
                        },
                        "password": {
                            "type": "string",
                            "description": "The password of an encrypted file.",
                        },
                    },
                }
            }
        },
    }
}
"""The form of /v1/ingest for OpenAPI; it is read from the stream, not by the framework."""

_METADATA: TypeAdapter[dict[str, Scalar | None]] = TypeAdapter(
    MetadataField, config={"strict": True, "allow_inf_nan": False}
)


def form_metadata(text: str | None) -> Metadata:
    """The form's `metadata`. Raises `InvalidRequest` where it is no JSON, and
    `RequestValidationError`, as for a body, where it is no object of scalars.
    """
    if text is None or not text.strip():
        return {}
    try:
        value = parse(text.encode("utf-8", errors="strict"))
    except ValueError as error:
        raise InvalidRequest(f"metadata is not valid JSON: {error}", param="metadata") from error
    try:
        return _METADATA.validate_python({} if value is None else value)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        place = ("body", "metadata")
        raise RequestValidationError(
            [{**problem, "loc": (*place, *problem["loc"])} for problem in problems]
        ) from error


def form_flag(text: str | None, *, name: str) -> bool:
    """A form's true or false; absent and empty are false. Raises `InvalidRequest`."""
    known = {"true": True, "1": True, "false": False, "0": False, "": False}
    value = known.get((text or "").strip().lower())
    if value is None:
        raise InvalidRequest(f"{name} must be true or false", param=name)
    return value
