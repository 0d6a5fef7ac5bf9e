"""The numbers of a text as values.

A number is a set of keys; two numbers are equal when they share one. Keys: ``("v", value)``,
``("t", hour, minute)``, ``("d", month, day)``, and an amount in the smallest unit of its dimension
(``("time", 7200)`` for 2 hours). Versions, ids and phone numbers are ``("i", string)``: they are
compared as strings and are no numbers of a claim. A number with a minus is another one than without
it; "fell 5 %" is both, since "-5 %" says the same.

``1,500`` may be 1500 or 1.5. ``1.500`` is 1.5, and 1500 where decimals are written with a comma: by
the language, or by the other numbers of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ragmetrics.text.measures import COUNT, UNITS, Measure, single_units, unit_after
from ragmetrics.text.number_forms import GROUPS, apart, falls, has_decimal_commas, signs
from ragmetrics.text.number_scan import (
    Key,
    amounts,
    holds_number,
    is_bare,
    keys_of,
    matches,
    value_key,
)
from ragmetrics.text.number_words import HINTS, ORDINALS
from ragmetrics.text.sentences import MARK
from ragmetrics.text.words import content_words, fold

_SMALL = 10.0

_NEIGHBOURS = 5

_YEAR = 999.0

_DECADE = 3
"""Digits of a number before an s that is no decade: 30s, not 1980s."""

_MAX_NEAR = 64
"""Places of the same small number whose neighbours are looked at; more are a table of figures."""

_MARK = re.compile(MARK)

_CODE = re.compile(r"`[^`\n]{1,500}`")

# A scale's maximum and a full week say nothing that a source must state.
_IDIOM = re.compile(
    r"\bout of (?:five|ten|5|10|100)(?:\.0)?\b|/(?:5|10|100)\b|\b24/7\b|\b(?:seven|7) days "
    r"(?:a|per) week\b"
    r"|\b24 hours (?:a|per) day\b"
)

_NEAR = re.compile(r"\w+(?:'\w+)?")

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a text: its place in the folded text, its keys, whether it is bare and small.

    ``near`` holds the stems of the content words within five words on each side, for a small number
    only. ``phrase`` is the number with its unit, ``dimensions`` what that unit measures.
    """

    text: str
    start: int
    end: int
    keys: frozenset[Key]
    small: bool
    near: frozenset[str]
    phrase: str = ""
    dimensions: frozenset[str] = _NONE

    @property
    def is_id(self) -> bool:
        """True for a version, an id or a phone number."""
        return all(key[0] == "i" for key in self.keys)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _neighbours(folded: str, start: int, end: int) -> frozenset[str]:
    """Stems of the content words within five words on each side of a place of a folded text."""
    before = _NEAR.findall(folded[max(0, start - 80) : start])[-_NEIGHBOURS:]
    after = _NEAR.findall(folded[end : end + 80])[:_NEIGHBOURS]
    near = content_words(" ".join([*before, *after]))
    return frozenset(word for word in near if len(word) > 1 or not word.isdigit())


_BETWEEN = re.compile(r"\s?(?:,|and|und|et|y|e|en)?\s?")
"""What may stand between the parts of one amount: 1 hour and 30 minutes."""


@dataclass(slots=True)
class _Amount:
    """A number with a unit: the sizes of its units, how much that is, and its end."""

    sizes: dict[str, float]
    totals: dict[str, float]
    end: int
    place: int = -1


def _unit(match: re.Match[str], folded: str) -> tuple[tuple[Measure, ...], int]:
    """What the unit of a number measures, and where it ends."""
    if match["core"] is None:
        return unit_after(folded, match.end())
    if match["pct"]:
        return (), match.end()
    unit = match["unit"] or (match["scale"] if match["scale"] in ("m", "b") else None)
    if unit is None:
        measures, end = unit_after(folded, match.end())
        return measures or UNITS.get((match["cur"] or "").strip(), ()), end
    is_decade = unit == "s" and len(match["core"]) > _DECADE
    return () if is_decade else UNITS.get(unit.strip(), ()), match.end()


def _key_of_amount(amount: float, dimension: str) -> Key:
    return value_key(amount, "v" if dimension == COUNT else dimension)


