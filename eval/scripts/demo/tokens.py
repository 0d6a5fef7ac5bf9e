"""Cuts text of any language into the terms that retrieval counts.

In: a text. Out: its terms in order. Example: ``terms("Set __slots__, 東京都!")`` is
``["set", "slots", "東京", "京都"]``.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

TOKENIZER = "unicode-words-1"
"""Name of these rules; it enters the key of a cached index, so change it with them."""

_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]+"
)
"""Runs in scripts that put no space between words."""


def terms(text: str) -> list[str]:
    """Terms of ``text`` in order, repeats kept; [] when there is no letter or digit.

    Text is brought to one form (NFKC, casefold). A term is a run of letters, digits, marks and
    inner underscores; a name such as ``set_name`` also gives its parts. Scripts without spaces
    between words give pairs of neighbouring characters (a run of one gives that one).
    """
    found: list[str] = []
    for run in _words().findall(unicodedata.normalize("NFKC", text).casefold()):
        word = run.strip("_")
        if not word:
            continue
        if word.isascii():
            found.append(word)
            if "_" in word:
                found += [part for part in word.split("_") if part]
        else:
            found += _unspaced(word)
    return found


def _unspaced(word: str) -> list[str]:
    """``word`` with its runs of unspaced script as pairs of characters."""
    found: list[str] = []
    at = 0
    for match in _UNSPACED.finditer(word):
        found += [word[at : match.start()]] if match.start() > at else []
        run = match[0]
        found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        at = match.end()
    return found + ([word[at:]] if at < len(word) else [])


@cache
def _words() -> re.Pattern[str]:
    """``\\w`` lacks combining marks, without which Indic words fall apart: add them."""
    marks = [
        char
        for char in map(chr, range(min(sys.maxunicode, 0xFFFF)))
        if unicodedata.category(char) in ("Mn", "Mc")
    ]
    return re.compile(rf"[\w{''.join(marks)}]+")
