"""The numbers of a text as values.

A number is a set of keys; two numbers are equal when they share one. Keys: ``("v", value)``,
``("t", hour, minute)``, ``("d", month, day)``. Versions, ids and phone numbers are ``("i",
string)``: they are compared as strings and are no numbers of a claim. Signs are ignored ("fell 5 %"
and "-5 %").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ragmetrics.text.sentences import MARK
from ragmetrics.text.words import content_words, fold

_TEENS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""

_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

_ORDERED = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
"""

UNITS = {word: float(value) for value, word in enumerate(_TEENS.split())}
UNITS |= {f"{word}th": value for word, value in UNITS.items() if value > 12}

TENS = {word: 10.0 * value for value, word in enumerate(_TENS.split(), start=2)}
TENS |= {f"{word[:-1]}ieth": value for word, value in TENS.items()}

_SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "lakh": 1e5,
    "million": 1e6,
    "crore": 1e7,
    "billion": 1e9,
    "trillion": 1e12,
}

ORDINALS = {word: float(value) for value, word in enumerate(_ORDERED.split(), start=1)}

_PARTS = {f"{_ORDERED.split()[value - 1]}s": float(value) for value in (3, 5, 8, 10)}
"""Parts that a number in words counts: "two-thirds"."""

HINTS = {
    "half": (0.5, 50.0),
    "halves": (0.5, 50.0),
    "quarter": (0.25, 25.0),
    "third": (1 / 3,),
    "twice": (2.0,),
    "double": (2.0,),
    "doubled": (2.0,),
    "both": (2.0,),
    "pair": (2.0,),
    "couple": (2.0,),
    "thrice": (3.0,),
    "triple": (3.0,),
    "tripled": (3.0,),
    "dozen": (12.0,),
    "decade": (10.0,),
    "century": (100.0,),
    "once": (1.0,),
    "single": (1.0,),
    **{
        f"{word[:-1]}ie": (10.0 * value, 1900.0 + 10 * value)
        for value, word in enumerate(_TENS.split(), 2)
    },
}
"""Words that justify a digit elsewhere but make no number of a claim themselves."""

_CARDINAL = "|".join(sorted([*UNITS, *TENS], key=len, reverse=True))

_WORD_SCALE = "|".join(_SCALES)

FIRST = "|".join([*UNITS, *TENS, *_SCALES, "dozen"])
"""Words, at least one of them in every number that is written in words."""

_PATTERN = (
    rf"(?:(?:half\s+an?|an?)\s+(?:{_WORD_SCALE}|dozen)\b|(?:{_CARDINAL})\b)"
    rf"(?:(?:\s+and\s+|[\s-]+)(?:{_CARDINAL}|{_WORD_SCALE}|dozen|point\s+(?:{_CARDINAL})"
    rf"|(?<=ty[\s-])(?:{'|'.join(list(ORDINALS)[:9])})|{'|'.join(_PARTS)})\b)*"
)

_TOKEN = re.compile(r"[a-z]+")


def _decimals(words: list[str]) -> float:
    """The digits after "point": ``["five"]`` is 0.5."""
    digits = "".join(str(int(UNITS[word])) for word in words if word in UNITS)
    return float(f"0.{digits}") if digits else 0.0


def _spoken_year(words: list[str]) -> float | None:
    """ "nineteen ninety nine" → 1999: a number 10-99 directly followed by another one."""
    if len(words) not in (2, 3) or not all(word in UNITS or word in TENS for word in words):
        return None
    head = UNITS.get(words[0], TENS.get(words[0], 0.0))
    tail = sum(UNITS.get(word, TENS.get(word, 0.0)) for word in words[1:])
    if not 10 <= head <= 20 or not 10 <= tail <= 99 or (len(words) == 3 and words[1] not in TENS):
        return None
    return head * 100 + tail


