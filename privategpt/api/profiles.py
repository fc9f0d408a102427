"""The models a client may name, and what each switches on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from privategpt.domain.errors import ModelNotFound

SEED_MODEL = "private-gpt"
"""The id in replies to requests that name no model (seed 004 knows no other)."""


class CitationStyle(StrEnum):
    """In which shape an answer shows what it rests on."""

    CHUNKS = "chunks"
    CITATIONS = "citations"
    ANNOTATIONS = "annotations"


MARKED = frozenset({CitationStyle.CITATIONS, CitationStyle.ANNOTATIONS})
"""The shapes that show markers in the text; chunks are listed beside it."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model id with the defaults that it stands for: what a front end cannot send, it can name.

    `engine_model` is what the engine is asked for; None leaves the engine's own.
    """

    id: str
    use_context: bool = False
    citation_styles: frozenset[CitationStyle] = frozenset({CitationStyle.CHUNKS})
    web_search: bool = False
    context_only: bool = False
    system_prompt: str | None = None
    engine_model: str | None = None


@dataclass(frozen=True, slots=True)
class ModelCatalog:
    """Every id that is served; the first profile answers where a request names none.

    With `refuse_unknown` false, an unknown id gets that first profile too.
    """

    profiles: tuple[ModelProfile, ...]
    embedding_models: tuple[str, ...] = ()
    rerank_models: tuple[str, ...] = ()
    refuse_unknown: bool = True

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids in the order in which they are listed."""
        profiles = (profile.id for profile in self.profiles)
        return tuple(dict.fromkeys((*profiles, *self.embedding_models, *self.rerank_models)))

    def profile(self, model: str | None) -> ModelProfile:
        """The profile of `model`. Raises `ModelNotFound`."""
        if model is None:
            return self.profiles[0]
        for profile in self.profiles:
            if profile.id == model:
                return profile
        if not self.refuse_unknown:
            return self.profiles[0]
        if model in self.ids:
            raise ModelNotFound(
                "This model embeds or reranks, and writes no answers; GET /v1/models lists others",
                param="model",
            )
        raise unknown_model()

    def check_served(self, model: str | None) -> None:
        """Raise `ModelNotFound` unless `model` may be named for embeddings and for reranking.

        There is one model for each, so every id that is served means that one.
        """
        if model is not None and self.refuse_unknown and model not in self.ids:
            raise unknown_model()


def unknown_model() -> ModelNotFound:
    """The error for an id that is not served; the id itself is not echoed."""
    return ModelNotFound("There is no such model; GET /v1/models lists them", param="model")