def _join(found: list[Number], parts: list[_Amount], folded: str, new: _Amount) -> None:
    """Give the last number and those before it that are parts of one amount the keys of the whole.

    ``parts``: the amounts before it that may be its parts (1 hour 30 minutes).
    """
    new.place = len(found) - 1
    if parts:
        last = parts[-1]
        shared = {name for name, size in new.sizes.items() if last.sizes.get(name, 0) > size}
        if shared and _BETWEEN.fullmatch(folded, last.end, found[new.place].start):
            new.totals = {name: last.totals[name] + new.totals[name] for name in shared}
        else:
            parts.clear()
    parts.append(new)
    if len(parts) > 1:
        whole = {_key_of_amount(total, name) for name, total in new.totals.items()}
        for part in parts:
            number = found[part.place]
            found[part.place] = replace(number, keys=number.keys | whole)


def numbers(text: str, *, claim: bool = True, language: str | None = None) -> list[Number]:
    """The numbers of a text in reading order.

    With ``claim`` the text is a claim: citation marks and code are left out, and so are "passage
    2", "one", and numbers in words that are no cardinals. Without it everything that may justify a
    number counts. ``language``: by which 1.500 is read, when the text does not tell itself.
    """
    folded = fold(text)
    if not holds_number(folded):
        return []
    if claim:
        folded = _IDIOM.sub(_blank, fold(_CODE.sub(_blank, _MARK.sub(_blank, text))))
    return _read(folded, claim, language, falls(folded) if claim else ())


def _read(
    folded: str, claim: bool, language: str | None, falling: Sequence[int] = ()
) -> list[Number]:
    result: list[Number] = []
    comma: bool | None = None
    seen: Counter[str] = Counter()
    parts: list[_Amount] = []
    for match in matches(apart(folded)):
        kind = match.lastgroup
        if kind == "skip" and not claim:
            result.extend(_plain(folded, match.start(), match.end()))
            continue
        if kind == "word" and claim and match[0] in ("one", "zero"):
            continue
        start, end = match.span()
        if comma is None and kind == "number" and GROUPS.fullmatch(match["core"]):
            comma = has_decimal_commas(folded, language)
        for keys in keys_of(match, bool(comma)):
            if not keys:
                continue
            if claim and kind == "number" and match["unit"] == "s" and match["core"][-1] == "0":
                keys |= _years_of_decade(keys)  # the 1980s
            values = [key[1] for key in keys if key[0] == "v" and isinstance(key[1], float)]
            near = _NONE
            if min(values, default=_SMALL) < _SMALL and seen[match[0]] < _MAX_NEAR:
                seen[match[0]] += 1
                near = _neighbours(folded, start, end)
            small = max(values, default=_SMALL) < _SMALL and is_bare(match)
            number = Number(match[0], start, end, frozenset(keys), small, near, match[0])
            if kind in ("number", "word"):
                number, amount = _with_unit(number, match, folded, falling, bool(comma))
                if amount is not None:
                    result.append(number)
                    _join(result, parts, folded, amount)
                    continue
            result.append(number)
    return result


def _years_of_decade(keys: Iterable[Key]) -> set[Key]:
    years = [key[1] for key in keys if isinstance(key[1], float) and key[1] > _YEAR]
    return {value_key(year + last) for year in years for last in range(10)}


def _with_unit(
    number: Number, match: re.Match[str], folded: str, falling: Sequence[int], comma: bool
) -> tuple[Number, _Amount | None]:
    """The number with its sign and the keys of its amount, and that amount."""
    measures, end = _unit(match, folded)
    possible, start, after = signs(folded, number.start, number.end, falling)
    if not measures and possible == (1,):
        return number, None
    values = amounts(match, comma) if measures else []
    keys = number.keys.union(
        _key_of_amount(value * size, name) for name, size in measures for value in values
    )
    if possible != (1,):
        keys = frozenset(_with_sign(key, sign) for key in keys for sign in possible)
    dimensions = frozenset(name for name, _ in measures)
    number = Number(
        number.text,
        number.start,
        number.end,
        keys,
        number.small and COUNT not in dimensions,
        number.near,
        folded[start : max(end, after)],
        dimensions,
    )
    if not values:
        return number, None
    totals = {name: values[0] * size for name, size in measures}
    return number, _Amount(dict(measures), totals, end)


def _with_sign(key: Key, sign: int) -> Key:
    return (key[0], sign * key[1]) if isinstance(key[1], float) else key


def _plain(folded: str, start: int, end: int) -> Iterable[Number]:
    for digits in re.finditer(r"\d+", folded[start:end]):
        span = (start + digits.start(), start + digits.end())
        near = _neighbours(folded, *span)
        yield Number(digits[0], *span, frozenset({value_key(float(digits[0]))}), False, near)


