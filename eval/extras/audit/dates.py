"""Dates and versions in a sentence, and the words around them."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ragmetrics.text.words import STOP_WORDS, content_words, fold

_MONTH_NAMES = """
january jan | february feb | march mar | april apr | may | june jun | july jul | august aug
| september sept sep | october oct | november nov | december dec
"""
MONTHS = {
    name: number
    for number, names in enumerate(_MONTH_NAMES.split("|"), 1)
    for name in names.split()
}
_MONTH = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)-(?P<day>\d\d)\b",
        r"\b(?P<day>\d{1,2})\.\s?(?P<number>\d{1,2})\.(?P<year>(?:19|20)\d\d)\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b",
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}\b",
        rf"\b{_MONTH},?\s+{_YEAR}\b",
    )
]
_LONE_YEAR = re.compile(
    r"(?:\b(?:as of|since|until|updated|revised|reviewed|status|edition|dated)\W{1,3}|\()"
    rf"{_YEAR}\b",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"\bv(?P<v>\d+(?:\.\d+)+)\b"
    r"|\b(?:version|release|edition|revision|rev\.?)\s+(?P<named>\d+(?:\.\d+)*)\b"
    r"|\b[A-Z][A-Za-z+]+\s+(?P<product>\d+\.\d+(?:\.\d+)*)\b"
    r"|(?<![\w.])(?P<three>\d+\.\d+\.\d+)(?![\w.])",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"(?:new|added|changed|introduced|removed|deprecated|available)\s+(?:in|since|with)\b",
    re.IGNORECASE,
)
"""What a note on the history of a feature says; it does not age."""
_NUMBERED = re.compile(
    r"(?:chapter|section|listing|figure|table|step|part|example|appendix|rule)\b", re.IGNORECASE
)
"""Words whose numbers are no versions."""

MarkerKind = Literal["date", "version"]


@dataclass(frozen=True, slots=True)
class Marker:
    """A date or version of a sentence. ``value`` sorts; ``frame``: the stems of its other words."""

    kind: MarkerKind
    value: tuple[int, ...]
    text: str
    sentence: str
    frame: frozenset[str]


def dates_of(sentence: str) -> Iterator[tuple[date, str]]:
    """Each date with its words; the last day of a month or year that names no day."""
    taken: list[tuple[int, int]] = []
    for pattern in (*_DATES, _LONE_YEAR):
        for match in pattern.finditer(sentence):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            parts = {name: text for name, text in match.groupdict().items() if text}
            year = int(parts["year"])
            month = MONTHS.get(parts.get("month", "").lower(), int(parts.get("number", 12)))
            if not 1 <= month <= 12:
                continue
            last = monthrange(year, month)[1]
            taken.append(match.span())
            yield date(year, month, min(int(parts.get("day", last)) or 1, last)), match[0]


def versions_of(sentence: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """Each version with its words, such as ``version 2.1``, ``v3.2.1``, ``Rust 1.85.0``."""
    for match in _VERSION.finditer(sentence):
        number = next(text for text in match.groupdict().values() if text)
        if match["product"] and (_NUMBERED.match(match[0]) or _counts(match, sentence)):
            continue
        value = tuple(map(int, number.split(".")))
        if match["named"] and len(value) == 1 and value[0] > 1900:
            continue  # an edition that is a year is a date
        yield value, match[0]


def _counts(match: re.Match[str], sentence: str) -> bool:
    """Whether a number behind a small word counts what follows: "takes 2.5 seconds"."""
    name, after = match[0].split()[0], re.match(r"\s+(\w+)", sentence[match.end() :])
    if name[0].isupper():
        return False
    return name in STOP_WORDS or (after is not None and after[1] not in STOP_WORDS)


def markers_of(sentence: str) -> list[Marker]:
    """The dates and versions of a sentence; none of a note on history ("Changed in version 2")."""
    if _HISTORY.search(sentence):
        return []
    found: list[tuple[MarkerKind, tuple[int, ...], str]] = [
        ("date", (day.year, day.month, day.day), text) for day, text in dates_of(sentence)
    ]
    found += [("version", value, text) for value, text in versions_of(sentence)]
    rest = sentence
    for _, _, text in found:
        rest = rest.replace(text, " ")
    frame = frozenset(word for word in content_words(fold(rest)) if not word.isdigit())
    return [Marker(kind, value, text, sentence, frame) for kind, value, text in found]


_DEADLINE = re.compile(r"\b(?:until|valid|expires?|till|ends?|closes)\b", re.IGNORECASE)
_PRESENT = re.compile(
    r"\b(?:is|are|can|may|must|will|has|have|applies|apply|remains?|stays?|runs?|holds?|lasts?"
    r"|expires?|ends?|closes|valid)\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|had|did|could|would|became|used to|expired)\b", re.IGNORECASE)
_PAST_VERB = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bbeen )\b[a-z]{3,}ed\b")


def deadline_of(sentence: str, today: date) -> tuple[date, str] | None:
    """A date before today until which the sentence says, in the present tense, that it holds."""
    if not _DEADLINE.search(sentence) or not _PRESENT.search(sentence):
        return None
    if _PAST.search(sentence) or _PAST_VERB.search(sentence):
        return None
    for day, text in dates_of(sentence):
        before = sentence[: sentence.index(text)]
        if day < today and (_DEADLINE.search(before) or _DEADLINE.match(text)):
            return day, text
    return None
