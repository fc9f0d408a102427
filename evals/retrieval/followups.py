"""Conversations made from SQuAD: a question that names its article, then one that says "it".

The second turn is a question of the same article, about another passage, with a pronoun for the
title. What is searched for instead of it should find what the question itself would have found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evals.retrieval.measures import Quality, mean, quality
from evals.retrieval.sets import EvaluationSet
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.conversation import Message, Role
from privategpt.services.conversation_query import retrieval_query
from privategpt.services.function_words import ENGLISH
from privategpt.services.retrieval import Retrieval


@dataclass(frozen=True, slots=True)
class FollowUp:
    """`question` is query `id` of the collection as it was, `last` with a pronoun in it, and
    `elsewhere` an earlier question of another article.
    """

    id: str
    earlier: str
    elsewhere: str
    question: str
    last: str


def condensed(earlier: str, last: str) -> str:
    """What the product searches for in the second turn."""
    return retrieval_query((Message(Role.USER, earlier), Message(Role.USER, last)))


SEARCHED_FOR: Mapping[str, Callable[[FollowUp], str]] = {
    "the question as it was": lambda one: one.question,
    "a follow-up, condensed": lambda one: condensed(one.earlier, one.last),
    "a follow-up, both turns": lambda one: f"{one.earlier}\n{one.last}",
    "a follow-up, last turn alone": lambda one: one.last,
    "a new topic, condensed": lambda one: condensed(one.elsewhere, one.question),
    "a new topic, both turns": lambda one: f"{one.elsewhere}\n{one.question}",
}
"""By the name in the table, in its order."""


def follow_ups(collection: EvaluationSet) -> list[FollowUp]:
    """Every query that names its article's title, after the last one of another passage that
    does; those of the first article, and those that have none before them, are left out.
    """
    made: list[FollowUp] = []
    named: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for id_, question in collection.queries.items():
        passages = frozenset(collection.relevant[id_])
        title = collection.corpus[min(passages)].title
        last = with_pronoun(question, title)
        if last is None:
            continue
        before = named.setdefault(title, [])
        earlier = next((text for text, held in reversed(before) if not held & passages), None)
        elsewhere = next((asked[-1][0] for other, asked in named.items() if other != title), None)
        if earlier is not None and elsewhere is not None:
            made.append(FollowUp(id_, earlier, elsewhere, question, last))
        before.append((question, passages))
    return made


def with_pronoun(question: str, title: str) -> str | None:
    """The question with a pronoun for its first mention of the title; None where it has none.

    None, too, where the title is part of a longer name or describes another word ("Warsaw
    Uprising", "Huguenot refugees"): nobody says "it" for that.
    """
    stem = re.escape(title.removesuffix("s"))
    mention = re.compile(rf"\b(?:the )?(?P<name>{stem}s?)(?P<owner>'s?)?(?!\w)", re.IGNORECASE)
    found = mention.search(question)
    if found is None:
        return None
    before, after = question[: found.start()], question[found.end() :]
    follows = re.match(r"\s+(\w+)", after)
    subject = not before or before.split()[-1].casefold() in _AUXILIARIES
    # "Normans" are they, a "crisis" is it.
    many = re.search(r"[^is]s$", found["name"]) is not None
    if found["owner"]:
        return f"{before}{'their' if many else 'its'}{after}"
    if follows and not _stands_alone_before(follows[1], subject=subject):
        return None
    pronoun = "it" if not many else "they" if subject else "them"
    return f"{before}{pronoun}{after}"


_AUXILIARIES = frozenset({"is", "are", "was", "were", "did", "do", "does", "can", "could", "will"})


def _stands_alone_before(word: str, *, subject: bool) -> bool:
    return word in ENGLISH.all or (subject and word.islower())


async def measure(
    collection: EvaluationSet,
    retrieval: Retrieval,
    *,
    names: Mapping[str, str],
    depth: int,
    advance: Callable[[float], None],
) -> dict[str, Quality]:
    """The mean quality of each of `SEARCHED_FOR`; `names` has the documents of chunk ids."""
    conversations = follow_ups(collection)
    qualities: dict[str, list[Quality]] = {way: [] for way in SEARCHED_FOR}
    for one in conversations:
        for way, text_of in SEARCHED_FOR.items():
            text = retrieval.fit_query(text_of(one))
            found = await retrieval.search(text, tenant=DEFAULT_TENANT, limit=depth)
            ranking = dict.fromkeys(names[chunk.chunk.chunk_id] for chunk in found.chunks)
            qualities[way].append(quality(list(ranking), collection.relevant[one.id]))
        advance(1 / len(conversations))
    return {way: mean(each) for way, each in qualities.items()}
