"""Sentences that decline to answer, or say that the sources lack the answer.

The phrases of all languages are in ``refusal_phrases.toml``; all of them are looked for in every
text, since a phrase of one language is none of another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from ragmetrics.text.content import content_stems
from ragmetrics.text.language import FUNCTION_WORDS
from ragmetrics.text.phrase_search import PhraseSearch
from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.words import content_words, fold, words

Declines = Literal["refusal", "lack", ""]


def _spaced(pattern: str) -> str:
    """A pattern whose blanks stand for any white space, and one before ``?`` for none too."""
    return pattern.replace(" ?", r"\s*").replace(" ", r"\s+")


def _folded(pattern: str) -> str:
    """A pattern as the folded text has its letters."""
    composed = unicodedata.normalize("NFKC", pattern)
    return composed.replace("ß", "ss").replace("ς", "σ")


_ENGLISH = frozenset(
    ("the", "and", "this", "that", "you", "your", "with", "from", "which", "have", "for", "but")
)
"""Words that are none in the other languages."""

_OTHERS = frozenset(
    word for code, listed in FUNCTION_WORDS.items() if code != "en" for word in listed.split()
).difference(FUNCTION_WORDS["en"].split())
_FOREIGN_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")


class _Phrases(NamedTuple):
    """Phrases as one search, refusals first, how many are refusals, and each one's language."""

    search: PhraseSearch
    refusals: int
    codes: tuple[str, ...]


@cache
def _phrases_of(*codes: str) -> _Phrases:
    refusals = [(item, code) for code in codes for item in phrases()[code].refusal]
    lacks = [(item, code) for code in codes for item in phrases()[code].lack]
    patterns, owners = zip(*refusals, *lacks, strict=True)
    search = PhraseSearch(_spaced(_folded(item)) for item in patterns)
    return _Phrases(search, len(refusals), owners)


def _is_english(folded: str) -> bool:
    """Whether a text is plainly English: two English words, and none of another language. A title
    such as "The Guide and the Rules" makes a Polish sentence no English one."""
    found = folded.split()
    return (
        len(_ENGLISH.intersection(found)) > 1
        and _OTHERS.isdisjoint(found)
        and _FOREIGN_LETTER.search(folded) is None
    )


def _phrases_for(folded: str) -> _Phrases:
    """The phrases to look for: in a plainly English text only those of English."""
    return _phrases_of("en") if _is_english(folded) else _phrases_of(*phrases())


def _may_decline(folded: str) -> bool:
    """False for a plainly English text without any of the words that its phrases cannot spare."""
    return _marks().search(folded) is not None or not _is_english(folded)


def _any(alternatives: Iterable[str], pattern: str) -> re.Pattern[str]:
    return re.compile(_spaced(pattern.format("|".join(map(_folded, alternatives)))))


@cache
def _supposed(code: str) -> re.Pattern[str]:
    """What opens a sentence that only supposes: "If the notes do not say it, call the desk"."""
    return _any([phrases()[code].when], r"^\W*(?:{})")


@cache
def _of_a_part() -> re.Pattern[str]:
    return _any((own.part for own in phrases().values()), r"(?<!\w)(?:{})(?!\w)")


@cache
def _marks() -> re.Pattern[str]:
    return _any([phrases()["en"].marks], "{}")


@cache
def _negation(code: str) -> re.Pattern[str]:
    return _any([phrases()[code].negation], "{}")


@cache
def _speakers(code: str) -> re.Pattern[str]:
    """The nouns of a language for what the bot read, and its word for *I*."""
    own = phrases()[code]
    return _any([own.source, own.me], r"(?<!\w)(?:{})(?!\w)")


_REST_OF_WORD = re.compile(r"\w*")

_QUOTE = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}[”“]|„[^“”\"\n]{1,300}[“”\"]|«[^»\n]{1,300}»"
    r"|»[^«\n]{1,300}«|「[^」\n]{1,300}」|『[^』\n]{1,300}』|(?<!\w)['‘‚‹][^'’‘›\n]{1,300}['’‘›](?!\w)"
)


_QUOTE_BEGINS = re.compile("[\"“„«»「『'‘‚‹]")


