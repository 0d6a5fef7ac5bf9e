"""Which words of two texts differ: pure, for pages that show two answers side by side."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

Spans = list[tuple[int, int]]
"""Start and end offsets in a text, in order."""

_WORD = re.compile(r"\w+|[^\w\s]")

_MOST_PAIRS = 4_000_000
"""Pairs of words that are compared exactly; beyond, frequent words do not count as matches."""


def word_changes(before: str, after: str) -> tuple[Spans, Spans]:
    """The stretches of each text whose words the other one does not have at that place.

    Words and signs are compared as they are written, blanks and line breaks are not. Neighbouring
    words that differ are one stretch.
    """
    left, right = (list(_WORD.finditer(text)) for text in (before, after))
    words, others = ([match.group() for match in side] for side in (left, right))
    exact = len(left) * len(right) <= _MOST_PAIRS
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=not exact)
    spans: tuple[Spans, Spans] = ([], [])
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        if tag != "equal":
            _add(spans[0], left, left_start, left_end)
            _add(spans[1], right, right_start, right_end)
    return spans


def _add(spans: Spans, words: Sequence[re.Match[str]], start: int, end: int) -> None:
    if start < end:
        spans.append((words[start].start(), words[end - 1].end()))
