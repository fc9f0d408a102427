"""A model's reply, grounded while it streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

from privategpt.domain.answers import (
    AnswerEvent,
    ChoiceFinished,
    Citation,
    CitationsFound,
    FinishReason,
    GenerationBegun,
    GenerationEvent,
    GenerationFinished,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
    UsageCounted,
)
from privategpt.domain.documents import Document
from privategpt.domain.errors import NotFound
from privategpt.domain.library import StateStore
from privategpt.grounding.citations import Grounder
from privategpt.grounding.places import heading_path, paragraph_number


class _Pending(NamedTuple):
    """What has not gone out yet, and how many citations have."""

    text: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()
    cited: int = 0

    def more(self, text: str, logprobs: tuple[TokenLogprob, ...] = ()) -> _Pending:
        """With what comes behind it."""
        return _Pending(self.text + text, self.logprobs + logprobs, self.cited)


@dataclass(frozen=True, slots=True)
class GroundedReply:
    """One choice of an answer.

    With an `abstention`, no text goes out before some of it is supported, and if none ever is,
    the abstention goes out instead. What a reply that calls tools says before is not judged as an
    answer would be: it is grounded, or nothing is said of that.
    """

    grounder: Grounder
    state: StateStore
    tenant: str
    choice: int
    abstention: str | None = None

    async def events(
        self, generation: AsyncGenerator[GenerationEvent]
    ) -> AsyncGenerator[AnswerEvent | GenerationBegun]:
        """The events of this choice; its usage comes last, for the caller to add up."""
        pending = _Pending()
        called = False
        async with aclosing(generation) as replies:
            async for event in replies:
                if isinstance(event, GenerationFinished):
                    async with aclosing(self._end(event, pending, called=called)) as last:
                        async for end in last:
                            yield end
                    return
                if isinstance(event, TextDelta):
                    text = await self.grounder.feed(event.text)
                    pending = pending.more(text, event.logprobs)
                elif isinstance(event, ToolCallDelta) and not called:
                    called = True  # what was said before the call goes out before it
                    pending = pending.more((await self.grounder.finish()).text)
                if pending.text and self._may_speak:
                    citations = self.grounder.citations[pending.cited :]
                    yield TextDelta(pending.text, pending.logprobs, self.choice, citations)
                    pending = _Pending(cited=pending.cited + len(citations))
                if isinstance(event, GenerationBegun):
                    yield event
                elif not isinstance(event, TextDelta):
                    yield replace(event, choice=self.choice)

    @property
    def _may_speak(self) -> bool:
        return self.abstention is None or self.grounder.supported

    async def _end(
        self,
        finished: GenerationFinished,
        pending: _Pending,
        *,
        called: bool,
    ) -> AsyncGenerator[AnswerEvent]:
        grounding = await self.grounder.finish()
        text, logprobs = pending.text + grounding.text, pending.logprobs
        reason, stop_sequence = finished.reason, finished.stop_sequence
        calls = called and reason is FinishReason.TOOL_CALLS
        if self.abstention is not None and not grounding.grounded:
            # Where tools are called the answer is still to come: nothing is said, not even that.
            text, logprobs = ("" if calls else self.abstention), ()
            reason, stop_sequence = (reason if calls else FinishReason.STOP), None
        if text or logprobs:
            citations = grounding.citations[pending.cited :]
            yield TextDelta(text, logprobs, choice=self.choice, citations=citations)
        if grounding.citations:
            yield CitationsFound(await self._placed(grounding.citations), choice=self.choice)
        yield ChoiceFinished(
            reason,
            grounded=grounding.grounded or (None if calls else False),
            choice=self.choice,
            stop_sequence=stop_sequence,
            markers_removed=grounding.removed,
        )
        yield UsageCounted(finished.usage, finished.system_fingerprint)

    async def _placed(self, citations: Sequence[Citation]) -> tuple[Citation, ...]:
        """With what their places are called; as they are on the web, or if the document is gone."""
        cited = {c.source.document.doc_id for c in citations if c.source.document}
        documents = {doc_id: await self._document(doc_id) for doc_id in cited}
        return tuple(_place(citation, documents) for citation in citations)

    async def _document(self, doc_id: str) -> Document | None:
        try:
            return await self.state.document(self.tenant, doc_id)
        except NotFound:
            return None


def _place(citation: Citation, documents: Mapping[str, Document | None]) -> Citation:
    about = citation.source.document
    document = documents[about.doc_id] if about else None
    if document is None:
        return citation
    return replace(
        citation,
        heading_path=heading_path(document.headings, citation.start),
        reference=paragraph_number(document.text, citation.start),
    )
