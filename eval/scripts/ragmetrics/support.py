"""Claim support for a verdict: the word share of ``claims``, weighed with eight other features.

English claims are judged by a frozen logistic regression whose coefficients are in
``support_model.py`` (bench/research/train_support.py writes it). Claims in another language are
judged by the word share alone, against the threshold of the language. A number that no passage
has vetoes either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragmetrics.claims import (
    AnswerClaim,
    ClaimSupport,
    ClaimType,
    PreparedChunk,
    bare,
    best_share,
    claim_words,
    score_claim,
)
from ragmetrics.support_model import COEFFICIENTS, INTERCEPT, THRESHOLD
from ragmetrics.text import numbers
from ragmetrics.text.content import content_stems
from ragmetrics.text.numbers import Number, NumberIndex
from ragmetrics.text.sentences import units
from ragmetrics.text.words import clean, fold

FEATURES = (
    "weakest_share",
    "one_sentence_share",
    "anywhere_share",
    "missing_words",
    "words",
    "unknown_names",
    "numbers_outside_window",
    "negation",
    "inference",
)
"""In the order of the coefficients; ``features`` says what each one is."""


@dataclass(frozen=True, slots=True)
class LexicalClaim:
    """A claim's verdict: ``words`` is the word-containment evidence behind it.

    ``strength``: the model's probability in English, the word share elsewhere; 0.0 under a veto.
    """

    supported: bool
    strength: float
    words: ClaimSupport
    names: tuple[str, ...] = ()


_NAME = re.compile(r"\b[A-Z][\w'’&-]*(?:\s+[A-Z][\w'’&-]*)*")


def unknown_names(claim: str, chunks: Sequence[PreparedChunk]) -> tuple[str, ...]:
    """Capitalised names of a claim of which no chunk holds a word, in order, each once.

    Evidence for a reader, and no verdict. The first word of a sentence is left out: it is
    capitalised anyway.
    """
    language = chunks[0].language if chunks else None
    plain = bare(clean(claim))
    names: dict[str, None] = {}
    for unit in units(plain):
        sentence = plain[unit.start : unit.end]
        first = sentence.split(maxsplit=1)[:1]
        rest = sentence[sentence.index(first[0]) + len(first[0]) :] if first else ""
        for match in _NAME.finditer(rest):
            stems = content_stems(fold(match[0]), language)
            if stems and not any(stem in chunk.masks for stem in stems for chunk in chunks):
                names.setdefault(match[0])
    return tuple(names)


def _probability(values: Sequence[float]) -> float:
    total = sum(COEFFICIENTS[name] * value for name, value in zip(FEATURES, values, strict=True))
    return 1 / (1 + math.exp(-(total + INTERCEPT)))


def features(
    claim: str,
    chunks: Sequence[PreparedChunk],
    words: ClaimSupport,
    *,
    question: NumberIndex | None = None,
    kind: ClaimType | None = None,
    lead: str = "",
    names: Sequence[str] = (),
) -> tuple[float, ...]:
    """The nine features of an English claim whose word evidence is known.

    Shares are of its distinct content words: in the best window of its weakest sentence, in
    the best single sentence of a chunk, anywhere in the chunks. Then the
    root of the number of words that the weakest sentence's window lacks, the logarithm of the
    number of words; and as 0 or 1, or a share: names of which no chunk holds a word, the claim's
    numbers that its window (and the question) lacks, a negation that the window lacks, and the
    words of an inference.
    """
    read = claim_words(claim, lead)
    stems = {stem: word for sentence in read.sentences for stem, word in sentence.items()}
    anywhere = sum(any(stem in chunk.masks for chunk in chunks) for stem in stems)
    return (
        words.score,
        best_share(stems, chunks, 1),
        anywhere / len(stems),
        math.sqrt(len(words.missing)),
        math.log(len(stems)),
        float(bool(names)),
        _outside(read.stated, chunks, words, question),
        float(words.negated and not words.window_negated),
        float((kind or read.kind) == "inference"),
    )


def _outside(
    stated: Sequence[Number],
    chunks: Sequence[PreparedChunk],
    words: ClaimSupport,
    question: NumberIndex | None,
) -> float:
    """The share of the claim's numbers that neither its window nor the question holds."""
    if not stated:
        return 0.0
    keys = set(question.keys) if question else set()
    if words.chunk is not None and words.window is not None:
        keys |= numbers.index(chunks[words.chunk].text[slice(*words.window)]).keys
    return sum(not number.keys & keys for number in stated) / len(stated)


def judge(
    claim: str,
    chunks: Sequence[PreparedChunk],
    *,
    question: NumberIndex | None = None,
    context_numbers: NumberIndex | None = None,
    kind: ClaimType | None = None,
    lead: str = "",
) -> LexicalClaim | None:
    """One claim's verdict; None when it holds no content word. Arguments as ``score_claim``."""
    words = score_claim(
        claim,
        chunks,
        question=question,
        context_numbers=context_numbers,
        kind=kind,
        lead=lead,
    )
    if words is None:
        return None
    names = unknown_names(claim, chunks) if words.missing else ()
    if chunks and chunks[0].language is not None:
        return LexicalClaim(words.supported, words.strength, words, names)
    if words.chunk is None or words.vetoing:
        return LexicalClaim(False, 0.0, words, names)
    values = features(claim, chunks, words, question=question, kind=kind, lead=lead, names=names)
    probability = _probability(values)
    return LexicalClaim(probability >= THRESHOLD, probability, words, names)


def pieces(chunk: PreparedChunk, words_at_most: int) -> list[str]:
    """The chunk in runs of whole sentences of at most so many words (a longer sentence is whole):
    what a model with a short input can read.
    """
    cut: list[str] = []
    start, end, size = 0, 0, 0
    for left, right in chunk.spans:
        length = len(chunk.text[left:right].split())
        if size and size + length > words_at_most:
            cut.append(chunk.text[start:end])
            size = 0
        if not size:
            start = left
        end, size = right, size + length
    return [*cut, chunk.text[start:end]] if size else cut


class SupportModel(Protocol):
    """Says how likely passages support each claim, in [0, 1]: a model of the user's own."""

    @property
    def window_words(self) -> int:
        """The longest window of a passage that it reads, in words."""

    def __call__(
        self, claims: Sequence[AnswerClaim], passages: Sequence[str], question: str, answer: str
    ) -> list[float]:
        """A probability for each claim of the answer."""


MODEL_THRESHOLD = 0.5
"""From which its probability is a verdict of support."""


def ask(
    model: SupportModel,
    claims: Sequence[AnswerClaim],
    chunks: Sequence[PreparedChunk],
    question: str,
    answer: str,
) -> dict[AnswerClaim, float]:
    """The model's probability for each claim, in [0, 1]; the chunks are cut as it reads them."""
    passages = [text for chunk in chunks for text in pieces(chunk, model.window_words)]
    chances = model(claims, passages, clean(question), answer)
    return dict(zip(claims, chances, strict=True))