def parse(phrase: str) -> float | None:
    """The value of a phrase that ``_PATTERN`` matched; None when it makes no number.

    >>> parse("one point five million"), parse("half a million"), parse("two hundred and five")
    (1500000.0, 500000.0, 205.0)
    """
    words = [word for word in _TOKEN.findall(phrase) if word != "and"]
    year = _spoken_year(words)
    if year is not None:
        return year
    total = current = 0.0
    seen = False
    for position, word in enumerate(words):
        if word in ("a", "an"):
            current, seen = current or 1.0, True
        elif word == "half":
            current, seen = 0.5, True
        elif word in UNITS:
            current, seen = current + UNITS[word], True
        elif word in TENS:
            current, seen = current + TENS[word], True
        elif word in ORDINALS:
            current += ORDINALS[word]
        elif word in _PARTS:
            current /= _PARTS[word]
        elif word == "dozen":
            current, seen = (current or 1.0) * 12, True
        elif word == "hundred":
            current, seen = (current or 1.0) * 100, True
        elif word in _SCALES:
            total, current, seen = total + (current or 1.0) * _SCALES[word], 0.0, True
        elif word == "point":
            rest = words[position + 1 :]
            spoken = [item for item in rest if item in UNITS]
            current += _decimals(spoken)
            for scale in rest:
                current *= _SCALES.get(scale, 1.0)
            return total + current
    return total + current if seen else None


Key = tuple[str, float] | tuple[str, int, int] | tuple[str, str]

_SMALL = 10.0

_NEIGHBOURS = 5

_MAX_DIGITS = 24

_YEAR = 999.0

_MAX_NEAR = 64
"""Places of the same small number whose neighbours are looked at; more are a table of figures."""

_MONTH_NAMES = """
january jan|february feb|march mar|april apr|may|june jun|july jul|august aug
|september sept sep|october oct|november nov|december dec
"""

MONTHS = [names.split() for names in _MONTH_NAMES.split("|")]

_MONTHS = {name: month for month, names in enumerate(MONTHS, start=1) for name in names}

_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"

_SCALE = {
    **_SCALES,
    "k": 1e3,
    "mn": 1e6,
    "mln": 1e6,
    "bn": 1e9,
    "tn": 1e12,
    "m": 1e6,
    "b": 1e9,
}

_UNITS = (
    "kg|g|mg|lbs?|oz|km|cm|mm|nm|ft|in|mi|mph|kmh|f|c|hrs?|h|mins?|secs?|s|ms|[kmgt]b|k?hz|mhz|ghz|kw|kwh|w"
    "|mah|v|ml|l|usd|eur|x|p|rd|st|nd|th"
)

