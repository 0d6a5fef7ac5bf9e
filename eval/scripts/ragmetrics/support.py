"""Claim support for a verdict: the word share of ``claims``, weighed with six other features.

English claims are judged by a frozen logistic regression whose coefficients are in
``support_model.py`` (bench/research/train_support.py writes it). Claims in another language are
judged by the word share alone, against the threshold of the language. A number that no passage
has vetoes either; in English, so does a *not* that only the claim or only its sentence has.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, takewhile
from typing import Protocol

from ragmetrics.claims import (
    AnswerClaim,
    ClaimSupport,
    ClaimType,
    ClaimWords,
    bare,
    claim_words,
    score_claim,
)
from ragmetrics.support_model import COEFFICIENTS, INTERCEPT, STRENGTHS, THRESHOLD
from ragmetrics.text.content import content_stems
from ragmetrics.text.negation import is_opposite
from ragmetrics.text.numbers import Number, NumberIndex, is_a_fall
from ragmetrics.text.opposites import says_opposite
from ragmetrics.text.sentences import units
from ragmetrics.text.words import clean, fold
from ragmetrics.windows import WINDOW, PreparedChunk, best_share, numbers_of_window

FEATURES = (
    "weakest_share",
    "one_sentence_share",
    "anywhere_share",
    "words",
    "unknown_names",
    "names_outside_window",
    "numbers_outside_window",
)
"""The features in the order of the coefficients; ``features`` describes them."""


@dataclass(frozen=True, slots=True)
class LexicalClaim:
    """A claim's verdict: ``words`` is the word-containment evidence behind it.

    ``strength``: the model's probability in English, the word share elsewhere; 0.0 under a veto.
    ``opposite``: a sentence with the claim's words says the opposite, which vetoes it.
    """

    supported: bool
    strength: float
    words: ClaimSupport
    names: tuple[str, ...] = ()
    opposite: bool = False

    @property
    def is_unsure(self) -> bool:
        """Whether the strength is too close to the threshold for a verdict."""
        return UNSURE[0] <= self.strength < UNSURE[1]


UNSURE = (0.40, 0.55)
"""Strengths, the upper end excluded, at which a claim's support is uncertain."""

_CAPITAL = re.compile(r"(?<=\s)[A-Z][\w'’-]*")

_NAME = re.compile(r"\b[A-Z][\w'’&-]*(?:\s+[A-Z][\w'’&-]*)*")


def unknown_names(claim: str, chunks: Sequence[PreparedChunk]) -> tuple[str, ...]:
    """Capitalised names of a claim that share no word with any chunk, in order, each once.

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


BINS = 10
"""Equal steps of strength by which texts are compared with those of the training."""


def distance(counts: Sequence[int]) -> tuple[float, str]:
    """Return how far strengths are from those of the nearest set that the model was trained on.

    Args:
        counts: English claims by strength, in 10 equal steps; at least one claim.

    Returns:
        The Kolmogorov-Smirnov distance at the ends of the steps, from 0 (equal) to 1, and the
        set's title.
    """
    total, below = sum(counts), [*accumulate(counts)]
    return min(
        (
            max(abs(ours / total - theirs) for ours, theirs in zip(below, shares, strict=False)),
            title,
        )
        for title, shares in STRENGTHS.items()
    )


def _probability(values: Sequence[float]) -> float:
    total = sum(COEFFICIENTS[name] * value for name, value in zip(FEATURES, values, strict=True))
    return 1 / (1 + math.exp(-(total + INTERCEPT)))


def features(
    claim: str,
    chunks: Sequence[PreparedChunk],
    words: ClaimSupport,
    *,
    question: NumberIndex | None = None,
    lead: str = "",
    names: Sequence[str] = (),
) -> tuple[float, ...]:
    """The seven features of an English claim whose word evidence is known.

    Shares are of its distinct content words: in the best window of its weakest sentence, in
    the best single sentence of a chunk, anywhere in the chunks. Then the logarithm of the number
    of words; as 0 or 1, a name of which no chunk holds a word; and the shares of its capitalised
    words and of its numbers that its window (for numbers: and the question) lacks.
    """
    read = claim_words(claim, lead)
    stems = {stem: word for sentence in read.sentences for stem, word in sentence.items()}
    anywhere = sum(
        stem in words.restated or any(stem in chunk.masks for chunk in chunks) for stem in stems
    )
    return (
        words.score,
        best_share(stems, chunks, 1, read.amounts if words.restated else ()),
        anywhere / len(stems),
        math.log(len(stems)),
        float(bool(names)),
        _names_outside(read, words),
        _outside(read.stated, chunks, words, question),
    )


def _names_outside(read: ClaimWords, words: ClaimSupport) -> float:
    """The share of the claim's capitalised words, but a first one, that its window lacks."""
    capital = {fold(word) for word in _CAPITAL.findall(read.plain)} if words.missing else set()
    named = [word for stems in read.sentences for word in stems.values() if word in capital]
    return sum(word in words.missing for word in named) / len(named) if named else 0.0


