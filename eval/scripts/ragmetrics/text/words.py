"""Text rules that every metric shares: the normalised copy for matching, words, stems, stop words.

Version of these rules: ``TEXT_RULES``; it changes whenever a stop word, the stemmer or the folding
does, and it is part of the definition id of every metric that stands on it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

TEXT_RULES = 2

# Folded one by one before NFKC. Fractions get a space so that "2½" does not become "21/2", the en
# dash
# gets two because it joins two ends ("2.5 mya–10,000") where a hyphen makes one word.
_FOLDS = {
    **dict.fromkeys("‘’‚‛′´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑−", "-"),
    **dict.fromkeys("‒–", " - "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f", ""),
    "½": " 1/2",
    "¼": " 1/4",
    "¾": " 3/4",
    "⅓": " 1/3",
    "⅔": " 2/3",
    "⅛": " 1/8",
    "⁄": "/",
}

_FOLD_TABLE = str.maketrans(_FOLDS)

_SURROGATE = re.compile("[\ud800-\udfff]")

# Starters that compose with the character before them (Unicode NFC quick check "maybe", class 0).
_COMPOSING = frozenset(
    "\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0cc2\u0cd5\u0cd6\u0d3e\u0d57\u0dcf\u0ddf\u102e\u1b35"
    "\U0001133e\U00011357\U000114b0\U000114ba\U000114bd\U000115af\U00011930\U00011127"
) | {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}

# One alternative a kind: numbers stay whole, scripts written without spaces are cut into runs.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)

# Vowel signs and other marks that no letter composes with: a word keeps them ("हिन्दी").
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0903\u093a-\u093c\u093e-\u094f\u0951-\u0957"
    "\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd"
    "\u0b01-\u0b03\u0b3c-\u0b4d\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0ccd"
    "\u0d00-\u0d03\u0d3e-\u0d4d\u0d82\u0d83\u0dca-\u0ddf"
)

_WORD = re.compile(
    rf"[{UNSPACED}]+|\d+(?:[.,]\d+)+"
    rf"|[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|[{_MARKS}])*(?:'[^\W\d_{UNSPACED}]+)*",
    re.UNICODE,
)

_ASCII_WORD = re.compile(r"\d+(?:[.,]\d+)+|[A-Za-z0-9]+(?:'[A-Za-z]+)*", re.ASCII)
"""The same words of a text in ASCII, twice as fast."""

_IS_UNSPACED = re.compile(rf"[{UNSPACED}]")


def by_letter(listed: Iterable[str]) -> str:
    """Return a pattern that tries words by their first letter: half the time of a list.

    A star at the end of a word stands for any ending.
    """
    rests: dict[str, list[str]] = {}
    for word in sorted(listed, key=len, reverse=True):
        rests.setdefault(word[0], []).append(word[1:].replace("*", r"\w*"))
    return "|".join(f"{letter}(?:{'|'.join(ends)})" for letter, ends in rests.items())


@dataclass(frozen=True, slots=True)
class Normalised:
    """A copy for matching. ``offsets[i]`` is the place in the original of character i of ``text``.

    ``offsets`` has one entry more than ``text``: the original's length. None means that both are
    equal.
    """

    text: str
    offsets: tuple[int, ...] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A span of the copy as a span of the original."""
        return (start, end) if self.offsets is None else (self.offsets[start], self.offsets[end])


def clean(text: str) -> str:
    """The text with lone surrogates as U+FFFD, its length kept: it can be stored as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def fold(text: str) -> str:
    """The copy for matching: NFKC, casefolded, plain quotes, no zero-width characters."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", clean(text).translate(_FOLD_TABLE)).casefold()


@lru_cache(maxsize=4096)
def _joins(char: str) -> bool:
    """True when NFKC may merge or reorder ``char`` with the one before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.combining(first) != 0 or first in _COMPOSING


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Spans that normalisation cannot mix with each other.

    Dropped characters belong to the span before.
    """
    start = 0
    for index in range(1, len(text)):
        char = text[index]
        # A dropped character must not part a letter from its accent: NFKC sees them side by side.
        if (ord(char) < 0x300 and _FOLDS.get(char) != "") or (
            _FOLDS.get(char) != "" and not _joins(char)
        ):
            yield start, index
            start = index
    if text:
        yield start, len(text)


def normalise(text: str) -> Normalised:
    """``fold(text)`` with the map back into ``text``."""
    if text.isascii():
        return Normalised(text.lower(), None)
    parts: list[str] = []
    offsets: list[int] = []
    for start, end in _clusters(text):
        part = fold(text[start:end])
        parts.append(part)
        offsets.extend([start] * len(part))
    offsets.append(len(text))
    return Normalised("".join(parts), tuple(offsets))