Verdict = Literal["found", "question", "rounded", "derived", "unchecked", "fabricated"]

_MAX_OPERANDS = 20

_ROUNDABLE = 100.0

_ROUNDING = 0.005

_HINT = re.compile(r"\b(" + "|".join([*HINTS, *ORDINALS]) + r")s?\b")

_NOON = re.compile(r"\b(?:noon|midday|midnight)\b")

_RUNS = re.compile(r"\d{1,15}")


@dataclass(slots=True)
class NumberIndex:
    """All numbers of one or several texts, ready for look-ups.

    ``dimensions``: what the units of a value measure; "" for one without a unit. ``texts``: read
    once more for a negative number, which "fell by 5 %" states, too.
    """

    keys: set[Key] = field(default_factory=set)
    near: dict[Key, list[frozenset[str]]] = field(default_factory=dict)
    dimensions: dict[Key, set[str]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def add(self, other: NumberIndex) -> None:
        """Take in another index."""
        self.keys |= other.keys
        for key, sets in other.near.items():
            self.near.setdefault(key, []).extend(sets)
        for key, names in other.dimensions.items():
            self.dimensions.setdefault(key, set()).update(names)
        self.texts += other.texts

    def note(self, keys: Iterable[Key], dimensions: Iterable[str] = ("",)) -> None:
        """Take in keys of a number that has these dimensions."""
        for key in keys:
            self.keys.add(key)
            names = self.dimensions.get(key)
            if names is None:
                self.dimensions[key] = set(dimensions)
            else:
                names.update(dimensions)

    def values(self) -> list[float]:
        """The distinct plain values in ascending order."""
        return sorted(key[1] for key in self.keys if key[0] == "v" and isinstance(key[1], float))


def index(text: str, language: str | None = None) -> NumberIndex:
    """The index of a context or a question; words such as "half" and "third" count here."""
    result = NumberIndex(texts=[text])
    folded = fold(text)
    for number in _read(folded, False, language) if holds_number(folded) else ():
        _note(result, number)
        if number.is_id:
            runs = [float(run) for run in _RUNS.findall(number.text)]
            result.note(value_key(sign * run) for run in runs for sign in (1, -1))
        # "18-26 April": the day of a date may be told without its month.
        days = [key[2] for key in number.keys if len(key) == 3 and key[0] == "d"]
        result.note(value_key(float(day)) for day in days)
    for match in _NOON.finditer(folded):
        hour = 24 if match[0] == "midnight" else 12
        result.note([("t", hour, 0), ("t", hour % 24, 0), value_key(float(hour))])
    for match in _HINT.finditer(folded):
        near = _neighbours(folded, *match.span())
        for value in (*HINTS.get(match[1], ()), *_ordinal(match[1])):
            result.note([value_key(value)])
            result.near.setdefault(value_key(value), []).append(near)
    for _, _, amount, measures in single_units(folded):
        result.note(value_key(amount * size, dimension) for dimension, size in measures)
    return result


def _note(contexts: NumberIndex, number: Number) -> None:
    contexts.note(number.keys, number.dimensions or ("",))
    if number.near:
        for key in number.keys:
            contexts.near.setdefault(key, []).append(number.near)


def _ordinal(word: str) -> tuple[float, ...]:
    return (ORDINALS[word],) if word in ORDINALS else ()


_FRACTIONS = {"half": 0.5, "halves": 0.5, "quarter": 0.25, "dozen": 12.0}

_FRACTION = re.compile(rf"\b({'|'.join(_FRACTIONS)})\b")


def amounts_in_words(text: str) -> list[Number]:
    """Return amounts in words that need no source: "an hour", "half" of the users."""
    folded = fold(text)
    found: list[tuple[int, int, frozenset[Key]]] = [
        (start, end, frozenset(value_key(amount * size, name) for name, size in measures))
        for start, end, amount, measures in single_units(folded)
    ]
    if any(word in folded for word in _FRACTIONS):
        found += [
            (*match.span(), frozenset([value_key(_FRACTIONS[match[1]])]))
            for match in _FRACTION.finditer(folded)
        ]
    return [
        Number(folded[start:end], start, end, keys, False, _NONE, folded[start:end])
        for start, end, keys in found
    ]


def index_of_amounts(text: str, language: str | None = None) -> NumberIndex:
    """Return the index of the amounts of a text, without words that only hint at a number."""
    result = NumberIndex()
    for number in (*numbers(text, claim=False, language=language), *amounts_in_words(text)):
        _note(result, number)
    return result


def is_same_amount(number: Number, contexts: NumberIndex) -> bool:
    """Return True if contexts contain the amount of a number, whatever its unit."""
    return any(key[0] in number.dimensions for key in number.keys & contexts.keys)


def is_stated(number: Number, contexts: NumberIndex) -> bool:
    """Return True if contexts contain a number: its value, or its amount in another unit.

    A value whose unit is another one of the same dimension is not the number: 2 hours, 2 minutes.
    """
    hits = number.keys & contexts.keys
    if not hits:
        return False
    if number.dimensions:
        if is_same_amount(number, contexts):
            return True
        hits = frozenset(key for key in hits if not _is_of_another_size(key, number, contexts))
    if not hits or not number.small or not number.near:
        return bool(hits)
    return any(number.near & near for key in hits for near in contexts.near.get(key, ()))


def _is_of_another_size(key: Key, number: Number, contexts: NumberIndex) -> bool:
    names = contexts.dimensions[key]
    return "" not in names and not names.isdisjoint(number.dimensions)


# Unit conversions as (factor, offset): converted = value x factor + offset, or the reverse.
_CONVERSIONS = (
    (1.609344, 0.0), (0.45359237, 0.0), (2.54, 0.0), (0.3048, 0.0), (28.349523, 0.0),
    (3.785412, 0.0), (1.8, 32.0), (60.0, 0.0), (24.0, 0.0), (7.0, 0.0), (12.0, 0.0),
)  # fmt: skip


def _is_derived(value: float, stated: list[float]) -> bool:
    for position, first in enumerate(stated):
        for factor, offset in _CONVERSIONS:
            for converted in (first * factor + offset, (first - offset) / factor):
                if abs(converted - value) <= max(0.5, 0.01 * abs(value)):
                    return True
        for second in stated[position + 1 :]:
            results = (first + second, abs(first - second), first * second / 100)
            if value_key(value) in map(value_key, results):
                return True
    return False


def _values(number: Number) -> list[float]:
    return [key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)]


