"""The script of a text and, for seven languages of the Latin script, a guess at the language.

Words cannot be compared across languages: a claim in another language than its contexts would look
unsupported. The guess counts function words and stays silent when they are few or tied.
"""

from __future__ import annotations

import re
from collections import Counter

_SCRIPTS = (
    ("latin", 0x41, 0x24F),
    ("greek", 0x370, 0x3FF),
    ("cyrillic", 0x400, 0x52F),
    ("hebrew", 0x590, 0x5FF),
    ("arabic", 0x600, 0x77F),
    ("indic", 0x900, 0xDFF),
    ("thai", 0xE00, 0xEFF),
    ("hangul", 0x1100, 0x11FF),
    ("kana", 0x3040, 0x30FF),
    ("han", 0x3400, 0x9FFF),
    ("hangul", 0xAC00, 0xD7AF),
)
_FUNCTION_WORDS = {
    "en": "the of and to is that it was for with are this which from were have they been",
    "de": "der die und das ist nicht mit sich auf dem den ein eine von zu werden wird auch",
    "fr": "le les des est et une dans pour qui que pas sur avec plus sont cette du aux",
    "es": "el los las es una del para con por como pero más este son fue y lo se",
    "it": "il che di della per sono con una nel gli dei anche alla è le più dal si",
    "pt": "os uma não para com dos mais como foi ao das pelo pela são também às e do",
    "nl": "het een van dat niet zijn voor met op ook wordt aan door bij naar deze werd",
}
_LANGUAGES = {name: frozenset(listed.split()) for name, listed in _FUNCTION_WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+")
SAMPLE = 4000
MIN_HITS = 4


def script(text: str) -> str | None:
    """The script of most letters among the first 4,000 characters; None without a known letter."""
    counts: Counter[str] = Counter()
    for char, times in Counter(text[:SAMPLE]).items():
        if char.isalpha():
            code = ord(char)
            for name, low, high in _SCRIPTS:
                if low <= code <= high:
                    counts[name] += times
                    break
    if counts["kana"]:
        counts["han"] += counts.pop("kana")
    return max(counts, key=lambda name: counts[name]) if counts else None


def language(text: str) -> str | None:
    """A Latin-script language that clearly leads by function words (twice the next), else None."""
    words = Counter(_WORD.findall(text[:SAMPLE].lower()))
    hits = sorted(
        ((sum(words[word] for word in known), name) for name, known in _LANGUAGES.items()),
        reverse=True,
    )
    (first, name), (second, _) = hits[0], hits[1]
    return name if first >= MIN_HITS and first >= 2 * second else None


def differ(one: str, other: str) -> bool:
    """True when two texts are surely of different scripts or languages."""
    scripts = script(one), script(other)
    if None not in scripts and scripts[0] != scripts[1]:
        return True
    languages = language(one), language(other)
    return None not in languages and languages[0] != languages[1]
