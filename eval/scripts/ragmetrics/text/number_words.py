"""Numbers in words: "one point five million", "half a hundred", "nineteen ninety nine"."""

from __future__ import annotations

import re

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

SCALES = {
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

_WORD_SCALE = "|".join(SCALES)

FIRST = "|".join([*UNITS, *TENS, *SCALES, "dozen"])
"""Words, at least one of them in every number that is written in words."""

PATTERN = (
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
    """The value of a phrase that ``PATTERN`` matched; None when it makes no number.

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
        elif word in SCALES:
            total, current, seen = total + (current or 1.0) * SCALES[word], 0.0, True
        elif word == "point":
            rest = words[position + 1 :]
            spoken = [item for item in rest if item in UNITS]
            current += _decimals(spoken)
            for scale in rest:
                current *= SCALES.get(scale, 1.0)
            return total + current
    return total + current if seen else None