def _contradicted(number: Number, contexts: NumberIndex) -> bool:
    """True when a context has another small number beside at least two of the same words."""
    return any(len(number.near & near) >= 2 for sets in contexts.near.values() for near in sets)


def is_a_fall(number: Number, contexts: NumberIndex) -> bool:
    """Return True if a number has a minus, and contexts say that something fell by it."""
    values = _values(number)
    if not values or max(values) > 0:  # a number that may be positive is looked for as such
        return False
    return any(
        not number.keys.isdisjoint(other.keys)
        for text in contexts.texts
        for other in _read(fold(text), False, None, falls(fold(text)))
    )


def _judge(number: Number, contexts: NumberIndex, question: NumberIndex | None) -> Verdict:
    if number.is_id or is_stated(number, contexts) or is_a_fall(number, contexts):
        return "found"
    if question is not None and number.keys & question.keys:
        return "question"
    if number.small and number.text.isalpha() and not _contradicted(number, contexts):
        return "unchecked"
    largest = max(_values(number), key=abs, default=0.0)
    decade = number.text.endswith("0s") and largest > _YEAR
    if (
        abs(largest) >= _ROUNDABLE
        and not decade
        and any(abs(item - largest) <= _ROUNDING * abs(item) for item in contexts.values())
    ):
        return "rounded"
    return "fabricated"


def judge(
    claim_numbers: Sequence[Number], contexts: NumberIndex, question: NumberIndex | None = None
) -> list[Verdict]:
    """Return the source of each number of one claim. Ids are always "found": words compare them.

    ``unchecked``: a count below ten in words ("the two brothers"), which a writer takes from what
    is listed; only a context that states another count of the same things makes it fabricated.
    ``rounded``: at least 100 and within 0.5 % of a context number. ``derived``: a unit conversion
    of one, or the sum, difference or percentage of two other numbers that the same claim states and
    the contexts hold. (Combinations of numbers that only the contexts hold turn up by chance: nine
    in ten such claims of the labelled sets were unsupported.)
    """
    verdicts = [_judge(number, contexts, question) for number in claim_numbers]
    pairs = list(zip(claim_numbers, verdicts, strict=True))
    stated = [v for n, verdict in pairs if verdict == "found" for v in _values(n)][:_MAX_OPERANDS]
    for position, (number, verdict) in enumerate(pairs):
        if verdict == "fabricated" and any(_is_derived(v, stated) for v in _values(number)):
            verdicts[position] = "derived"
    return verdicts
