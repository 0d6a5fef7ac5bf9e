"""Sentences of a passage, and which of them carry the answer.

What goes in: the original text of a chunk, and what is known of the question. What comes out:
character spans of that text, never of a shown or wrapped copy.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

Span = tuple[int, int]

ENOUGH: Final = 0.4
"""Least share of a fact's content words that the best sentence must hold to carry the fact."""
PLENTY: Final = 0.5
"""Share of a fact's content words at which a sentence carries it beside the best one."""
ENOUGH_OF_QUESTION: Final = 0.2
"""The same for the question, used when neither facts nor a reference answer are known."""
AUTO_LIMIT: Final = 400
"""Characters of the longest sentence that is taken by itself: no one reads a quote of pages."""

AUTO_REACH: Final = 64 * 1024
"""Characters of a passage that are searched for sentences that carry the answer."""
ABBREVIATION_LENGTH: Final = 12

# A dot at the beginning of a line ends nothing: it is a prompt of code, or a leader.
_END = re.compile(
    r"(?:(?<=[^\n.!?…])[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)]|#+|\|)\s))"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|sec|ch|mr|mrs|ms|dr|prof|st|inc|ltd|[a-z])\.$"
    r"|(?:^|\n)[ \t]*\d{1,3}\.$",  # the number of a list item
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:[.,:'’-][^\W_]+)*")
_STOP_WORDS = """a about an and any are as at be been but by can could did do does for from had has
have how i if in into is it its may me might my no not of on or our shall she should so some such
than that the their them then there these they this those to up us was we were what when where which
while who whom whose why will with would you your"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True)
class Sentence:
    """A sentence of a chunk: ``chunk.text[start:end]``; `picked` when a snippet covers it."""

    index: int
    start: int
    end: int
    text: str
    picked: bool


def sentence_spans(text: str) -> list[Span]:
    """Spans of the sentences, list items and headings of `text`, outer space left out."""
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        last = text[max(start, match.end() - ABBREVIATION_LENGTH) : match.end()]
        if match.group().startswith(".") and _ABBREVIATION.search(last):
            continue
        _add(text, start, match.end(), spans)
        start = match.end()
    _add(text, start, len(text), spans)
    return spans


def _add(text: str, start: int, end: int, spans: list[Span]) -> None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    right = len(piece.rstrip())
    if left < right:
        spans.append((start + left, start + right))


def content_words(text: str) -> frozenset[str]:
    """Casefolded words of `text` that carry meaning, a plural ``s`` taken off."""
    words = (w.casefold() for w in _WORD.findall(unicodedata.normalize("NFC", text)))
    return frozenset(_stem(word) for word in words if word not in _STOP)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def facts_of(case: dict[str, Any]) -> list[str]:
    """What the answer must say: the key facts, else the sentences of the reference answer."""
    facts = [str(fact) for fact in case.get("expected_key_facts") or () if str(fact).strip()]
    reference = str(case.get("reference_answer") or "")
    return facts or [reference[start:end] for start, end in sentence_spans(reference)]


def answer_spans(text: str, case: dict[str, Any]) -> list[Span]:
    """The sentences of `text` that carry the answer to `case`, neighbours joined; may be empty.

    For each fact, the sentence with most of its content words, when that is at least `ENOUGH` of
    them. A case with no facts and no reference answer falls back on the question's words.
    """
    spans = sentence_spans(text[:AUTO_REACH])
    spans = [(start, end) for start, end in spans if end - start <= AUTO_LIMIT]
    words = [content_words(text[start:end]) for start, end in spans]
    picked = _carriers(words, facts_of(case), ENOUGH)
    if not picked and not facts_of(case):
        picked = _carriers(words, [str(case.get("question") or "")], ENOUGH_OF_QUESTION)
    return joined(text, [spans[index] for index in sorted(picked)])


def opening(text: str) -> Span | None:
    """The first sentence of `text`, at most `AUTO_LIMIT` characters; None for a blank text."""
    spans = sentence_spans(text[: 4 * AUTO_LIMIT])
    return (spans[0][0], min(spans[0][1], spans[0][0] + AUTO_LIMIT)) if spans else None


def _carriers(sentences: Sequence[frozenset[str]], facts: Iterable[str], least: float) -> set[int]:
    picked: set[int] = set()
    for fact in facts:
        wanted = content_words(fact)
        if not wanted or not sentences:
            continue
        shares = [len(wanted & words) / len(wanted) for words in sentences]
        best = max(range(len(shares)), key=lambda index: (shares[index], -index))
        if shares[best] >= least:
            picked.add(best)
        picked |= {index for index, share in enumerate(shares) if share >= PLENTY}
    return picked


def joined(text: str, spans: Iterable[Span]) -> list[Span]:
    """`spans` in order, with overlapping ones and those parted by white space made one."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and not text[out[-1][1] : start].strip():
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def without(spans: Iterable[Span], hole: Span) -> list[Span]:
    """`spans` with the characters of `hole` taken out."""
    out: list[Span] = []
    for start, end in spans:
        out += [
            (a, b) for a, b in ((start, min(end, hole[0])), (max(start, hole[1]), end)) if a < b
        ]
    return out


def find_span(text: str, snippet: str) -> Span | None:
    """Where `snippet` stands in `text`: exactly, else apart from case and white space."""
    start = text.find(snippet) if snippet else -1
    if start >= 0:
        return start, start + len(snippet)
    words = snippet.split()
    if not words:
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return match.span() if match else None


def trimmed(text: str, span: Span) -> Span | None:
    """`span` without outer white space; None when nothing is left."""
    found: list[Span] = []
    _add(text, span[0], span[1], found)
    return found[0] if found else None
