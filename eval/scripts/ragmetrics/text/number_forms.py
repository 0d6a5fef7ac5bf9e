"""How a text writes its numbers: the sign, the decimal mark, and scripts without spaces."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from ragmetrics.text.words import UNSPACED, by_letter

GROUPS = re.compile(r"\d{1,3}(?:\.\d{3}|,\d{3})")
"""Digits that are thousands or decimals."""

_COMMA = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})*,\d\d?(?![\d.,]|\s\d)")

_POINT = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})*\.\d\d?(?![\d.,])")

_COMMA_LANGUAGES = frozenset(
    ("de", "fr", "es", "it", "pt", "nl", "pl", "sv", "ro", "tr", "ru", "el", "cs", "da", "fi")
)


def has_decimal_commas(folded: str, language: str | None) -> bool:
    """Return whether a text writes 1,5 for one and a half, by its other numbers or its language."""
    comma, point = _COMMA.search(folded) is not None, _POINT.search(folded) is not None
    return not point if comma or point else language in _COMMA_LANGUAGES


_EASTERN = re.compile(rf"(?:\d{{4}}年)?\d{{1,2}}月\d{{1,2}}日|[{UNSPACED}\uac00-\ud7a3]")

_TOUCHES = re.compile(rf"\d[{UNSPACED}\uac00-\ud7a3]|[{UNSPACED}\uac00-\ud7a3]\d")


def apart(folded: str) -> str:
    """Return a folded text, same length, whose numbers touch no letter of an unspaced script."""
    if folded.isascii() or not _TOUCHES.search(folded):
        return folded
    return _EASTERN.sub(lambda match: match[0] if len(match[0]) > 1 else "|", folded)


_FALLING = """
fall* fell drop* declin* decreas* lower* reduc* down* cut cuts lost loss* lose loses below under
less minus negative deficit* debt* owe owes owed overdr* shrink* shrank shrunk sank sunk sink*
discount* save saves saved saving savings cooler colder off slump* plung* unter gesunken fiel*
gefallen verlust* rückgang* weniger baiss* recul* perte* moins menos pérdida* cay* baj* meno
perdit* cal* perda* queda* daal* daling* verlies* spad* strat* sjunk* förlust*
"""

_FALLS = re.compile(rf"\b(?:{by_letter(_FALLING.split())})\b")
"""Words that say a minus: a number beside one is the same with and without it."""

_BEFORE, _AFTER = frozenset("- $€£¥₹"), frozenset(" °")

_LONGEST = 10
"""Characters of "negative " and a sign of a currency."""

_BESIDE = 40
"""Characters before and behind a number in which such a word is looked for."""

_MINUS = re.compile(r"(?:(?:^|[\s(=:;,<>~≤≥/$€£¥₹])-|\b(?:minus|negative) )[$€£¥₹]?\Z")

_LEVEL = re.compile(r"\b(?:to|from|auf) [$€£¥₹]?\Z")
"""Words before a number that something fell to: the number is a level, with a sign of its own."""

_BELOW = re.compile(
    r" ?(?:(?:° ?|degrees?|grad)(?: ?(?:[cf]|celsius|fahrenheit)\b)?)? ?"
    r"(?:below (?:zero|freezing)|unter null)\b"
)


def falls(folded: str) -> list[int]:
    """Return where a folded text has words that say a minus."""
    return [match.start() for match in _FALLS.finditer(folded)]


def signs(
    folded: str, start: int, end: int, falling: Sequence[int]
) -> tuple[tuple[int, ...], int, int]:
    """Return the signs that a number may have, and where it begins and ends with them.

    Both where the text leaves it open. ``falling``: the places of words that say a minus, if they
    matter.
    """
    if folded[start - 1 : start] in _BEFORE:
        minus = _MINUS.search(folded[max(0, start - _LONGEST) : start])
        if minus is not None:
            line = folded.rfind("\n", 0, start) + 1
            is_marker = not folded[line:start].strip(" -")  # "-5 items": a list without blanks
            return (1, -1) if is_marker else (-1,), start - len(minus[0].lstrip()), end
    if folded[end : end + 1] in _AFTER and (below := _BELOW.match(folded, end)):
        return (-1,), start, below.end()
    if not falling or _LEVEL.search(folded, max(0, start - _LONGEST), start):
        return (1,), start, end
    nearest = bisect_left(falling, start - _BESIDE)
    is_beside = nearest < len(falling) and falling[nearest] <= end + _BESIDE
    return (1, -1) if is_beside else (1,), start, end
