"""Which chunks hold a fact: word by word after normalisation, numbers compared as values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ragmetrics.numbers import Number, numbers
from ragmetrics.stopwords import STOP_WORDS
from ragmetrics.text import clean, fold, stem, words

SHORT = 2
"""An alias of this many characters, or of digits only, needs a word of the fact beside it."""


def _spoken(number: Number) -> str:
    """One spelling for a number: ``15``, 17:30 as ``t17x30``, a day as ``d3x4``."""
    for key in sorted(number.keys, key=str, reverse=True):
        if len(key) == 3:
            return f"{key[0]}{key[1]}x{key[2]}"
    values = [key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)]
    spoken = f"{max(values):.10g}" if values else number.text
    return f"{spoken} percent" if re.search(r"%|per\s?cent|pct", number.text) else spoken


def canonical(text: str) -> list[str]:
    """The words of a text in order, stemmed, every number in one spelling."""
    folded = fold(text)
    parts: list[str] = []
    place = 0
    for number in numbers(text, claim=False):
        if number.start < place or number.is_id:
            continue
        parts += [folded[place : number.start], f" {_spoken(number)} "]
        place = number.end
    parts.append(folded[place:])
    return [stem(word) for word in words("".join(parts))]


def _is_weak(alias: str) -> bool:
    plain = fold(alias).strip()
    return len(plain) <= SHORT or plain.replace(",", "").replace(".", "").isdigit()


def _occurrences(wanted: Sequence[str], held: Sequence[str]) -> list[int]:
    first, size = wanted[0], len(wanted)
    return [
        place
        for place, word in enumerate(held)
        if word == first and list(held[place : place + size]) == list(wanted)
    ]


def _in_capitals(alias: str, text: str) -> bool:
    """An alias in capitals ("US") is another word in small letters."""
    plain = unicodedata.normalize("NFKC", clean(text))
    return re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", plain) is not None


def holds(text: str, held: Sequence[str], fact: str, aliases: Sequence[str] = ()) -> bool:
    """True when a chunk (its text, and the same as ``canonical`` words) holds a fact or an alias of
    it.

    The longest wording is tried first. An alias of one or two characters, or of digits only, counts
    only with another word of the fact within five words.
    """
    context = {word for word in canonical(fact) if word not in STOP_WORDS}
    for alias in sorted({fact, *aliases}, key=lambda item: (-len(item), item)):
        name = alias.strip()
        wanted = canonical(name)
        if not wanted:
            continue
        if len(name) > 1 and name.isalpha() and name.isupper() and not _in_capitals(name, text):
            continue
        places = _occurrences(wanted, held)
        if _is_weak(name) and context - set(wanted):
            near = context - set(wanted)
            places = [
                place
                for place in places
                if near & set(held[max(0, place - 5) : place + len(wanted) + 5])
            ]
        if places:
            return True
    return False
