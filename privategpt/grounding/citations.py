"""From the model's words to an answer whose every marker can be checked.

The text runs through four stages, each of which holds back as little as it can: code is told from
prose, foreign links are defused, markers are made `[n]`, and sentences are told apart. The words of
a sentence go out as they come, but for the last one, up to its first marker. When it is complete,
it is settled:

- its markers are verified, each on its own: against the whole sentence and against the words since
  the marker before it, whichever is supported better. Below the floor the marker goes, with the
  space before it;
- a sentence that is left without a marker and states something is attributed to the best source,
  if its support reaches the (higher) threshold. The marker goes before the full stop, as people
  set it: `…near 24 °C [1].`; behind closing quotes or emphasis if those come last; without a
  space in text that is written without spaces.

What is released depends on the text alone, never on how it was cut.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from privategpt.domain.answers import Citation, Source
from privategpt.domain.ports import Vector
from privategpt.domain.verification import Pair, Verdict, Verification, Verifier
from privategpt.grounding.attribution import (
    Attributor,
    Claim,
    Support,
    read_claim,
    read_passage,
)
from privategpt.grounding.claims import is_claim, is_question, is_short_answer
from privategpt.grounding.lexical import read_terms
from privategpt.grounding.links import LinkGuard
from privategpt.grounding.markdown import CodeLexer, Piece
from privategpt.grounding.markers import MarkerScanner
from privategpt.grounding.removing import without_markers_but
from privategpt.grounding.sentences import SentenceSplitter
from privategpt.grounding.waiting import Sentence, Waiting, insert_marker
from privategpt.grounding.weights import ATTRIBUTION_THRESHOLD, FLOOR

Embed: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]
"""Vectors of texts, in their order, of the model that retrieval uses."""

BUILT_IN = "support"
"""The method of verification that needs no model beyond the embedding's."""

LONGEST_QUESTION = 300
"""In characters; a longer one brings more words than an answer of a few could stand against."""

VERIFIER_FLOOR = 0.5
VERIFIER_SURE = 0.75
"""A probability below the first unsays a citation, from the second on it is supported in full."""


@dataclass(frozen=True, slots=True)
class GroundingOptions:
    """How strict to be. The defaults are what was calibrated: see `grounding/weights.py`.

    With `markers` off (structured output, tool calls) the text passes through untouched. With
    `visible` off everything is checked and attributed, but the text shows no marker. With
    `must_answer` nothing counts as supported before a sentence whose evidence has to do with the
    question, if it is one. With `whole_sentences` none goes out before it is complete.
    `addresses` are what links may lead to, the sources' own; None leaves all links alone.
    """

    markers: bool = True
    visible: bool = True
    attribute: bool = True
    must_answer: bool = False
    whole_sentences: bool = False
    floor: float = FLOOR
    threshold: float = ATTRIBUTION_THRESHOLD
    addresses: Collection[str] | None = None


class Grounding(NamedTuple):
    """The end of an answer: its last text, all citations in order of appearance, whether any part
    of it is supported by a source, and how many markers were removed.
    """

    text: str
    citations: tuple[Citation, ...]
    grounded: bool
    removed: int


