"""The content words of a text in a given language, by which claims are compared.

English keeps its own stop words and stemmer. In the other languages function words are dropped, and
what is left is cut to its first six letters, which stands for a stemmer: it folds most inflection,
and on parallel text it told supported claims from others as well as whole words or better. Thai is
written without spaces: its text is cut where a function word stands, and the rest into groups of
three signs.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from ragmetrics.text.language import FUNCTION_WORDS
from ragmetrics.text.number_scan import MONTHS
from ragmetrics.text.number_words import ORDINALS, TENS, UNITS
from ragmetrics.text.words import STOP_WORDS, fold, stem, words

_KEPT_LETTERS = 6

_THAI_SIGNS = 3

_ARABIC_MARKS = re.compile("[\u064b-\u065f\u0670\u0640]")

_ARABIC_LETTERS = str.maketrans("أإآةى", "اااهي")

_ARABIC_START = re.compile("(?:[وف]?[بك]?ال|[وف]?لل|و(?=.{4}))(?=..)")

_ARABIC_END = re.compile("(?<=..)(?:هما|هم|ها|ات|ون|ين|ان|يه|نا|ه)$")


@cache
def _function_words(language: str) -> frozenset[str]:
    return frozenset(fold(FUNCTION_WORDS.get(language, "")).split())


@cache
def _thai_function_word() -> re.Pattern[str]:
    """The longest function word at a place."""
    return re.compile("|".join(sorted(_function_words("th"), key=lambda word: (-len(word), word))))


def _light_arabic(word: str) -> str:
    """Without vowel marks, conjunction, article and the commonest endings."""
    plain = _ARABIC_MARKS.sub("", word).translate(_ARABIC_LETTERS)
    plain = _ARABIC_START.sub("", plain, count=1) if _ARABIC_START.match(plain) else plain
    return _ARABIC_END.sub("", plain) if len(plain) > 4 else plain


@lru_cache(maxsize=65536)
def _cut(word: str, language: str) -> str:
    if language == "ar":
        word = _light_arabic(word) or word
    return word if word[0].isdigit() else word[:_KEPT_LETTERS]


_NUMBER_WORDS = {
    stem(word): f"{value:g}"
    for word, value in (UNITS | TENS | ORDINALS).items()
    if word != "second"
}

_MONTHS = {name: names[0] for names in MONTHS for name in names}

_ENDING = re.compile(r"(?<=\d)(?:st|nd|rd|th|s)$")

_TIME = re.compile(
    r"\b(\d{1,2})(?::(\d{1,2})\b(?!:)(?:\s?([ap])\.?m\b\.?)?|(?:\.(\d\d))?\s?([ap])\.?m\b\.?)"
)


def _same_times(folded: str) -> str:
    """A folded text whose times are one word of 24 hours, and whose per cent are a word."""
    if "%" in folded:
        folded = folded.replace("%", " percent")
    return _TIME.sub(_of_24_hours, folded)


def _of_24_hours(match: re.Match[str]) -> str:
    half = match[3] or match[5]
    hour = int(match[1]) % 12 + 12 * (half == "p") if half else int(match[1])
    return f"{hour}h{int(match[2] or match[4] or 0)}"


@lru_cache(maxsize=65536)
def _english(word: str) -> str:
    """The stem; of a number or a month the form that all its spellings share."""
    if word[0].isdigit():
        return _ENDING.sub("", word)
    found = stem(word)
    return _NUMBER_WORDS.get(found) or _MONTHS.get(found, found)


def content_stems(folded: str, language: str | None) -> dict[str, str]:
    """Each distinct stem of a folded text, in order, with the first word that it came from."""
    spelling: dict[str, str] = {}
    if language in (None, "en"):
        for word in words(_same_times(folded)):
            if word not in STOP_WORDS:
                spelling.setdefault(_english(word), word)
        return spelling
    name, dropped = language or "", _function_words(language or "")
    if language == "th":
        found = words(_thai_function_word().sub(" ", folded), _THAI_SIGNS)
    else:
        found = words(folded)
    for word in found:
        if word not in dropped:
            spelling.setdefault(_cut(word, name), word)
    return spelling