def without_quotes(text: str) -> str:
    """The text, same length, with quoted words blanked; a text that is one quotation stays."""
    if _QUOTE_BEGINS.search(text) is None:
        return text
    plain = _QUOTE.sub(lambda match: " " * len(match[0]), text)
    return plain if any(map(str.isalnum, plain)) else text


_LAST_CLAUSE = re.compile(r"[,;:–—]\s[^,;:–—]*$")


def _without_question(folded: str) -> str:
    """The sentence without a question: "I lack that, so could you ask them?" says "I lack that"."""
    if not folded.rstrip("\"')*_ ").endswith(("?", "؟")):
        return folded
    asks = _LAST_CLAUSE.search(folded)
    return folded[: asks.start()] if asks else ""


@lru_cache(maxsize=256)
def declines(sentence: str) -> Declines:
    """How a sentence declines: a ``refusal`` of the speaker, a ``lack`` of the sources, or not.

    Quoted words decide nothing, nor does a question, nor a sentence that only supposes ("If the
    notes are silent").
    """
    folded = _without_question(fold(without_quotes(sentence)))
    if not _may_decline(folded):
        return ""
    search, refusals, codes = _phrases_for(folded)
    number = search.first_in(folded)
    if number is None or _supposed(codes[number]).match(folded):
        return ""
    return "refusal" if number < refusals else "lack"


def lacks_a_part(sentence: str) -> bool:
    """Return True if a sentence that declines is about a part: the exact date, further details."""
    return _of_a_part().search(fold(sentence)) is not None


_ASKED = 2 / 3
"""Share of the words of one of two questions from which sentences answer it."""

_DEGREES = frozenset(
    [
        *("many", "much", "long", "often", "far", "high", "large"),
        *("hoch", "lang", "lange", "viel", "viele", "oft", "weit", "groß"),
    ]
)
"""Words that only ask how much of something there is."""

_QUESTION_ENDS = re.compile(r"(?<=[?？؟])|(?<=[.!])\s")


_QUESTION_MARK = re.compile("[?？؟]")

_MOST_PARTS = 6


@cache
def _joins(code: str) -> re.Pattern[str]:
    joining = phrases()[code].also if code in phrases() else ""
    return _any([joining], r"(?<!\w)(?:{})(?!\w)|[?？؟]") if joining else _QUESTION_MARK


def _question_parts(question: str, language: str | None) -> list[set[str]]:
    """The content words of each part of a question; of a text with a question, only of that."""
    sentences = [text for text in _QUESTION_ENDS.split(fold(question)) if text.strip()]
    asking = [text for text in sentences if text.rstrip().endswith(("?", "؟"))]
    code = language or "en"
    parts = [part for text in asking or sentences for part in _joins(code).split(text)]
    stems = (content_stems(part, language) for part in parts)
    asked = ({stem for stem, word in part.items() if word not in _DEGREES} for part in stems)
    return [part for part in asked if part]


def answers_a_part(question: str, statement: str, declining: str, language: str | None) -> bool:
    """Return True if a text answers one part of a question, and another text declines the rest.

    The first has two thirds of the content words that only one part has, the second none of them.
    False for a question of one part, or of more than six.
    """
    parts = _question_parts(question, language)
    if not 2 <= len(parts) <= _MOST_PARTS:
        return False
    ours, theirs = (content_stems(fold(text), language).keys() for text in (statement, declining))
    for place, part in enumerate(parts):
        own = part.difference(*parts[:place], *parts[place + 1 :])
        if own and len(own & ours) >= _ASKED * len(own) and own.isdisjoint(theirs):
            return True
    return False


def says_the_same(sentence: str, window: str) -> bool:
    """Return whether a sentence only repeats how the passages themselves decline.

    The window is negated where the sentence is, and holds its nouns for the sources, its *I* and
    every word of its phrases that is no function word.
    """
    ours, theirs = fold(without_quotes(sentence)), fold(window)
    held = {*words(theirs), *content_words(theirs)}
    search, _, codes = _phrases_for(ours)
    for number, match in search.all_in(ours):
        code = codes[number]
        negated = _negation(code).search
        if negated(ours) and not negated(theirs):
            return False
        end = _REST_OF_WORD.match(ours, match.end()).end()  # type: ignore[union-attr]
        phrase = content_words(ours[match.start() : end])
        if not held.issuperset([*phrase, *_speakers(code).findall(ours)]):
            return False
    return True
