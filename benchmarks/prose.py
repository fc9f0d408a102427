"""Texts to measure with: real sentences in an order of our own, the same in every run."""

from __future__ import annotations

import io
import random
import re
from array import array
from pydoc_data.topics import topics

import numpy as np
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from privategpt.domain.ports import Vector

SENTENCES_PER_PARAGRAPH = 6
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_LINE_CHARACTERS = 90


class Prose:
    """Sentences of Python's own language reference, which every Python carries, drawn at random.

    Embedding costs what its tokens cost, so the texts must have the words and the lengths of
    real ones; what they say does not matter.
    """

    def __init__(self, seed: int = 20_000) -> None:
        self._random = random.Random(seed)  # noqa: S311 - benchmark data
        self._numbers = np.random.default_rng(seed)
        whole = " ".join(" ".join(text.split()) for text in topics.values())
        self._sentences = [text for text in _SENTENCE_END.split(whole) if _is_prose(text)]

    def sentence(self) -> str:
        """Any of them, of 40 to 300 characters."""
        return self._random.choice(self._sentences)

    def question(self) -> str:
        """A question of about a dozen words that no other is likely to equal."""
        words = [word for _ in range(2) for word in self.sentence().split()]
        start = self._random.randrange(max(1, len(words) - 9))
        return f"What is said about {' '.join(words[start : start + 9])}?"

    def text(self, words: int) -> str:
        """About that many words."""
        found: list[str] = []
        while len(found) < words:
            found += self.sentence().split()
        return " ".join(found[:words])

    def document(self, size_bytes: int) -> str:
        """Paragraphs of at least that many bytes together, in ASCII."""
        paragraphs: list[str] = []
        left = size_bytes
        while left > 0:
            paragraph = " ".join(self.sentence() for _ in range(SENTENCES_PER_PARAGRAPH))
            paragraphs.append(paragraph)
            left -= len(paragraph) + 2
        return "\n\n".join(paragraphs) + "\n"

    def pdf(self, pages: int, characters_per_page: int) -> bytes:
        """A PDF with as many pages of text."""
        written = io.BytesIO()
        canvas = Canvas(written, pagesize=A4, invariant=True)
        for _ in range(pages):
            lines = canvas.beginText(50, 800)
            lines.setFont("Times-Roman", 10)
            text = self.document(characters_per_page)
            for start in range(0, len(text), _LINE_CHARACTERS):
                lines.textLine(text[start : start + _LINE_CHARACTERS].replace("\n", " "))
            canvas.drawText(lines)
            canvas.showPage()
        canvas.save()
        return written.getvalue()

    def vector(self, dimensions: int) -> Vector:
        """A random unit vector."""
        values = self._numbers.standard_normal(dimensions)
        unit = (values / np.linalg.norm(values)).astype(np.float32)
        return array("f", unit.tobytes())


def _is_prose(text: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in text)
    return text.isascii() and 40 <= len(text) <= 300 and letters > 0.85 * len(text)
