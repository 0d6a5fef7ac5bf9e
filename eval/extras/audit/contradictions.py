"""Sentences that may contradict each other: the same subject, another number, date or negation.

A subject is shared rare words, weighed by their rarity. Nothing here is called a contradiction: a
person or a judge decides.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from extras.audit.dates import dates_of
from extras.audit.doubles import squeezed
from extras.audit.findings import Finding, Quote
from extras.audit.passages import AuditSection
from ragmetrics.text.negation import Side
from ragmetrics.text.number_words import TENS, UNITS
from ragmetrics.text.words import STOP_WORDS, stem

MOST_SENTENCES = 80
"""Sentences with a word from which it makes no pairs."""
LEAST_STEMS, MOST_STEMS = 3, 40
"""Content words of a sentence that can be compared."""
LEAST_SHARED = 0.25
"""Weight of the shared words in that of both sentences' words, from which a pair is looked at."""
NEGATION, OF_NEGATIONS = "a negation", 0.7
"""What a pair differs in, and its score beside a number of one noun, which says more."""
NEAR = 3
"""Words on each side of a number that say what it counts."""

_COUNTED = {**UNITS, **TENS, "once": 1.0, "twice": 2.0}
_NUMBER = re.compile(
    r"(?<![\w.,\-–/#\[])\d[\d,]*(?:\.\d+)?(?!\.?[\w\-–]*\d)|\b(?:"
    + "|".join(sorted(_COUNTED, key=len, reverse=True))
    + r")\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"(?:listings?|figures?|fig\.|tables?|chapters?|sections?|examples?|appendix|pages?|steps?|lines?"
    r"|items?|notes?|pep|rfc|part|version|number|\bno\.)\s*(?:\d+\s*(?:,|and|or|to)\s*)*\Z|^\W*\Z",
    re.IGNORECASE,
)
"""What before a number makes it a reference or the number of a list item."""
_WORD = re.compile(r"[^\W\d_][\w']*")


@dataclass(frozen=True, slots=True)
class CountedNumber:
    """A number of a sentence and the stems beside it: behind it, then before it."""

    value: float
    behind: tuple[str, ...]
    before: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Statement:
    """A sentence with all sections that contain it; ``stems``: its content words, no numbers."""

    text: str
    sections: frozenset[int]

    @cached_property
    def side(self) -> Side:
        return Side(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        counted = {stem(word) for word in _COUNTED}
        return frozenset(
            word
            for word in self.side.stems
            if word not in counted and not word[0].isdigit() and word not in STOP_WORDS
        )

    @cached_property
    def numbers(self) -> tuple[CountedNumber, ...]:
        return tuple(_numbers(self.text))

    @cached_property
    def dates(self) -> frozenset[Any]:
        return frozenset(day for day, _ in dates_of(self.text))


def _numbers(text: str) -> Iterator[CountedNumber]:
    for match in _NUMBER.finditer(text):
        if _REFERENCE.search(text[: match.start()]) and match[0][0].isdigit():
            continue
        word = match[0].casefold()
        value = _COUNTED.get(word)
        if value is None:
            value = float(word.replace(",", "").rstrip("."))
        behind, before = text[match.end() :], text[: match.start()]
        yield CountedNumber(
            value,
            tuple(map(stem, _words(behind)[:NEAR])),
            tuple(map(stem, _words(before)[-NEAR:])),
            f"{match[0]} {' '.join(_words(behind)[:1])}".strip(),
        )


def _words(text: str) -> list[str]:
    found = (word.casefold() for word in _WORD.findall(text))
    return [word for word in found if word not in STOP_WORDS]


def difference(first: Statement, second: Statement) -> str:
    """What two sentences on one subject disagree in; "" for nothing."""
    if first.dates and second.dates and not first.dates & second.dates:
        return "dates"
    ours = {number.value for number in first.numbers}
    theirs = {number.value for number in second.numbers}
    for own in first.numbers:
        for other in second.numbers:
            same = set(own.behind) & set(other.behind) or (
                not (own.behind and other.behind) and set(own.before) & set(other.before)
            )
            if same and own.value not in theirs and other.value not in ours:
                return f"{own.text} / {other.text}"
    signs, others = first.side.negations, second.side.negations
    if len(signs) % 2 != len(others) % 2 or bool(signs) != bool(others):
        negated, rest = (first, second) if len(signs) % 2 or not others else (second, first)
        at = negated.side.negations[0]
        near = {stem(word) for word in negated.side.words[max(0, at - 4) : at + 6]}
        if near & rest.stems & negated.stems:
            return NEGATION
    return ""


def statements_of(sections: Sequence[AuditSection]) -> list[Statement]:
    """The distinct sentences that are long enough to have a subject."""
    seen: dict[str, tuple[str, set[int]]] = {}
    for section in sections:
        for sentence in section.sentences:
            seen.setdefault(squeezed(sentence), (sentence, set()))[1].add(section.number)
    every = (Statement(text, frozenset(numbers)) for text, numbers in seen.values())
    return [one for one in every if LEAST_STEMS <= len(one.stems) <= MOST_STEMS]


def candidates(statements: Sequence[Statement]) -> list[tuple[float, int, int, str]]:
    """Pairs of statements that differ, best first: score, both numbers, what differs."""
    frequency = Counter(word for one in statements for word in one.stems)
    count = len(statements)
    weight = {word: math.log(1 + count / number) for word, number in frequency.items()}
    totals = [sum(weight[word] for word in one.stems) for one in statements]
    pairs = []
    for first, second in _pairs(statements, frequency):
        common = statements[first].stems & statements[second].stems
        shared = sum(weight[word] for word in common)
        overlap = shared / (totals[first] + totals[second] - shared)
        if overlap < LEAST_SHARED or statements[first].sections & statements[second].sections:
            continue
        what = difference(statements[first], statements[second])
        if what:
            score = overlap * OF_NEGATIONS if what == NEGATION else overlap
            pairs.append((score, first, second, what))
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))


def _pairs(statements: Sequence[Statement], frequency: Counter[str]) -> Iterator[tuple[int, int]]:
    """Pairs that share two rare words."""
    having: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(statements):
        rare = [word for word in one.stems if 1 < frequency[word] <= MOST_SENTENCES]
        shared = Counter(other for word in rare for other in having[word])
        yield from ((other, number) for other, count in sorted(shared.items()) if count > 1)
        for word in rare:
            having[word].append(number)


def contradiction_candidates(sections: Sequence[AuditSection]) -> list[Finding]:
    """Findings ``may_contradict``, best first: one for each pair of sections."""
    distinct: dict[str, AuditSection] = {}
    for section in sections:
        distinct.setdefault(squeezed(section.text), section)
    statements = statements_of(list(distinct.values()))
    taken: set[tuple[int, int]] = set()
    result = []
    for score, first, second, what in candidates(statements):
        both = (min(statements[first].sections), min(statements[second].sections))
        pair = (min(both), max(both))
        if pair in taken:
            continue
        taken.add(pair)
        quotes = tuple(
            Quote(sections[number].place, statements[one].text)
            for number, one in zip(both, (first, second), strict=True)
        )
        why = f"same subject, differ in {what}"
        result.append(Finding("may_contradict", why, quotes, (), score))
    return result
