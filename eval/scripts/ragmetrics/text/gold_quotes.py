"""Decides whether a passage contains a gold quote, for places that have no heading.

Where nothing but the words says which passage is meant, nearly the same words are not enough: "90
days" is a passage of its own beside "30 days". Four ways hold, both texts folded: the quote stands
in the passage; the passage begins or ends within it; the passage lies within it; or the wording is
nearly the same, with every number and the same negations.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache

QUOTE_LENGTH = 20
"""Characters under which a quote must be in the passage word for word, as whole words."""

LEAST_PART = 32
"""Least characters of a quote inside a passage that begins or ends within it."""

FUZZY_LENGTH = 40
"""Length in characters from which a quote may be worded slightly differently."""

NEARLY = 0.9
"""Least similarity of a slightly different wording."""

_LINE_END_HYPHEN = re.compile(r"(?<=\w)[-\u2010]\n\s*(?=\w)")

_LINK = re.compile(
    r"!?\[([^\[\]]*)\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])"
)

_MARKS = re.compile(
    r"<!--.*?-->"
    r"|^[ \t]*(?:(?:>|[-+*]|\#{1,6})[ \t]+)+"  # quotations, list items, headings
    r"|\\(?=[^\w\s])"
    r"|`+|~~+|\*\*+"
    r"|(?<!\w)[*_]+|[*_]+(?!\w)",
    re.MULTILINE | re.DOTALL,
)

_PLAIN = str.maketrans(
    dict.fromkeys("‘’‚‛′`´", "'")
    | dict.fromkeys("“”„‟″«»", '"')
    | dict.fromkeys("‐‑‒–—―−", "-")
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff")
)

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

_NEGATION = re.compile(
    r"\b(?:not?|never|none|nor|neither|nobody|nothing|nowhere|without|cannot|unless"
    r"|nicht|kein(?:e[mnrs]?)?|nie|niemals|ohne|pas|jamais|sans|aucune?|sin|nunca|non|mai|senza"
    r"|não|nem|sem|niet|geen|nooit|zonder)\b|n't\b"
)


@lru_cache(maxsize=4096)
def fold_quote(text: str) -> str:
    """A text as quotes are compared: plain marks, no Markdown, one blank, casefolded.

    >>> fold_quote("**[Refunds](https://x.org/a)** \\u2013 \\u201cwithin\\u201d 30 work-\\ning")
    'refunds - "within" 30 working'
    """
    text = _LINE_END_HYPHEN.sub("", text.replace("\r\n", "\n").replace("\u00ad\n", ""))
    text = _MARKS.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", text)))
    text = unicodedata.normalize("NFKC", text.translate(_PLAIN)).translate(_PLAIN)
    return " ".join(text.split()).casefold()


def holds_quote(passage: str, quote: str) -> bool:
    """Return True when the passage contains the quote in one of the four ways."""
    text, words = fold_quote(passage), fold_quote(quote)
    if not words or not text:
        return False
    if len(words) < QUOTE_LENGTH:
        return _stands_alone(words, text, str.isalnum)
    return (
        _stands_alone(words, text, str.isdigit)
        or (len(text) >= LEAST_PART and text in words)
        or _is_cut_off(words, text)
        or _is_nearly_worded(words, text)
    )


def _stands_alone(words: str, text: str, part: Callable[[str], bool]) -> bool:
    """Whether the words stand in the text, their ends in no longer word (or number: ``part``)."""
    start = text.find(words)
    while start >= 0:
        end = start + len(words)
        before = start > 0 and part(words[0]) and part(text[start - 1])
        after = end < len(text) and part(words[-1]) and part(text[end])
        if not (before or after):
            return True
        start = text.find(words, start + 1)
    return False


def _is_cut_off(words: str, text: str) -> bool:
    """Whether the text begins or ends within the quote, and has half of it or more."""
    least = max(LEAST_PART, (len(words) + 1) // 2)
    if len(text) < least or len(words) <= least:
        return False
    start = words.find(text[:least])
    while start >= 0:
        if text.startswith(words[start:]):
            return True
        start = words.find(text[:least], start + 1)
    end = words.rfind(text[-least:])
    while end >= 0:
        if text.endswith(words[: end + least]):
            return True
        end = words.rfind(text[-least:], 0, end + least - 1)
    return False


def _is_nearly_worded(words: str, text: str) -> bool:
    """Whether a window of the text is nearly the quote: its numbers, its negations, its letters."""
    if len(words) < FUZZY_LENGTH:
        return False
    from rapidfuzz.distance import Levenshtein

    numbers, negations = Counter(_NUMBER.findall(words)), Counter(_NEGATION.findall(words))
    for start in _starts(words, text):
        window = text[start : start + len(words)]
        if Levenshtein.normalized_similarity(words, window, score_cutoff=NEARLY) < NEARLY:
            continue
        whole, inner = _whole_words(text, start, start + len(words))
        if numbers <= Counter(_NUMBER.findall(whole)) and negations in (
            Counter(_NEGATION.findall(whole)),
            Counter(_NEGATION.findall(inner)),
        ):
            return True
    return False


def _starts(words: str, text: str) -> Iterator[int]:
    """Where windows begin that can be similar enough: cut into one piece more than it may have
    errors, the quote has a piece without one, which stands as far from its place at most."""
    errors = int(len(words) * (1 - NEARLY) + 1e-9)
    last = max(0, len(text) - len(words))
    starts: set[int] = set()
    size = len(words) / (errors + 1)
    for number in range(errors + 1):
        begin, end = round(number * size), round((number + 1) * size)
        at = text.find(words[begin:end])
        while at >= 0:
            first = at - begin - errors
            starts.update(range(max(0, min(first, last)), min(last, first + 2 * errors) + 1))
            at = text.find(words[begin:end], at + 1)
    yield from sorted(starts)


def _whole_words(text: str, start: int, end: int) -> tuple[str, str]:
    """A window with the words whole that it cuts, and without them."""
    left, right = start, min(end, len(text))
    while left > 0 and not text[left - 1].isspace() and not text[left].isspace():
        left -= 1
    while right < len(text) and not text[right].isspace() and not text[right - 1].isspace():
        right += 1
    inner = text[start:end]
    if left < start:
        inner = inner.partition(" ")[2]
    if right > min(end, len(text)):
        inner = inner.rpartition(" ")[0]
    return text[left:right], inner
