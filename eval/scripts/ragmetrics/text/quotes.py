"""Checks whether a text contains a quote, so that a judge's quotes need not be believed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from ragmetrics.text.words import content_words, fold, normalise, word_spans, words

QUOTE_RULES = 1

_OVERLAP = 0.9
"""Share of the quote's words that one window of the text must hold."""

_GAP = re.compile(r"\.{3,}|…|\[\s*(?:\.{3}|…)\s*\]")


def quoted(quote: str, text: str) -> bool:
    """Return True when ``text`` contains the quote, normalised, or 90 % of its words in one window.

    Both are folded (case, quotation marks, blanks). The window has as many words as the quote. A
    quote with gaps ("… a … b") is found when each of its pieces is. False for a quote without a
    content word: it could stand anywhere.
    """
    pieces = [piece for piece in _GAP.split(quote) if words(fold(piece))]
    if not any(content_words(fold(piece)) for piece in pieces):
        return False
    flat = _flat(text)
    plain = [" ".join(fold(piece).split()) for piece in pieces]
    rest = [piece for piece in plain if not _whole_words(piece.strip("\"'.,;: "), flat)]
    if not rest:
        return True
    passage_words = words(flat)
    return all(_near(words(piece), passage_words) for piece in rest)


@lru_cache(maxsize=64)
def _flat(text: str) -> str:
    """Folded, on one line. A judge quotes the same few passages again and again."""
    return " ".join(fold(text).split())


def _whole_words(bare: str, flat: str) -> bool:
    """Substring that neither begins nor ends within a word: "15 days" does not hold "5 days"."""
    start = flat.find(bare)
    while bare and start >= 0:
        end = start + len(bare)
        before = start > 0 and flat[start - 1].isalnum() and bare[0].isalnum()
        after = end < len(flat) and flat[end].isalnum() and bare[-1].isalnum()
        if not (before or after):
            return True
        start = flat.find(bare, start + 1)
    return False


def _near(quote_words: list[str], passage_words: list[str]) -> bool:
    """One window of the words holds at least 90 % of the wanted ones, repeats counted.

    The window slides by one word; only the two counts that change are looked at.
    """
    size = len(quote_words)
    missing = Counter(quote_words)
    lacking = size
    for index, word in enumerate(passage_words):
        lacking -= missing[word] > 0
        missing[word] -= 1
        if index >= size:
            old = passage_words[index - size]
            missing[old] += 1
            lacking += missing[old] > 0
        if size - lacking >= _OVERLAP * size:
            return True
    return False


MIN_WORDS = 5

_MAX_OCCURRENCES = 8
"""Occurrences of the same five words in one context that are tried; more are boilerplate."""


@dataclass(frozen=True, slots=True)
class CopiedSpan:
    """A span ``answer[start:end]`` copied word for word from context ``chunk`` (from 0)."""

    start: int
    end: int
    words: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Copying:
    """``coverage``: share of the answer's words inside copied spans; ``longest`` in words."""

    coverage: float
    longest: int
    spans: tuple[CopiedSpan, ...]


def _fives(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each five words in a row."""
    return zip(*(words[skipped:] for skipped in range(MIN_WORDS)), strict=False)


def _starts(words: Sequence[str], fives: Set[tuple[str, ...]]) -> dict[tuple[str, ...], list[int]]:
    """Where each of some five words begin in a context, at most so many times."""
    starts_of: dict[tuple[str, ...], list[int]] = {}
    for start, five in enumerate(_fives(words)):
        if five in fives:
            starts = starts_of.setdefault(five, [])
            if len(starts) < _MAX_OCCURRENCES:
                starts.append(start)
    return starts_of


@lru_cache(maxsize=1024)
def _source(text: str) -> list[str]:
    """The words of a context; kept for the last 1,024 texts."""
    folded = fold(text)
    if folded.isascii():  # then words have the same bounds, and are found quicker without places
        return words(folded)
    return [word for word, _, _ in word_spans(folded)]


def _shared(
    first: Sequence[str], first_start: int, second: Sequence[str], second_start: int
) -> int:
    length = 0
    limit = min(len(first) - first_start, len(second) - second_start)
    while length < limit and first[first_start + length] == second[second_start + length]:
        length += 1
    return length


def copying(answer: str, contexts: Sequence[str]) -> Copying | None:
    """Greedy from the left: at each word the longest span of at least five words of one context.

    Words are compared after folding; punctuation and case do not matter. None for an answer without
    a word.
    """
    normal = normalise(answer)
    tokens = word_spans(normal.text)
    if not tokens:
        return None
    words = [word for word, _, _ in tokens]
    sources, fives = [_source(text) for text in contexts], set(_fives(words))
    indexes = [_starts(source, fives) for source in sources]
    spans: list[CopiedSpan] = []
    start = 0
    while start <= len(words) - MIN_WORDS:
        key = tuple(words[start : start + MIN_WORDS])
        length, chunk = max(
            (
                (_shared(words, start, sources[chunk], source_start), -chunk)
                for chunk, index in enumerate(indexes)
                for source_start in index.get(key, ())
            ),
            default=(0, 0),
        )
        if length:
            first, last = normal.span(tokens[start][1], tokens[start + length - 1][2])
            spans.append(CopiedSpan(first, last, length, -chunk))
            start += length
        else:
            start += 1
    copied = sum(span.words for span in spans)
    return Copying(
        copied / len(words), max((span.words for span in spans), default=0), tuple(spans)
    )
