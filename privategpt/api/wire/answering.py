"""From a body's context options and a model's profile to a request to the use case."""

from __future__ import annotations

from dataclasses import dataclass

from privategpt.api.profiles import MARKED, CitationStyle, ModelProfile
from privategpt.api.wire.body import document_filter, first_said, styles
from privategpt.api.wire.generation import GenerationBody
from privategpt.domain.conversation import JsonObject, Message, Sampling, Tooling
from privategpt.services.answering import AnswerRequest


@dataclass(frozen=True, slots=True)
class Answerable:
    """A request to the use case, and the styles in which its answer is shown."""

    request: AnswerRequest
    styles: frozenset[CitationStyle]


def answerable(
    body: GenerationBody,
    *,
    profile: ModelProfile,
    tenant: str,
    messages: tuple[Message, ...],
    sampling: Sampling,
    tooling: Tooling = Tooling(),
    response_format: JsonObject | None = None,
) -> Answerable:
    """What the request says, and what the profile says where the request is silent."""
    web_search = first_said(body.web_search, profile.web_search)
    shown = _shown(body, profile, web_search=web_search)
    return Answerable(
        request=AnswerRequest(
            messages=messages,
            tenant=tenant,
            model=profile.engine_model,
            use_context=first_said(body.use_context, profile.use_context),
            filter=document_filter(body.context_filter),
            # JSON with markers in it would not be the JSON that was asked for.
            cite=bool(shown & MARKED) and response_format is None,
            context_only=first_said(body.context_only, profile.context_only),
            web_search=web_search,
            choices=body.n or 1,
            sampling=sampling,
            tooling=tooling,
            response_format=response_format,
            system_prompt=body.system_prompt or profile.system_prompt,
        ),
        styles=shown,
    )


def _shown(
    body: GenerationBody, profile: ModelProfile, *, web_search: bool
) -> frozenset[CitationStyle]:
    asked = styles(body)
    shown = profile.citation_styles if asked is None else asked
    return shown | {CitationStyle.ANNOTATIONS} if web_search else shown
