"""Which numbers of a claim its contexts or the question hold, and which were made up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ragmetrics import numberwords
from ragmetrics.numbers import Key, Number, neighbours, numbers, value_key
from ragmetrics.text import fold

Verdict = Literal["found", "question", "rounded", "derived", "unchecked", "fabricated"]
MAX_OPERANDS = 20
ROUNDABLE = 100.0
ROUNDING = 0.005
_HINT = re.compile(r"\b(" + "|".join([*numberwords.HINTS, *numberwords.ORDINALS]) + r")s?\b")
_RUNS = re.compile(r"\d{1,15}")


@dataclass(slots=True)
class NumberIndex:
    """All numbers of one or several texts, ready for look-ups."""

    keys: set[Key] = field(default_factory=set)
    near: dict[Key, list[frozenset[str]]] = field(default_factory=dict)

    def add(self, other: NumberIndex) -> None:
        """Take in another index."""
        self.keys |= other.keys
        for key, sets in other.near.items():
            self.near.setdefault(key, []).extend(sets)

    def values(self) -> list[float]:
        """The distinct plain values in ascending order."""
        return sorted(key[1] for key in self.keys if key[0] == "v" and isinstance(key[1], float))


def index(text: str) -> NumberIndex:
    """The index of a context or a question; words such as "half" and "third" count here."""
    result = NumberIndex()
    for number in numbers(text, claim=False):
        result.keys |= number.keys
        if number.is_id:
            result.keys |= {value_key(float(run)) for run in _RUNS.findall(number.text)}
        # "18-26 April": the day of a date may be told without its month.
        result.keys |= {
            value_key(float(key[2])) for key in number.keys if len(key) == 3 and key[0] == "d"
        }
        if number.near:
            for key in number.keys:
                result.near.setdefault(key, []).append(number.near)
    folded = fold(text)
    for match in _HINT.finditer(folded):
        word = match[1]
        values = (
            *numberwords.HINTS.get(word, ()),
            *([numberwords.ORDINALS[word]] if word in numberwords.ORDINALS else []),
        )
        near = neighbours(folded, *match.span())
        for value in values:
            result.keys.add(value_key(value))
            result.near.setdefault(value_key(value), []).append(near)
    return result


def _found(number: Number, known: NumberIndex) -> bool:
    hits = number.keys & known.keys
    if not hits or not number.small or not number.near:
        return bool(hits)
    return any(number.near & near for key in hits for near in known.near.get(key, ()))


# Unit conversions as (factor, offset): converted = value x factor + offset, or the reverse.
_CONVERSIONS = (
    (1.609344, 0.0), (0.45359237, 0.0), (2.54, 0.0), (0.3048, 0.0), (28.349523, 0.0),
    (3.785412, 0.0), (1.8, 32.0), (60.0, 0.0), (24.0, 0.0), (7.0, 0.0), (12.0, 0.0),
)  # fmt: skip


def _is_derived(value: float, stated: list[float]) -> bool:
    for place, first in enumerate(stated):
        for factor, offset in _CONVERSIONS:
            for converted in (first * factor + offset, (first - offset) / factor):
                if abs(converted - value) <= max(0.5, 0.01 * abs(value)):
                    return True
        for second in stated[place + 1 :]:
            results = (first + second, abs(first - second), first * second / 100)
            if value_key(value) in map(value_key, results):
                return True
    return False


def _values(number: Number) -> list[float]:
    return [key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)]


def _contradicted(number: Number, known: NumberIndex) -> bool:
    """True when a context has another small number beside at least two of the same words."""
    return any(len(number.near & near) >= 2 for sets in known.near.values() for near in sets)


def _judge(number: Number, contexts: NumberIndex, question: NumberIndex | None) -> Verdict:
    if number.is_id or _found(number, contexts):
        return "found"
    if question is not None and number.keys & question.keys:
        return "question"
    if number.small and number.text.isalpha() and not _contradicted(number, contexts):
        return "unchecked"
    largest = max(_values(number), default=0.0)
    if largest >= ROUNDABLE and any(
        abs(item - largest) <= ROUNDING * item for item in contexts.values()
    ):
        return "rounded"
    return "fabricated"


def judge(
    found: Sequence[Number], contexts: NumberIndex, question: NumberIndex | None = None
) -> list[Verdict]:
    """Where each number of one claim comes from. Ids are always "found": words compare them.

    ``unchecked``: a count below ten in words ("the two brothers"), which a writer takes from what
    is listed; only a context that states another count of the same things makes it fabricated.
    ``rounded``: at least 100 and within 0.5 % of a context number. ``derived``: a unit conversion
    of one, or the sum, difference or percentage of two other numbers that the same claim states and
    the contexts hold. (Combinations of numbers that only the contexts hold turn up by chance: nine
    in ten such claims of the labelled sets were unsupported.)
    """
    verdicts = [_judge(number, contexts, question) for number in found]
    pairs = list(zip(found, verdicts, strict=True))
    stated = [v for n, verdict in pairs if verdict == "found" for v in _values(n)][:MAX_OPERANDS]
    for place, (number, verdict) in enumerate(pairs):
        if verdict == "fabricated" and any(_is_derived(v, stated) for v in _values(number)):
            verdicts[place] = "derived"
    return verdicts
