"""Decides whether a passage contains a gold quote, where a heading does not say enough.

Where nothing but the words says which passage is meant, nearly the same words are not enough: "90
days" is a passage of its own beside "30 days". Four ways hold, both texts folded: the quote stands
in the passage; the passage begins or ends within it; the passage lies within it; or the wording is
nearly the same, with every number and the same negations.

For sections below the labelled heading, words in a row decide (``holds_run``), however the passage
is marked up. What ends within the passage must end as the quote does: pages that describe many
things alike share half of a sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

QUOTE_LENGTH = 20
"""Characters under which a quote must be in the passage word for word, as whole words."""

LEAST_PART = 32
"""Least characters of a quote inside a passage that begins or ends within it."""

FUZZY_LENGTH = 40
"""Length in characters from which a quote may be worded slightly differently."""

NEARLY = 0.9
"""Least similarity of a slightly different wording."""

LEAST_RUN = 8
"""Least words of a quote inside a passage that begins or ends within it. In a script that is
written without spaces two signs count as a word."""

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

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")

_PLAIN = {
    **dict.fromkeys("‘’‚‛′`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", ""),
}

_SIGNS = re.compile(f"[{''.join(_PLAIN)}]")
"""A search for the few signs of a text is quicker than a look at each of its characters."""

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
    text = text.replace("\r\n", "\n").replace("\u00ad\n", "")
    if "-\n" in text or "\u2010\n" in text:
        text = _LINE_END_HYPHEN.sub("", text)
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _MARKS.sub("", text)
    if not text.isascii():
        text = _plain(unicodedata.normalize("NFKC", _plain(text)))
    return " ".join(text.split()).casefold()


def _plain(text: str) -> str:
    return _SIGNS.sub(lambda sign: _PLAIN[sign[0]], text)


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


def holds_run(passage: str, quote: str, heading: Sequence[str] = ()) -> bool:
    """Return True when the passage contains the quote's words in a row, or begins or ends in them.

    Then it has half of them, at least LEAST_RUN; a quote of fewer words must be there whole. Tags
    and the marks between words do not count, so that cells of a table are words in a row. A word
    that is cut at an end of the passage, and its ``heading`` before its text, are passed over. A
    quote of marks alone must be there as it is.
    """
    from ragmetrics.text.words import fold, is_unspaced, words  # most runs need no words

    wording, text = _words_of(quote), _words_of(passage)
    if not wording:
        folded = fold_quote(quote)
        return bool(folded) and folded in fold_quote(passage)
    if f" {' '.join(wording)} " in f" {' '.join(text)} ":
        return True
    least = LEAST_RUN * (2 if is_unspaced(quote) else 1)
    if len(wording) <= least:
        return False
    size = max(least, (len(wording) + 1) // 2)
    title = {word for segment in heading for word in words(fold(segment))}
    titled = sum(1 for _ in takewhile(title.__contains__, text))
    return _begins_within(wording, text, size, titled) or _begins_within(
        wording[::-1], text[::-1], size, 0
    )


@lru_cache(maxsize=4096)
def _words_of(text: str) -> list[str]:
    from ragmetrics.text.words import words

    return words(fold_quote(_TAG.sub(" ", text)))


def _begins_within(wording: list[str], text: list[str], size: int, titled: int) -> bool:
    """Whether the text, behind so many words at most, is ``size`` words or more of the wording, up
    to the end of either."""
    for start in range(min(titled + 1, len(text) - size) + 1):
        for at in range(len(wording) - size + 1):
            if wording[at] != text[start] or wording[at : at + size] != text[start : start + size]:
                continue
            if start > titled and not (at and _is_cut(text[start - 1], wording[at - 1])):
                continue
            pairs = zip(wording[at:], text[start:], strict=False)
            length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            rest = text[start + length :]
            if at + length == len(wording) or not rest:
                return True
            if len(rest) == 1 and _is_cut(rest[0], wording[at + length]):
                return True
    return False


def _is_cut(piece: str, word: str) -> bool:
    return word.startswith(piece) or word.endswith(piece)


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
