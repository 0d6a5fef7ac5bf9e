"""Finding the numbers of a folded text, and reading each as keys.

Two numbers are equal when they share a key; ``numbers`` explains the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ragmetrics.text.number_forms import GROUPS
from ragmetrics.text.number_words import FIRST, PATTERN, SCALES, parse
from ragmetrics.text.words import by_letter

Key = tuple[str, float] | tuple[str, int, int] | tuple[str, str]

_MAX_DIGITS = 24

_MONTH_NAMES = """
january jan|february feb|march mar|april apr|may|june jun|july jul|august aug
|september sept sep|october oct|november nov|december dec
"""

MONTHS = [names.split() for names in _MONTH_NAMES.split("|")]

_MONTHS = {name: month for month, names in enumerate(MONTHS, start=1) for name in names}

_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"

_SCALE = {
    **SCALES,
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

_NUMBER = rf"""
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
    |(?P<word>\b{PATTERN}(?:[\s-](?P<wpct>percent|per\scent)\b)?)
    """

_SCANNER = re.compile(_NUMBER, re.VERBOSE)


@cache
def _eastern() -> re.Pattern[str]:
    """The scanner that also finds 2026年5月3日, which costs each other text time."""
    date = r"(?P<east>(?:(?P<ey>\d{4})年)?(?P<em>\d{1,2})月(?P<ed>\d{1,2})日)"
    return re.compile(f"{date}|{_NUMBER}", re.VERBOSE)


_ANY = re.compile(rf"\d|\b(?:{by_letter(FIRST.split('|'))})\b")


def holds_number(folded: str) -> bool:
    """Return whether a folded text has a digit or a number word."""
    return _ANY.search(folded) is not None


_BEFORE = 24
"""Characters of one word, a mark and a blank that may stand in a number before its first digit."""


def value_key(value: float, dimension: str = "v") -> Key:
    """Return a value as a key: ten significant digits, so that 0.07 x 100 equals 7."""
    return (dimension, float(f"{value:.10g}"))


def _readings(core: str, comma: bool) -> list[float]:
    """Every value the digits may mean: thousands marks, decimal comma, two numbers side by side.

    ``comma``: the text writes decimals with a comma.
    """
    if comma and GROUPS.fullmatch(core):
        return [float(core.replace(".", "").replace(",", "."))]
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
    return [*keys, {value_key(float(year))}] if year else keys


def _number_keys(match: re.Match[str], comma: bool) -> set[Key]:
    readings = _readings(match["core"], comma)
    keys = {value_key(value) for value in readings}
    if match.string[max(0, match.start() - 1)] == "'" and len(match["core"]) == 2:  # "'87"
        keys |= {value_key(century + readings[0]) for century in (1900, 2000)}
    if match["pct"]:
        keys |= {value_key(value / 100) for value in readings}
    elif match["scale"]:
        keys |= {value_key(value * _SCALE[match["scale"].strip()]) for value in readings}
    elif match["unit"] in ("m", "b"):
        keys |= {value_key(value * _SCALE[match["unit"]]) for value in readings}
    return keys


def keys_of(match: re.Match[str], comma: bool) -> list[set[Key]]:
    """Return the keys of each number of a match; a date is a day and a year.

    ``comma``: the text writes decimals with a comma.
    """
    kind = match.lastgroup  # the outer group is the last to end
    if kind == "number":
        too_long = len(match["core"]) > _MAX_DIGITS
        return [{("i", match["core"])} if too_long else _number_keys(match, comma)]
    if kind == "iso":
        return _date(match, match["id"], match["im"], match["iy"])
    if kind == "east":
        return _date(match, match["ed"], match["em"], match["ey"])
    if kind == "dotted":
        first, second = int(match["da"]), int(match["db"])
        year = match["dy"] if len(match["dy"]) == 4 else None
        days = _day_keys(first, second) | _day_keys(second, first)
        if days:
            return [days, {value_key(float(year))}] if year else [days]
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
            return [{value_key(float(match["fw"] or 0) + top / bottom)}]
        return [{value_key(top)}, {value_key(bottom)}]
    if kind == "version" and _MILLIONS.fullmatch(match[0]):
        return [{value_key(float(match[0].replace(".", "")))}]
    if kind == "word":
        value = parse(match[0])
        keys = set() if value is None else {value_key(value)}
        if value is not None and match["wpct"]:
            keys.add(value_key(value / 100))
        return [keys]
    return [] if kind == "skip" else [{("i", match[0].removeprefix("v"))}]


_MILLIONS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")


def is_bare(match: re.Match[str]) -> bool:
    """Return True for digits or words without a currency, a scale, a unit or per cent."""
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


def matches(folded: str) -> Iterator[re.Match[str]]:
    """Find the numbers of a folded text in half the time of searching all of it.

    Every number holds a digit or a number word, so it is looked for only where these stand.
    """
    end = 0
    scanner = _eastern() if "月" in folded else _SCANNER
    for hit in _ANY.finditer(folded):
        place = hit.start()
        if place < end:
            continue
        match = scanner.search(folded, _run_up(folded, place, end))
        if match is None:
            return
        yield match
        end = match.end()


def amounts(match: re.Match[str], comma: bool) -> list[float]:
    """Return every value that digits or words may mean, with their scale."""
    if match["word"]:
        value = parse(match[0])
        return [] if value is None else [value]
    scale = _SCALE[match["scale"].strip()] if match["scale"] and match["scale"] not in "mb" else 1.0
    return [value * scale for value in _readings(match["core"], comma)]
