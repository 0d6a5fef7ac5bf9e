"""How the words of a vault are written within its sentences: which capitals belong to names.

A heading or a sentence begins with a capital; a question that takes its words up needs to know
whether the word is a name. What the vault's own sentences do tells it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from drafting.sections import Section

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_STRESS = re.compile(r"[*_]+")
_CODE = re.compile(r"`[^`]*`")


class Casing:
    """Counts of every word within sentences, but for each sentence's first."""

    def __init__(self, every: Iterable[Section] = ()) -> None:
        self._seen: Counter[str] = Counter()
        for section in every:
            for sentence in section.sentences:
                self._seen.update(_TOKEN.findall(_CODE.sub(" ", sentence))[1:])

    def first(self, words: str) -> str:
        """``words`` for the middle of a question: the first one small, unless it is a name."""
        marks = _STRESS.match(words)
        start = marks.end() if marks else 0
        if not _TOKEN.match(words, start):
            return words
        return words[:start] + _TOKEN.sub(self._word, words[start:], count=1)

    def all(self, words: str) -> str:
        """The same for each word, outside of code: for headings in Title Case."""
        parts = re.split(r"(`[^`]*`)", words)
        return "".join(
            part if part.startswith("`") else _TOKEN.sub(self._word, part) for part in parts
        )

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        if not word[0].isupper() or any(char.isupper() for char in word[1:]):
            return word  # small already, or written as SQL and JavaScript are
        if word == "I":
            return word
        small = word[0].lower() + word[1:]
        return small if self._seen[small] >= self._seen[word] else word

    def base(self, gerund: str) -> str | None:
        """The verb behind a word in -ing: the form that the vault uses most; None when none is.

        "storing" is stor, store or (by a doubled letter) none: only "store" is a word.
        """
        stem = gerund.lower().removesuffix("ing")
        if len(stem) < 2 or stem == gerund.lower():
            return None
        forms = [stem, f"{stem}e"]
        if len(stem) > 2 and stem[-1] == stem[-2]:
            forms.append(stem[:-1])
        best = max(forms, key=lambda form: self._seen[form])
        return best if self._seen[best] else None
