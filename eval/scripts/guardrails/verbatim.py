"""How much of an output is copied word for word from the contexts.

Greedy, left to right: at each word of the output the longest run of at least `MIN_SPAN` words that
also stands in one context is taken. Words are compared folded (case, accents, punctuation gone).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from guardrails.normalise import fold, words

MIN_SPAN = 5  # words
_PLACES = 8  # occurrences of a word group in the contexts that are followed up


@dataclass(frozen=True)
class CopiedSpan:
    """`words` of the output's words in `text[start:end]` stand in context number `context`."""

    start: int
    end: int
    words: int
    context: int


def copied_spans(text: str, contexts: Sequence[str], min_span: int = MIN_SPAN) -> list[CopiedSpan]:
    """The copied runs of `text` in order, none overlapping; [] without contexts.

    Linear in the lengths of the texts.
    """
    view = fold(text)
    own = [(m.group(), *view.original_span(m.start(), m.end())) for m in words(view.text)]
    tokens = [token for token, _, _ in own]
    sources = [[m.group() for m in words(fold(context).text)] for context in contexts]
    index: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number, source in enumerate(sources):
        for place in range(len(source) - min_span + 1):
            places = index.setdefault(tuple(source[place : place + min_span]), [])
            if len(places) < _PLACES:
                places.append((number, place))
    spans: list[CopiedSpan] = []
    at = 0
    while at + min_span <= len(tokens):
        best, context = 0, 0
        for number, place in index.get(tuple(tokens[at : at + min_span]), ()):
            length = _shared(tokens, at, sources[number], place)
            if length > best:
                best, context = length, number
        if best:
            spans.append(CopiedSpan(own[at][1], own[at + best - 1][2], best, context))
        at += best or 1
    return spans


def _shared(one: Sequence[str], at: int, two: Sequence[str], place: int) -> int:
    length = 0
    while (
        at + length < len(one)
        and place + length < len(two)
        and one[at + length] == two[place + length]
    ):
        length += 1
    return length


def word_count(text: str) -> int:
    """Words of a text as this module counts them."""
    return sum(1 for _ in words(fold(text).text))


def leak_score(spans: Iterable[CopiedSpan], total_words: int) -> float:
    """0-1; 0.5 is reached by a run of 50 words, or by 80 % copied of at least 30 words."""
    spans = list(spans)
    longest = max((span.words for span in spans), default=0)
    score = min(1.0, longest / 100)
    if total_words >= 30:
        coverage = sum(span.words for span in spans) / total_words
        score = max(score, 0.45 * coverage if coverage < 0.8 else 1.0 - 2.5 * (1.0 - coverage))
    return min(1.0, score)
