"""POST /v1/completions: OpenAI's legacy body and PrivateGPT's in one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from privategpt.api.profiles import ModelProfile
from privategpt.api.wire.answering import Answerable, answerable
from privategpt.api.wire.body import Items, TokenIds
from privategpt.api.wire.generation import GenerationBody, sampling
from privategpt.domain.conversation import Message, Role
from privategpt.domain.errors import InvalidRequest

MAX_CHOICES = 128
"""Prompts times `n`: what one request may have written."""


Prompts = Annotated[Items[str], Field(max_length=MAX_CHOICES)]


class CompletionsBody(GenerationBody):
    """A text to answer. `best_of` and `user` are ignored."""

    prompt: str | Prompts | TokenIds | Items[TokenIds]
    logprobs: int | None = Field(default=None, ge=0, le=5)
    echo: bool | None = None
    suffix: str | None = Field(
        default=None, description="What follows; the model is asked for the text in between."
    )


def completion_requests(
    body: CompletionsBody, *, profile: ModelProfile, tenant: str
) -> list[Answerable]:
    """One request to the use case for each prompt, in order.

    Raises `InvalidRequest`.
    """
    prompts = _prompts(body)
    if len(prompts) * (body.n or 1) > MAX_CHOICES:
        raise InvalidRequest(f"At most {MAX_CHOICES} completions per request", param="prompt")
    return [
        answerable(
            body,
            profile=profile,
            tenant=tenant,
            messages=(Message(role=Role.USER, text=_asked(prompt, body.suffix)),),
            sampling=sampling(body, max_tokens=body.max_tokens, top_logprobs=body.logprobs),
        )
        for prompt in prompts
    ]


def _asked(prompt: str, suffix: str | None) -> str:
    """What the model is asked. It chats, so what to insert before is a thing to tell it."""
    if not suffix:
        return prompt
    return (
        "Write only the text that belongs between these two, and repeat neither of them.\n\n"
        f"Before:\n{prompt}\n\nAfter:\n{suffix}"
    )


def echoed(body: CompletionsBody) -> list[str]:
    """What each prompt's text begins with: the prompt, where `echo` asks for it."""
    return [prompt if body.echo else "" for prompt in _prompts(body)]


def _prompts(body: CompletionsBody) -> list[str]:
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    texts = [prompt for prompt in prompts if isinstance(prompt, str)]
    if len(texts) < len(prompts):
        raise InvalidRequest("The prompt must be text; token ids cannot be read", param="prompt")
    if not texts:
        raise InvalidRequest("There is no prompt", param="prompt")
    return texts