def _signs(run: str) -> list[str]:
    """The signs of an unspaced run: a character with the marks that stand on it (Thai vowels)."""
    signs: list[str] = []
    for char in run:
        if signs and unicodedata.category(char)[0] == "M":
            signs[-1] += char
        else:
            signs.append(char)
    return signs


def _sign_groups(run: str, size: int) -> Iterator[str]:
    """Overlapping groups, as search engines cut scripts that are written without spaces."""
    signs = _signs(run)
    if len(signs) < size:
        yield run
    for index in range(len(signs) - size + 1):
        yield "".join(signs[index : index + size])


def words(folded: str, signs: int = 2) -> list[str]:
    """All words of a folded text in order; numbers are one word, thousands commas dropped.

    Scripts that are written without spaces are cut into overlapping groups of so many ``signs``.
    """
    if folded.isascii():
        listed = _ASCII_WORD.findall(folded)
        return [word.replace(",", "") for word in listed] if "," in folded else listed
    result: list[str] = []
    for word in _WORD.findall(folded):
        if word[0] > "\u0dff" and _IS_UNSPACED.match(word):
            result.extend(_sign_groups(word, signs))
        elif "," in word:
            result.append(word.replace(",", ""))
        else:
            result.append(word)
    return result


def has_fewer_words(folded: str, number: int) -> bool:
    """Whether a folded text has fewer words than a number; a long one is not read to its end."""
    found = sum(1 for _ in islice(_WORD.finditer(folded), number))
    return found < number and len(words(folded)) < number


def has_word(text: str) -> bool:
    """Whether ``words`` would find any."""
    return _WORD.search(text) is not None


def is_unspaced(text: str) -> bool:
    """Return whether a text has any sign of a script that is written without spaces."""
    return _IS_UNSPACED.search(text) is not None


def word_spans(folded: str) -> list[tuple[str, int, int]]:
    """Words of a folded text with their places, runs of an unspaced script one character a word."""
    spans: list[tuple[str, int, int]] = []
    for match in _WORD.finditer(folded):
        word, start = match.group(), match.start()
        if word[0] > "\u0dff" and _IS_UNSPACED.match(word):
            spans.extend((char, start + i, start + i + 1) for i, char in enumerate(word))
        else:
            spans.append((word.replace(",", ""), start, match.end()))
    return spans


def _undouble(stemmed: str) -> str:
    """``stopp`` → ``stop``; ll, ss and zz stay (``fill``, ``pass``)."""
    if len(stemmed) > 3 and stemmed[-1] == stemmed[-2] and stemmed[-1] not in "lsz":
        return stemmed[:-1]
    return stemmed


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The word without possessive, plural, -ed, -ing and last e; other scripts as they are."""
    if word.endswith("'s"):
        word = word[:-2]
    word = word.replace("'", "")
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word and len(base) > 2 and not set(base).isdisjoint("aeiouy"):
            word = _undouble(base)
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word


def content_words(folded: str) -> list[str]:
    """Stems of the words that carry meaning, in order, repeats kept. The text must be folded."""
    return [stem(word) for word in words(folded) if word not in STOP_WORDS]


def overlap(answer: str, reference: str) -> tuple[float, float] | None:
    """(F1, recall) of content words, repeats counted, in [0, 1]; None for no word to expect."""
    ours, expected = (Counter(content_words(fold(text))) for text in (answer, reference))
    if not expected:
        return None
    shared = (ours & expected).total()
    return 2 * shared / (ours.total() + expected.total()), shared / expected.total()


def spelled(folded: str) -> dict[str, str]:
    """Each distinct stem of a folded text, in order, with the first word that it came from."""
    spelling: dict[str, str] = {}
    for word in words(folded):
        if word not in STOP_WORDS:
            spelling.setdefault(stem(word), word)
    return spelling


_LISTED = """
a an the this that these those such some any each every all both either neither other another
i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her
hers herself it its itself they them their theirs themselves one ones
who whom whose which what when where why how whether
be am is are was were been being do does did doing done have has had having
will would shall should can could may might must ought
and or but nor so if then else than as because while although though since until unless
of at by for from in into on onto to toward towards with within without about above below over
under between among through during before after up down out off against around per via upon along
across also too very just only even still again there here thus hence therefore however moreover
not no yes more most much many few less own same further once various several certain etc
overall additionally furthermore similarly specifically respectively finally lastly
's isn't aren't wasn't weren't don't doesn't didn't can't cannot couldn't won't wouldn't shouldn't
it's that's there's i'm you're they're we're he's she's i've you've they've we've i'd i'll you'll
"""

STOP_WORDS = frozenset(_LISTED.split())
