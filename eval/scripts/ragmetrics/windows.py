"""Prepares chunks for claims, and finds the window with most words of a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ragmetrics.text import numbers as text_numbers
from ragmetrics.text.content import content_stems
from ragmetrics.text.numbers import Number, NumberIndex
from ragmetrics.text.sentences import units
from ragmetrics.text.words import clean, fold

WINDOW = 3

_USUAL_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk's sentence spans, the sentences of each word as a bit mask, and its numbers."""

    text: str
    spans: tuple[tuple[int, int], ...]
    masks: dict[str, int]
    numbers: NumberIndex
    language: str | None = None


def prepare(text: str, language: str | None = None) -> PreparedChunk:
    """Cut a chunk into sentences and index its words and numbers; the last 512 usual ones are kept.

    Args:
        text: the chunk. language: how its words are cut, and those of the claims compared with it;
        English when not given.
    """
    make = _known_chunk if len(text) <= _USUAL_LENGTH else _chunk
    return make(text, None if language == "en" else language)


def _chunk(text: str, language: str | None) -> PreparedChunk:
    text = clean(text)
    sentences = units(text)
    masks: dict[str, int] = {}
    for index, unit in enumerate(sentences):
        bit = 1 << index
        for word in content_stems(fold(text[unit.start : unit.end]), language):
            masks[word] = masks.get(word, 0) | bit
    spans = tuple((unit.start, unit.end) for unit in sentences)
    return PreparedChunk(text, spans, masks, text_numbers.index(text, language), language)


_known_chunk = lru_cache(maxsize=512)(_chunk)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of a claim: the stems of its words, and the numbers that they stand for.

    ``figure``: the stems without those of the unit.
    """

    stems: frozenset[str]
    figure: frozenset[str]
    numbers: tuple[Number, ...]

    def stated(self, contexts: NumberIndex) -> frozenset[str]:
        """The stems that contexts state in other words; the unit only with the amount."""
        if not all(text_numbers.is_stated(number, contexts) for number in self.numbers):
            return frozenset()
        by_value = any(
            number.dimensions and not text_numbers.is_same_amount(number, contexts)
            for number in self.numbers
        )
        return self.figure if by_value else self.stems


def best_window(
    claim_words: Sequence[str], chunk: PreparedChunk, size: int = WINDOW
) -> tuple[int, int]:
    """Return how many of the distinct words the best window has, and the window's first sentence.

    Every word is a mask of sentences; widened by two it is the mask of the windows that hold it.
    The masks are added up in bit-sliced counters, so the cost is a few operations on long integers
    per word.
    """
    return _best_of([mask for word in claim_words if (mask := chunk.masks.get(word))], size)


def _best_of(masks: Sequence[int], size: int) -> tuple[int, int]:
    counters: list[int] = []
    for mask in masks:
        carry = mask
        for shift in range(1, size):
            carry |= mask >> shift
        for level, counter in enumerate(counters):
            if not carry:
                break
            counters[level], carry = counter ^ carry, counter & carry
        if carry:
            counters.append(carry)
    best, count = -1, 0
    for level in reversed(range(len(counters))):
        narrowed = best & counters[level]
        if narrowed:
            best, count = narrowed, count | (1 << level)
    return (count, (best & -best).bit_length() - 1) if count else (0, 0)


def merged(chunks: Sequence[PreparedChunk]) -> NumberIndex:
    """Return the numbers of all chunks in one index."""
    together = NumberIndex()
    for chunk in chunks:
        together.add(chunk.numbers)
    return together


def window_span(chunk: PreparedChunk, first: int, size: int) -> tuple[int, int]:
    """Return the span of a window in its chunk."""
    last = min(first + size, len(chunk.spans)) - 1
    return chunk.spans[first][0], chunk.spans[last][1]


def window_bits(first: int, size: int) -> int:
    """Return the sentences of a window as a bit mask."""
    return ((1 << size) - 1) << first


@dataclass(frozen=True, slots=True)
class WindowHit:
    """The window with most words of a sentence: ``chunk`` is -1 when no chunk holds any."""

    sentence: Mapping[str, str]
    count: int = 0
    chunk: int = -1
    first: int = 0
    restated: frozenset[str] = frozenset()

    @property
    def score(self) -> float:
        return (self.count + len(self.restated)) / len(self.sentence)


def _best(sentence: Mapping[str, str], chunks: Sequence[PreparedChunk], size: int) -> WindowHit:
    """The best window over all chunks; the earliest wins a tie."""
    best = WindowHit(sentence)
    for index, chunk in enumerate(chunks):
        masks = [mask for stem in sentence if (mask := chunk.masks.get(stem))]
        if len(masks) <= best.count:
            continue
        count, first = _best_of(masks, size)
        if count > best.count:
            best = WindowHit(sentence, count, index, first)
            if count == len(sentence):
                break
    return best


def best_hit(
    sentence: Mapping[str, str],
    chunks: Sequence[PreparedChunk],
    size: int,
    amounts: Sequence[Amount] = (),
) -> WindowHit:
    """Return the window with most words of a sentence, and those of amounts that it restates."""
    return _with_amounts(_best(sentence, chunks, size), chunks, size, amounts)


def best_share(
    sentence: Mapping[str, str],
    chunks: Sequence[PreparedChunk],
    size: int,
    amounts: Sequence[Amount] = (),
) -> float:
    """Return the largest share of the distinct words that one window of the chunks contains.

    Words of the ``amounts`` count as well when the window states these in other words.
    """
    return best_hit(sentence, chunks, size, amounts).score


def _with_amounts(
    hit: WindowHit, chunks: Sequence[PreparedChunk], size: int, amounts: Sequence[Amount]
) -> WindowHit:
    """The hit with the words of amounts that its window states in other words: 2 kg as 2,000 g."""
    if hit.chunk < 0 or hit.count == len(hit.sentence) or not amounts:
        return hit
    chunk, bits = chunks[hit.chunk], window_bits(hit.first, size)
    missing = {stem for stem in hit.sentence if not chunk.masks.get(stem, 0) & bits}
    doubtful = [amount for amount in amounts if not missing.isdisjoint(amount.stems)]
    if not doubtful:
        return hit
    text = chunk.text[slice(*window_span(chunk, hit.first, size))]
    held = _known_amounts(text, chunk.language)
    restated = {stem for amount in doubtful for stem in missing & amount.stated(held)}
    return replace(hit, restated=frozenset(restated)) if restated else hit


def numbers_of_window(chunk: PreparedChunk, window: tuple[int, int]) -> NumberIndex:
    """Return the numbers of a window of a chunk; the last 256 are kept."""
    return _known_index(chunk.text[slice(*window)], chunk.language)


_known_index = lru_cache(maxsize=256)(text_numbers.index)
_known_amounts = lru_cache(maxsize=256)(text_numbers.index_of_amounts)