class Grounder:
    """Grounds one answer (one choice) while it is written.

    A few words that only the `question` completes ("In 1957.") are held against the sources
    together with it. With a `verifier`, it has the last word on what the calibrated support would
    let pass.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        embed: Embed,
        *,
        question: str = "",
        options: GroundingOptions | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self._options = options or GroundingOptions()
        self._question = question if len(question) <= LONGEST_QUESTION else ""
        self._answered = not (self._options.must_answer and is_question(self._question))
        self._sources = {source.number: source for source in sources}
        self._embed = embed
        self._verifier = verifier
        self._lexer = CodeLexer()
        allowed = self._options.addresses
        self._guard = None if allowed is None else LinkGuard(allowed=allowed)
        self._scanner = MarkerScanner(sources=len(sources), keep_unknown=True)
        self._splitter = SentenceSplitter()
        self._waiting = Waiting()
        self._attributor: Attributor | None = None
        self._citations: list[Citation] = []
        self._length = 0  # of the text whose sentences are settled
        self._shown = 0  # of the sentence that is not
        self._removed = 0
        self._supported = False

    @property
    def supported(self) -> bool:
        """Whether anything that was released so far is supported by a source."""
        return self._supported

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The citations in what was released so far, in order of appearance."""
        return tuple(self._citations)

    async def feed(self, delta: str) -> str:
        """What can be released once `delta` is read; may be empty."""
        if not self._options.markers:
            return delta
        pieces = self._lexer.feed(delta)
        if self._guard:
            pieces = self._guard.feed(pieces)
        scan = self._scanner.feed_pieces(pieces)
        return await self._settle(self._complete(scan.pieces)) + self._words()

    async def finish(self) -> Grounding:
        """Release the rest: the model has ended, or goes on with something that is no text.

        Without markers nothing is checked: the answer counts as grounded if it had sources.
        """
        if not self._options.markers:
            return Grounding("", (), bool(self._sources), 0)
        pieces = self._lexer.finish()
        if self._guard:
            pieces = self._guard.finish(pieces)
        scan = self._scanner.finish_pieces(pieces)
        sentences = self._complete(scan.pieces)
        sentences += [self._waiting.take(len(rest)) for rest in self._splitter.finish()]
        text = await self._settle(sentences)
        return Grounding(text, tuple(self._citations), self._supported, self._removed)

    def _complete(self, pieces: Iterable[Piece]) -> list[Sentence]:
        shape = self._waiting.add(pieces)
        return [self._waiting.take(len(segment)) for segment in self._splitter.feed(shape)]

    def _words(self) -> str:
        """What can be released of the sentence that is being written."""
        if self._options.whole_sentences:
            return ""
        sure = self._waiting.sure(self._splitter.begun)
        shown, self._shown = self._shown, max(self._shown, len(sure))
        return sure[shown:]

    async def _settle(self, sentences: Sequence[Sentence]) -> str:
        """Verify and attribute sentences that are complete, in one call to the model; what of them
        was not released before.
        """
        if not sentences:
            return ""
        checks = [self._check(sentence) for sentence in sentences]
        texts = list(dict.fromkeys(text for check in checks for text in check.texts))
        if texts and not self._answered:
            texts.append(self._question)
        claims: dict[str, Claim] = {}
        if texts:
            vectors = await self._embed(texts)
            required = {check.claim: check.required for check in checks}
            claims = {
                text: read_claim(text, vector, required=required.get(text, ""))
                for text, vector in zip(texts, vectors, strict=True)
            }
            await self._prepare()
        decisions = [self._decide(check, claims) for check in checks]
        if self._verifier is not None:
            decisions = await self._judge(decisions, self._verifier)
        shown, self._shown = self._shown, 0
        return "".join(map(self._release, decisions))[shown:]

    async def _prepare(self) -> None:
        """Read and embed the sources, when first needed."""
        if self._attributor is not None:
            return
        passages = [read_passage(source) for source in self._sources.values()]
        texts = [text for passage in passages for text in passage.sentences]
        vectors = iter(await self._embed(texts) if texts else ())
        rows = [[next(vectors) for _ in passage.spans] for passage in passages]
        self._attributor = Attributor(passages, rows)

    def _check(self, sentence: Sentence) -> _Check:
        text = sentence.claim
        is_cited = any(piece.number in self._sources for piece in sentence.pieces)
        clauses = sentence.clauses if is_cited and text.strip() else ()
        short = bool(self._question) and is_short_answer(text)
        claim, required = (f"{self._question} {text}", text) if short else (text, "")
        attributable = self._options.attribute and bool(self._sources)
        attributable = attributable and (short or is_claim(text))
        asked = {claim, *clauses} if clauses else {claim} if attributable else set[str]()
        # Words that say nothing ("and so on") are found in every passage.
        texts = tuple(sorted(one for one in asked if read_terms(one).words))
        return _Check(sentence, claim, required, clauses, attributable, texts)

    def _decide(self, check: _Check, claims: dict[str, Claim]) -> _Decision:
        kept: dict[int, Support] = {}
        clauses = iter(check.clauses)
        for at, piece in enumerate(check.sentence.pieces):
            if piece.number is None:
                continue
            clause = next(clauses, "")
            alone = not check.required or self._is_quote(clause, piece.number)
            wordings = (check.claim, clause) if alone else (check.claim,)
            support = self._verify(wordings, piece.number, claims)
            if support is None or not self._answers(support, claims):
                self._removed += 1
            else:
                kept[at] = support
        found = None
        if not kept and check.attributable:
            found = self._attribute(claims[check.claim])
            if found and not self._answers(found, claims):
                found = None
        return _Decision(check, kept, found)

    async def _judge(self, decisions: Sequence[_Decision], verifier: Verifier) -> list[_Decision]:
        """What is left of the decisions when the verifier has read each claim and its evidence."""
        supports = [support for decision in decisions for support in decision.supports]
        pairs = [
            Pair(claim=decision.check.claim, evidence=support.text)
            for decision in decisions
            for support in decision.supports
        ]
        scores = await verifier.verify(pairs) if pairs else []
        judged = {
            id(support): replace(support, score=score)
            for support, score in zip(supports, scores, strict=True)
            if score >= VERIFIER_FLOOR
        }
        upheld = [decision.as_judged(judged) for decision in decisions]
        self._removed += sum(len(d.kept) for d in decisions) - sum(len(d.kept) for d in upheld)
        return upheld

    def _release(self, decision: _Decision) -> str:
        check, kept, found = decision
        self._supported = self._supported or bool(kept) or found is not None
        if not self._options.visible:
            kept, found = {}, None
        left = without_markers_but(kept, check.sentence.pieces)
        pieces = [piece for piece, _ in left]
        if found:
            pieces, place = insert_marker(pieces, found.source.number)
            return self._write(pieces, {place: found})
        return self._write(
            pieces, {place: kept[at] for place, (_, at) in enumerate(left) if at in kept}
        )

    def _verify(
        self, wordings: Sequence[str], number: int, claims: dict[str, Claim]
    ) -> Support | None:
        assert self._attributor is not None or not claims  # noqa: S101 - prepared with claims
        if self._attributor is None:
            return None
        found = [
            support
            for claim in wordings
            if claim in claims
            and (support := self._attributor.support(claims[claim], number=number))
        ]
        best = max(found, key=lambda support: support.score, default=None)
        return best if best and best.score >= self._options.floor else None

    def _is_quote(self, text: str, number: int) -> bool:
        """Whether a few words need no question to be complete: the source has them as a sentence.

        Where the question must be answered, they are held against it all the same.
        """
        quoted = self._attributor is not None and self._attributor.quotes(text, number=number)
        return quoted and not self._options.must_answer

    def _answers(self, support: Support, claims: Mapping[str, Claim]) -> bool:
        """Whether this is about the question, or a sentence before it was."""
        if not self._answered and self._attributor is not None:
            self._answered = self._attributor.answers(claims[self._question], support)
        return self._answered

    def _attribute(self, claim: Claim) -> Support | None:
        best = self._attributor.best(claim) if self._attributor else None
        return best if best and best.score >= self._options.threshold else None

    def _write(self, pieces: Sequence[Piece], supports: dict[int, Support]) -> str:
        """Count the released sentence and note the citations in it."""
        sentence = "".join(piece.text for piece in pieces)
        begun = self._length
        for at, piece in enumerate(pieces):
            if at in supports:
                citation = _citation(supports[at], self._length, piece.text)
                end = begun + len(sentence)
                self._citations.append(
                    replace(
                        citation,
                        sentence_start=begun,
                        sentence_end=end,
                        verification=self._verification(supports[at].score),
                    )
                )
            self._length += len(piece.text)
        return sentence

    def _verification(self, score: float) -> Verification:
        if self._verifier is None:
            sure, method = self._options.threshold, BUILT_IN
        else:
            sure, method = VERIFIER_SURE, self._verifier.method
        verdict = Verdict.SUPPORTED if score >= sure else Verdict.PARTIAL
        return Verification(verdict=verdict, score=score, method=method)


class _Decision(NamedTuple):
    """What a sentence rests on: its markers that hold, by place, or the source found for it."""

    check: _Check
    kept: dict[int, Support]
    found: Support | None

    @property
    def supports(self) -> list[Support]:
        """All of it."""
        return [*self.kept.values(), *([self.found] if self.found else [])]

    def as_judged(self, judged: Mapping[int, Support]) -> _Decision:
        """With what was upheld, by the identity of what it was."""
        kept = {at: judged[id(s)] for at, s in self.kept.items() if id(s) in judged}
        found = judged.get(id(self.found)) if self.found else None
        return _Decision(self.check, kept, found)


class _Check(NamedTuple):
    """What has to be asked of a sentence before it can go."""

    sentence: Sentence
    claim: str  # its words, completed by the question where they are few
    required: str  # these few words
    clauses: tuple[str, ...]
    attributable: bool
    texts: tuple[str, ...]


def _citation(support: Support, start: int, marker: str) -> Citation:
    return Citation(
        source=support.source,
        marker_start=start,
        marker_end=start + len(marker),
        start=support.start,
        end=support.end,
        cited_text=support.text,
        support=support.score,
    )
