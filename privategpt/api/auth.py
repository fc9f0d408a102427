"""Who is asking. The tenant comes from here alone, never from a request's body or path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Caller:
    """The account a request belongs to."""

    tenant: str


async def caller() -> Caller:
    """The caller of a server without keys: one fixed tenant."""
    return Caller(tenant=DEFAULT_TENANT)


CallerDep = Annotated[Caller, Depends(caller)]
AUTHENTICATED = Depends(caller)
"""For routes that must know that there is a caller, and not which."""
