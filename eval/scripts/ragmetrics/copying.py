"""Spans that an answer copies word for word from its contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragmetrics.text import fold, normalise, word_spans

MIN_WORDS = 5
MAX_PLACES = 8
"""Places of the same five words in one context that are tried; more are boilerplate."""


@dataclass(frozen=True, slots=True)
class CopiedSpan:
    """``answer[start:end]`` stands word for word in context ``chunk`` (from 0)."""

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


def _places(words: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for start in range(len(words) - MIN_WORDS + 1):
        found = places.setdefault(tuple(words[start : start + MIN_WORDS]), [])
        if len(found) < MAX_PLACES:
            found.append(start)
    return places


@lru_cache(maxsize=1024)
def _source(text: str) -> tuple[list[str], dict[tuple[str, ...], list[int]]]:
    """The words of a context and where each five of them stand; kept for the last 1,024 texts."""
    words = [word for word, _, _ in word_spans(fold(text))]
    return words, _places(words)


def _shared(one: Sequence[str], start: int, other: Sequence[str], place: int) -> int:
    length = 0
    limit = min(len(one) - start, len(other) - place)
    while length < limit and one[start + length] == other[place + length]:
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
    found = [_source(text) for text in contexts]
    sources, indexes = [source for source, _ in found], [index for _, index in found]
    spans: list[CopiedSpan] = []
    start = 0
    while start <= len(words) - MIN_WORDS:
        key = tuple(words[start : start + MIN_WORDS])
        length, chunk = max(
            (
                (_shared(words, start, sources[chunk], place), -chunk)
                for chunk, index in enumerate(indexes)
                for place in index.get(key, ())
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
