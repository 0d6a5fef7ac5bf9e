"""Does a quote stand in a text? What a judge says it read is checked, never believed."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from ragmetrics.text import content_words, fold, words

QUOTE_RULES = 1
OVERLAP = 0.9
"""Share of the quote's words that one window of the text must hold."""
_GAP = re.compile(r"\.{3,}|…|\[\s*(?:\.{3}|…)\s*\]")


def quoted(quote: str, text: str) -> bool:
    """True when ``text`` holds the quote: normalised substring, or 90 % of its words in one window.

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
    found = words(flat)
    return all(_near(words(piece), found) for piece in rest)


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


def _near(wanted: list[str], found: list[str]) -> bool:
    """One window of the words holds at least 90 % of the wanted ones, repeats counted.

    The window slides by one word; only the two counts that change are looked at.
    """
    size = len(wanted)
    missing = Counter(wanted)
    lacking = size
    for place, word in enumerate(found):
        lacking -= missing[word] > 0
        missing[word] -= 1
        if place >= size:
            old = found[place - size]
            missing[old] += 1
            lacking += missing[old] > 0
        if size - lacking >= OVERLAP * size:
            return True
    return False
