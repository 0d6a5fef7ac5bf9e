"""Cheap facts of a text, which rule out costly patterns that cannot match anywhere in it.

Most texts hold no credential and no personal detail, and dozens of patterns would look at each of
their characters. Each fact is a necessary condition, looked up once: passing over a pattern whose
condition fails loses no match.

    >>> facts_of("Call me.").has("token", "secret")
    False
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

_ONLY_BY_CASE = "\u0130\u0131\u017f\u212a"
"""Letters outside ASCII that a pattern takes for i, s or k when it ignores case."""

SHORTEST_LONG_WORD = 14
"""Characters without a blank from which a word may be a token."""

_NUMBERS = re.compile(r"\d[\d ./()-]*")
_MANY_DIGITS = re.compile(r"\d(?:[ ./()-]{0,3}\d){6}")
_LOCAL_NUMBER = re.compile(r"0\d{1,5}\)?[ /.-]{1,3}\d\d")
_COUNTRY_CODE = re.compile(r"\d\d(?<=(?<![A-Za-z0-9])[A-Za-z]{2}\d\d)(?:[ -]?[A-Za-z0-9]){8}")
_FOUR_NUMBERS = re.compile(r"\d\.\d{1,3}\.\d{1,3}\.\d")
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_GROUP_BEFORE = re.compile(r"(?:\A|[^\w:])[0-9A-Fa-f]{0,4}\Z")


class TextFacts:
    """The facts of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        is_odd = not text.isascii() and any(letter in text for letter in _ONLY_BY_CASE)
        self.low = None if is_odd else text.lower()
        """The text in small letters, place by place; None where this cannot be told."""

    def has(self, *parts: str) -> bool:
        """Whether one of the parts, in lower case, may be in the text, in any case."""
        if (low := self.low) is None:
            return True
        for part in parts:  # noqa: SIM110 - any() costs more than the search in a short text
            if part in low:
                return True
        return False

    def matches(self, pattern: re.Pattern[str], *begins: str) -> Iterator[re.Match[str]]:
        """Yield the matches of ``pattern``, whose every match must begin with one of ``begins``."""
        end = 0
        for start in self.places(*begins):
            if start >= end and (match := pattern.match(self.text, start)):
                yield match
                end = match.end()

    def places(self, *parts: str) -> Iterator[int]:
        """Return where one of the parts may begin, in order; every place where this is unknown."""
        if (low := self.low) is None:
            return iter(range(len(self.text)))
        found = set()
        for part in parts:
            at = low.find(part)
            while at >= 0:
                found.add(at)
                at = low.find(part, at + 1)
        return iter(sorted(found))

    @cached_property
    def long_words(self) -> str:
        """The words that may contain a token, with blanks between them."""
        words = self.text.split()
        return " ".join([word for word in words if len(word) >= SHORTEST_LONG_WORD])

    @cached_property
    def _numbers(self) -> str:
        """All digits with the signs that a number may have between them."""
        return "|".join(_NUMBERS.findall(self.text))

    @cached_property
    def has_many_digits(self) -> bool:
        """Whether seven or more digits are close: a card, phone or social security number."""
        return _MANY_DIGITS.search(self._numbers) is not None

    @cached_property
    def has_local_number(self) -> bool:
        """Whether a group of digits begins with 0 and another group follows it."""
        return _LOCAL_NUMBER.search(self._numbers) is not None

    @cached_property
    def has_country_code(self) -> bool:
        """Two letters, two digits, and eight letters or digits: as an IBAN begins."""
        return _COUNTRY_CODE.search(self.text) is not None

    @cached_property
    def has_four_numbers(self) -> bool:
        """Whether there are four numbers with dots between them, as in an IPv4 address."""
        return _FOUR_NUMBERS.search(self._numbers) is not None

    @cached_property
    def has_colon_groups(self) -> bool:
        """Whether there are hexadecimal groups with colons between them, as in an IPv6 address."""
        text = self.text
        return any(
            _GROUP_BEFORE.search(text, max(0, match.start() - 5), match.start())
            for match in _COLONS.finditer(text)
        )


@lru_cache(maxsize=1)
def facts_of(text: str) -> TextFacts:
    """Return the facts of a text, shared by the detectors that check it one after another."""
    return TextFacts(text)
