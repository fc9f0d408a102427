"""OpenAI's sampling fields, shared by both completion endpoints."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from privategpt.api.wire.body import INT64, Body, ContextOptions, Items, at_most
from privategpt.domain.conversation import Sampling

Penalty = Annotated[float, Field(ge=-2, le=2)]
Bias = Annotated[float, Field(ge=-100, le=100)]
StopText = Annotated[str, Field(max_length=1000)]
StopList = Annotated[Items[StopText], Field(max_length=4)]
LogitBias = Annotated[dict[str, Bias], at_most(10_000)]


class StreamOptions(Body):
    """`include_obfuscation` and the like are ignored."""

    include_usage: bool | None = None


class GenerationBody(ContextOptions):
    """What both completion endpoints take. Without `model`, replies are PrivateGPT's."""

    model: str | None = Field(default=None, max_length=512)
    stream: bool | None = Field(default=None, description="Default: false.")
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=0, lt=INT64)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=0, lt=INT64)
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    n: int | None = Field(default=None, ge=1, le=128)
    stop: StopText | StopList | None = None
    seed: int | None = Field(default=None, ge=-INT64, lt=INT64)
    logit_bias: LogitBias | None = None


def sampling(
    body: GenerationBody,
    *,
    max_tokens: int | None,
    top_logprobs: int | None,
    reasoning_effort: str | None = None,
) -> Sampling:
    """The domain's sampling; the three whose fields differ between the endpoints are passed."""
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    return Sampling(
        max_tokens=max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        frequency_penalty=body.frequency_penalty,
        presence_penalty=body.presence_penalty,
        stop=tuple(text for text in stop if text),
        seed=body.seed,
        top_logprobs=top_logprobs,
        logit_bias=body.logit_bias or {},
        reasoning_effort=reasoning_effort,
    )
