"""The support scorer: how much of a claim's words one window of the contexts holds.

Score = share of the claim's distinct content words in the best window of three consecutive
sentences of one chunk; a claim of several sentences gets the score of its weakest one. A number of
the claim that neither the contexts nor the question holds vetoes the claim. Windows never cross
chunks. The score sees no negation and no word order: a mismatch of negation is reported as a
warning. Measured agreement with people stands in EVAL.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragmetrics import numbercheck
from ragmetrics.claimfilter import ClaimType, bare, claim_type
from ragmetrics.numbercheck import NumberIndex
from ragmetrics.numbers import Number, numbers
from ragmetrics.sentences import units
from ragmetrics.text import clean, content_words, fold, spelled

SUPPORT_RULES = 1
WINDOW = 3
THRESHOLDS: dict[ClaimType, float] = {"assertion": 0.55, "inference": 0.45, "general": 0.55}
MIN_CONTENT = 3
USUAL_LENGTH = 20_000
_FLAGS: tuple[numbercheck.Verdict, ...] = ("fabricated", "derived", "rounded")

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|nobody|nothing)\b|n't\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Spans of its sentences, the sentences of each word as a bit mask, its numbers."""

    text: str
    spans: tuple[tuple[int, int], ...]
    masks: dict[str, int]
    numbers: NumberIndex


@dataclass(frozen=True, slots=True)
class Support:
    """One claim's verdict with its evidence.

    ``chunk`` is the place in the list of contexts, from 0.
    """

    supported: bool
    score: float
    chunk: int | None
    window: tuple[int, int] | None
    missing: tuple[str, ...]
    vetoing: tuple[str, ...]
    derived: tuple[str, ...]
    rounded: tuple[str, ...]
    negation_mismatch: bool

    @property
    def strength(self) -> float:
        """The score, 0.0 when a number vetoes: what the mean and the ranking use."""
        return 0.0 if self.vetoing else self.score


def prepare(text: str) -> Chunk:
    """A chunk cut into sentences, words and numbers indexed; the last 512 usual ones are kept."""
    return _known_chunk(text) if len(text) <= USUAL_LENGTH else _chunk(text)


def _chunk(text: str) -> Chunk:
    text = clean(text)
    found = units(text)
    masks: dict[str, int] = {}
    for place, unit in enumerate(found):
        bit = 1 << place
        for word in set(content_words(fold(text[unit.start : unit.end]))):
            masks[word] = masks.get(word, 0) | bit
    spans = tuple((unit.start, unit.end) for unit in found)
    return Chunk(text, spans, masks, numbercheck.index(text))


_known_chunk = lru_cache(maxsize=512)(_chunk)


def best_window(wanted: Sequence[str], chunk: Chunk, size: int = WINDOW) -> tuple[int, int]:
    """How many of the distinct words the best window holds, and the first sentence of that window.

    Every word is a mask of sentences; widened by two it is the mask of the windows that hold it.
    The masks are added up in bit-sliced counters, so the cost is a few operations on long integers
    per word.
    """
    counters: list[int] = []
    for word in wanted:
        carry = chunk.masks.get(word, 0)
        for shift in range(1, size):
            carry |= chunk.masks.get(word, 0) >> shift
        for level, counter in enumerate(counters):
            if not carry:
                break
            counters[level], carry = counter ^ carry, counter & carry
        if carry:
            counters.append(carry)
    best, count = -1, 0
    for level in reversed(range(len(counters))):
        kept = best & counters[level]
        if kept:
            best, count = kept, count | (1 << level)
    return (count, (best & -best).bit_length() - 1) if count else (0, 0)


def merged(chunks: Sequence[Chunk]) -> NumberIndex:
    """The numbers of all chunks in one index."""
    together = NumberIndex()
    for chunk in chunks:
        together.add(chunk.numbers)
    return together


def _distinct(found: Iterable[Number]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(number.text.strip() for number in found))


def _window(chunk: Chunk, first: int, size: int) -> tuple[int, int]:
    last = min(first + size, len(chunk.spans)) - 1
    return chunk.spans[first][0], chunk.spans[last][1]


def _has_negation(text: str) -> bool:
    return _NEGATION.search(text.replace("’", "'")) is not None


@dataclass(frozen=True, slots=True)
class _Hit:
    """Where the words of one sentence are held best: ``chunk`` is -1 when no chunk holds any."""

    wanted: dict[str, str]
    count: int = 0
    chunk: int = -1
    first: int = 0

    @property
    def score(self) -> float:
        return self.count / len(self.wanted)


def _best(wanted: dict[str, str], chunks: Sequence[Chunk], size: int) -> _Hit:
    """The best window over all chunks; the earliest wins a tie."""
    best, stems = _Hit(wanted), tuple(wanted)
    for place, chunk in enumerate(chunks):
        count, first = best_window(stems, chunk, size)
        if count > best.count:
            best = _Hit(wanted, count, place, first)
            if count == len(wanted):
                break
    return best


def _sentences(plain: str, lead: str) -> list[dict[str, str]]:
    """Stems and words of each sentence of a claim; sentences without any are left out."""
    parts = [plain[unit.start : unit.end] for unit in units(plain)]
    if lead:
        parts = [f"{lead} {plain}"]
    return [found for part in parts if (found := spelled(fold(part)))]


def _window_words(chunk: Chunk, first: int, size: int) -> set[str]:
    bits = ((1 << size) - 1) << first
    return {word for word, mask in chunk.masks.items() if mask & bits}


def score_claim(
    claim: str,
    chunks: Sequence[Chunk],
    *,
    question: NumberIndex | None = None,
    known: NumberIndex | None = None,
    kind: ClaimType | None = None,
    lead: str = "",
    threshold: float | None = None,
    size: int = WINDOW,
) -> Support | None:
    """Check one claim against chunks; None when it holds no content word.

    Args:
        claim: the claim's text; citation marks in it are ignored.
        chunks: prepared contexts; none gives score 0 and "not supported".
        question: numbers of the question, which an answer may repeat.
        known: the numbers of all chunks together, when the caller has them already.
        kind: the claim's type; found from the text when not given.
        lead: words put before a short list item; its numbers are not checked.
        threshold: instead of the type's own (0.55 assertion and general, 0.45 inference).
        size: sentences in a window.
    """
    plain = bare(clean(claim))
    sentences = _sentences(plain, lead)
    if not sentences:
        return None
    weakest = min((_best(wanted, chunks, size) for wanted in sentences), key=lambda hit: hit.score)
    stated = numbers(plain)
    verdicts = numbercheck.judge(stated, known or merged(chunks), question) if stated else []
    by = {
        flag: _distinct(n for n, verdict in zip(stated, verdicts, strict=True) if verdict == flag)
        for flag in _FLAGS
    }
    needed = THRESHOLDS[kind or claim_type(plain)] if threshold is None else threshold
    if sum(map(len, sentences)) < MIN_CONTENT:
        needed = 1.0
    chunk = chunks[weakest.chunk] if weakest.chunk >= 0 else None
    window = _window(chunk, weakest.first, size) if chunk else None
    present = _window_words(chunk, weakest.first, size) if chunk else set()
    return Support(
        supported=weakest.score >= needed and not by["fabricated"],
        score=weakest.score,
        chunk=weakest.chunk if chunk else None,
        window=window,
        missing=tuple(word for stem, word in weakest.wanted.items() if stem not in present),
        vetoing=by["fabricated"],
        derived=by["derived"],
        rounded=by["rounded"],
        negation_mismatch=bool(
            chunk and window and _has_negation(plain) != _has_negation(chunk.text[slice(*window)])
        ),
    )