_CORE = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d{1,3}(?:\.\d{3})+,\d+(?!\d)|\d{1,3}(?:[ "
    r"'’]\d{3})+(?:[.,]\d+)?(?!\d)"
    r"|\d+\.\d+|\d+,\d+(?![,\d])|\d+"
)

_SCANNER = re.compile(
    rf"""
    (?P<skip>\b(?:step|passage|figure|fig|table|source|document|doc|context|excerpt|citation|reference|snippet
        |chunk|equation|eq|option|example|method|question|answer|review|reviewer)s?\.?\s*\#?\d+(?:\s*(?:,|and|&|-|to|or)\s*\#?\d+)*\b)
    |(?P<iso>\b(?P<iy>\d{{4}})[-/](?P<im>\d{{1,2}})[-/](?P<id>\d{{1,2}})(?![\d-]))
    |(?P<dotted>\b(?P<da>\d{{1,2}})[/.](?P<db>\d{{1,2}})[/.](?P<dy>\d{{4}}|\d{{2}})(?![\d./]\d))
    |(?P<phone>(?<![\w.])(?:\+\d{{1,3}}[ .-]?)?\(?\d{{3}}\)?[ .-]\d{{3}}[ .-]\d{{4}}(?!\d))
    |(?P<version>\bv\.?\d+(?:\.\d+)*\b|\b\d+(?:\.\d+){{2,}}\b)
    |(?P<dmy>\b(?P<wd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<wm>{_MONTH})(?:,?\s+(?P<wy>\d{{4}})\b)?)
    |(?P<mdy>\b(?P<vm>{_MONTH})\s+(?P<vd>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.]\d|\d)(?:,?\s+(?P<vy>\d{{4}})\b)?)
    |(?P<time>(?<![\d:.])(?P<th>\d{{1,2}})(?::(?P<tm>\d{{1,2}})(?::\d{{1,2}}(?:\.\d+)?)?(?![\d:])\s*(?P<ta>[ap]\.?m\b)?
        |(?:\.(?P<tn>\d\d))?\s*(?P<tb>[ap]\.?m\b)|\s(?P<tc>o'clock\b)
        |(?=\s?(?:-|to)\s?\d{{1,2}}(?:[:.]\d\d)?\s?(?P<td>[ap]\.?m\b))))
    |(?P<fraction>(?<![\w./])(?:(?P<fw>\d{{1,3}})\s+)?(?P<fn>\d{{1,2}})/(?P<fd>\d{{1,2}})(?![\w/]))
    |(?P<number>(?P<cur>[$€£¥₹]\s?)?(?:(?<![\w.])|(?<=\dx))(?P<core>{_CORE})
        (?:(?P<pct>\s?%|[\s-](?:percent(?:age)?|per\scent|pct)\b)
        |(?P<scale>\s?(?:hundred|thousand|million|billion|trillion|lakh|crore|mn|mln|bn|tn)\b|[kmb]\b)
        |(?P<unit>\s?°|(?:{_UNITS})\b)|(?P<by>x(?=\d))|(?![\w]|\.\d|-[a-z]+\d)))
    |(?P<ident>(?<!\w)(?!(?:mid|pre|post|early|late)-\d)(?:[^\W_]*(?:\d[^\W\d_]|[^\W\d_]-?\d)[\w-]*|\w+\d\w*))
    |(?P<word>\b{_PATTERN}(?:[\s-](?P<wpct>percent|per\scent)\b)?)
    """,
    re.VERBOSE,
)


def _by_letter(listed: Iterable[str]) -> str:
    """A pattern of words that tries those of one first letter only: half the time of a list."""
    rests: dict[str, list[str]] = {}
    for word in listed:
        rests.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{letter}(?:{'|'.join(ends)})" for letter, ends in rests.items())


_ANY = re.compile(rf"\d|\b(?:{_by_letter(FIRST.split('|'))})\b")

_BEFORE = 24
"""Characters of one word, a mark and a blank that may stand in a number before its first digit."""


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
    only.
    """

    text: str
    start: int
    end: int
    keys: frozenset[Key]
    small: bool
    near: frozenset[str]

    @property
    def is_id(self) -> bool:
        """True for a version, an id or a phone number."""
        return all(key[0] == "i" for key in self.keys)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _value_key(value: float) -> Key:
    """A value as a key: ten significant digits, so that 0.07 x 100 equals 7."""
    return ("v", float(f"{abs(value):.10g}"))


def _neighbours(folded: str, start: int, end: int) -> frozenset[str]:
    """Stems of the content words within five words on each side of a place of a folded text."""
    before = _NEAR.findall(folded[max(0, start - 80) : start])[-_NEIGHBOURS:]
    after = _NEAR.findall(folded[end : end + 80])[:_NEIGHBOURS]
    near = content_words(" ".join([*before, *after]))
    return frozenset(word for word in near if len(word) > 1 or not word.isdigit())


def _readings(core: str) -> list[float]:
    """Every value the digits may mean: thousands marks, decimal comma, two numbers side by side."""
    if " " in core:
        groups = re.split(r"[ ]", core)
        return [float(re.sub(r"[ ,]", "", core)), *(float(g.replace(",", ".")) for g in groups)]
    plain = core.replace("'", "").replace("’", "")
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+", plain):
        return [float(plain.replace(".", "").replace(",", "."))]
    if plain.count(",") == 1 and "." not in plain:
        whole, decimals = plain.split(",")
        readings = [float(f"{whole}.{decimals}")]
        if len(decimals) == 3:
            return [float(whole + decimals), *readings]
        return readings if len(plain) > 3 else [*readings, float(whole), float(decimals)]
    return [float(plain.replace(",", ""))]


def _day_keys(month: int, day: int) -> set[Key]:
    keys: set[Key] = {("d", month, day)}
    return keys if 1 <= month <= 12 and 1 <= day <= 31 else set()


def _time_keys(hour: str, minute: int, half: str | None) -> set[Key]:
    """The time on the 24-hour clock; both of them where "2:30" leaves morning or afternoon open."""
    value = int(hour)
    if half is not None:
        return {("t", value % 12 + (12 if half.startswith("p") else 0), minute)}
    if hour.startswith("0") or not 1 <= value <= 12:
        return {("t", value, minute)}
    return {("t", value % 12, minute), ("t", value % 12 + 12, minute)}


def _date(match: re.Match[str], day: str, month: str, year: str | None) -> list[set[Key]]:
    number = int(month) if month.isdecimal() else _MONTHS[month.rstrip(".")]
    keys = [_day_keys(number, int(day))]
    return [*keys, {_value_key(float(year))}] if year else keys


def _number_keys(match: re.Match[str]) -> set[Key]:
    readings = _readings(match["core"])
    keys = {_value_key(value) for value in readings}
    if match.string[max(0, match.start() - 1)] == "'" and len(match["core"]) == 2:  # "'87"
        keys |= {_value_key(century + readings[0]) for century in (1900, 2000)}
    if match["pct"]:
        keys |= {_value_key(value / 100) for value in readings}
    elif match["scale"]:
        keys |= {_value_key(value * _SCALE[match["scale"].strip()]) for value in readings}
    elif match["unit"] in ("m", "b"):
        keys |= {_value_key(value * _SCALE[match["unit"]]) for value in readings}
    return keys


def _keys(match: re.Match[str]) -> list[set[Key]]:
    """The numbers that one match stands for, each as its keys; a date is a day and a year."""
    kind = match.lastgroup or ""
    for name in ("iso", "dotted", "dmy", "mdy", "time", "fraction", "number", "word", "skip"):
        if match[name] is not None:
            kind = name
            break
    if kind == "iso":
        return _date(match, match["id"], match["im"], match["iy"])
    if kind == "dotted":
        first, second = int(match["da"]), int(match["db"])
        year = match["dy"] if len(match["dy"]) == 4 else None
        days = _day_keys(first, second) | _day_keys(second, first)
        if days:
            return [days, {_value_key(float(year))}] if year else [days]
        return [{("i", match[0])}]
    if kind == "dmy":
        return _date(match, match["wd"], match["wm"], match["wy"])
    if kind == "mdy":
        return _date(match, match["vd"], match["vm"], match["vy"])
    if kind == "time":
        half = match["ta"] or match["tb"] or match["td"]
        return [_time_keys(match["th"], int(match["tm"] or match["tn"] or 0), half)]
    if kind == "fraction":
        top, bottom = float(match["fn"]), float(match["fd"])
        if bottom and top < bottom:
            return [{_value_key(float(match["fw"] or 0) + top / bottom)}]
        return [{_value_key(top)}, {_value_key(bottom)}]
    if kind == "number":
        too_long = len(match["core"]) > _MAX_DIGITS
        return [{("i", match["core"])} if too_long else _number_keys(match)]
    if kind == "word":
        value = parse(match[0])
        keys = set() if value is None else {_value_key(value)}
        if value is not None and match["wpct"]:
            keys.add(_value_key(value / 100))
        return [keys]
    return [] if kind == "skip" else [{("i", match[0].removeprefix("v"))}]


def _is_bare(match: re.Match[str]) -> bool:
    if match["word"]:
        return not match["wpct"]
    return bool(match["number"]) and not (
        match["cur"] or match["pct"] or match["scale"] or match["unit"]
    )


def _run_up(folded: str, place: int, end: int) -> int:
    """Where a number may begin whose first digit or number word stands at ``place``, from ``end``
    on.
    """
    start = max(end, place - _BEFORE)
    for _ in range(3):  # "half an hundred", however wide its blanks are
        while start > end and (folded[start - 1].isalnum() or folded[start - 1] in "_-"):
            start -= 1
        while start > end and folded[start - 1].isspace():
            start -= 1
    return start


def _matches(folded: str) -> Iterator[re.Match[str]]:
    """What ``_SCANNER.finditer`` finds, in half its time.

    Every number holds a digit or a number word, so it is looked for only where these stand.
    """
    end = 0
    for hit in _ANY.finditer(folded):
        place = hit.start()
        if place < end:
            continue
        match = _SCANNER.search(folded, _run_up(folded, place, end))
        if match is None:
            return
        yield match
        end = match.end()


def numbers(text: str, *, claim: bool = True) -> list[Number]:
    """The numbers of a text in reading order.

    With ``claim`` the text is a claim: citation marks and code are left out, and so are "passage
    2", "one", and numbers in words that are no cardinals. Without it everything that may justify a
    number counts.
    """
    result: list[Number] = []
    folded = fold(text)
    if not _ANY.search(folded):
        return result
    if claim:
        folded = _IDIOM.sub(_blank, fold(_CODE.sub(_blank, _MARK.sub(_blank, text))))
    seen: Counter[str] = Counter()
    for match in _matches(folded):
        if match["skip"] is not None and not claim:
            result.extend(_plain(folded, match.start(), match.end()))
            continue
        if claim and match["word"] is not None and match["word"] in ("one", "zero"):
            continue
        for keys in _keys(match):
            if not keys:
                continue
            if claim and match["unit"] == "s" and match["core"][-1] == "0":  # a year of the 1980s
                years = [key[1] for key in keys if isinstance(key[1], float) and key[1] > _YEAR]
                keys = keys | {_value_key(year + last) for year in years for last in range(10)}
            values = [key[1] for key in keys if key[0] == "v" and isinstance(key[1], float)]
            near = _NONE
            if min(values, default=_SMALL) < _SMALL and seen[match[0]] < _MAX_NEAR:
                seen[match[0]] += 1
                near = _neighbours(folded, *match.span())
            small = max(values, default=_SMALL) < _SMALL and _is_bare(match)
            result.append(Number(match[0], *match.span(), frozenset(keys), small, near))
    return result


def _plain(folded: str, start: int, end: int) -> Iterable[Number]:
    for digits in re.finditer(r"\d+", folded[start:end]):
        span = (start + digits.start(), start + digits.end())
        near = _neighbours(folded, *span)
        yield Number(digits[0], *span, frozenset({_value_key(float(digits[0]))}), False, near)


Verdict = Literal["found", "question", "rounded", "derived", "unchecked", "fabricated"]

_MAX_OPERANDS = 20

_ROUNDABLE = 100.0

_ROUNDING = 0.005

_HINT = re.compile(r"\b(" + "|".join([*HINTS, *ORDINALS]) + r")s?\b")

_NOON = re.compile(r"\b(?:noon|midday|midnight)\b")

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
            result.keys |= {_value_key(float(run)) for run in _RUNS.findall(number.text)}
        # "18-26 April": the day of a date may be told without its month.
        result.keys |= {
            _value_key(float(key[2])) for key in number.keys if len(key) == 3 and key[0] == "d"
        }
        if number.near:
            for key in number.keys:
                result.near.setdefault(key, []).append(number.near)
    folded = fold(text)
    for match in _NOON.finditer(folded):
        hour = 24 if match[0] == "midnight" else 12
        result.keys |= {("t", hour, 0), ("t", hour % 24, 0), _value_key(float(hour))}
    for match in _HINT.finditer(folded):
        word = match[1]
        values = (
            *HINTS.get(word, ()),
            *([ORDINALS[word]] if word in ORDINALS else []),
        )
        near = _neighbours(folded, *match.span())
        for value in values:
            result.keys.add(_value_key(value))
            result.near.setdefault(_value_key(value), []).append(near)
    return result


def _is_stated(number: Number, contexts: NumberIndex) -> bool:
    hits = number.keys & contexts.keys
    if not hits or not number.small or not number.near:
        return bool(hits)
    return any(number.near & near for key in hits for near in contexts.near.get(key, ()))


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
            if _value_key(value) in map(_value_key, results):
                return True
    return False


def _values(number: Number) -> list[float]:
    return [key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)]


def _contradicted(number: Number, contexts: NumberIndex) -> bool:
    """True when a context has another small number beside at least two of the same words."""
    return any(len(number.near & near) >= 2 for sets in contexts.near.values() for near in sets)


def _judge(number: Number, contexts: NumberIndex, question: NumberIndex | None) -> Verdict:
    if number.is_id or _is_stated(number, contexts):
        return "found"
    if question is not None and number.keys & question.keys:
        return "question"
    if number.small and number.text.isalpha() and not _contradicted(number, contexts):
        return "unchecked"
    largest = max(_values(number), default=0.0)
    decade = number.text.endswith("0s") and largest > _YEAR
    if (
        largest >= _ROUNDABLE
        and not decade
        and any(abs(item - largest) <= _ROUNDING * item for item in contexts.values())
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