def _outside(
    stated: Sequence[Number],
    chunks: Sequence[PreparedChunk],
    words: ClaimSupport,
    question: NumberIndex | None,
) -> float:
    """The share of the claim's numbers that neither its window nor the question holds."""
    if not stated:
        return 0.0
    keys = question.keys if question else frozenset()
    held = NumberIndex()
    if words.chunk is not None and words.window is not None:
        held = numbers_of_window(chunks[words.chunk], words.window)
    missing = (
        number.keys.isdisjoint(held.keys)
        and number.keys.isdisjoint(keys)
        and not is_a_fall(number, held)
        for number in stated
    )
    return sum(missing) / len(stated)


def judge(
    claim: str,
    chunks: Sequence[PreparedChunk],
    *,
    question: NumberIndex | None = None,
    context_numbers: NumberIndex | None = None,
    kind: ClaimType | None = None,
    lead: str = "",
) -> LexicalClaim | None:
    """One claim's verdict; None when it has no content word. Arguments as ``score_claim``."""
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
    if is_denied(claim, chunks[words.chunk], words, lead):
        return LexicalClaim(False, 0.0, words, names, opposite=True)
    values = features(claim, chunks, words, question=question, lead=lead, names=names)
    probability = _probability(values)
    return LexicalClaim(probability >= THRESHOLD, probability, words, names)


def is_denied(claim: str, chunk: PreparedChunk, words: ClaimSupport, lead: str) -> bool:
    """Whether the sentence of the window with most of the claim's words says its opposite."""
    if words.window is None:
        return False
    text = f"{lead} {claim_words(claim, lead).plain}"
    if (words.negated or words.window_negated) and is_opposite(text, _sentences(chunk, words)):
        return True
    nearest = _nearest_sentences(claim, chunk, words, lead)
    return bool(nearest) and all(says_opposite(text, sentence) for sentence in nearest)


_WINDOW_BITS = (1 << WINDOW) - 1

_MOST_MISSING = 0.15
"""Share of a claim's words that its window may lack when it says the opposite."""


def _nearest_sentences(
    claim: str, chunk: PreparedChunk, words: ClaimSupport, lead: str
) -> list[str]:
    """The sentences of the window with most of the claim's words, if one has nearly all of them.

    None for a claim that a sentence contains letter by letter.
    """
    sentences = claim_words(claim, lead).sentences
    if len(sentences) != 1 or words.window is None:
        return []
    stems, first = sentences[0], bisect_left(chunk.spans, (words.window[0], 0))
    least = len(stems) - max(1, _MOST_MISSING * len(stems))
    if len(words.missing) > len(stems) - least:
        return []
    counts = [0] * WINDOW
    for stem in stems:
        mask = chunk.masks.get(stem, 0) >> first & _WINDOW_BITS
        while mask:
            lowest = mask & -mask
            counts[lowest.bit_length() - 1] += 1
            mask ^= lowest
    most = max(counts)
    if most < least:
        return []
    nearest = [
        chunk.text[slice(*chunk.spans[first + place])]
        for place, count in enumerate(counts)
        if count == most
    ]
    return [] if any(claim.rstrip(". ") in sentence for sentence in nearest) else nearest


def _sentences(chunk: PreparedChunk, words: ClaimSupport) -> list[str]:
    """The sentences of the claim's window."""
    start, end = words.window or (0, 0)
    first = bisect_left(chunk.spans, (start, 0))
    spans = takewhile(lambda span: span[1] <= end, islice(chunk.spans, first, None))
    return [chunk.text[a:b] for a, b in spans]


def pieces(chunk: PreparedChunk, words_at_most: int) -> list[str]:
    """Cut a chunk into runs of whole sentences of at most so many words, for a model with a short
    input. A longer sentence stays whole.
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
    def identity(self) -> str:
        """Name and version of the model; a run records them with its scores."""

    @property
    def window_words(self) -> int:
        """The longest window of a passage that it reads, in words."""

    def __call__(
        self, claims: Sequence[AnswerClaim], passages: Sequence[str], question: str, answer: str
    ) -> list[float]:
        """A probability for each claim of the answer."""


MODEL_THRESHOLD = 0.5
"""The probability from which the model's verdict is support."""


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
