"""The support scorer: how much of a claim's words one window of the contexts holds.

Score = share of the claim's distinct content words in the best window of three consecutive
sentences of one chunk; a claim of several sentences gets the score of its weakest one. A number of
the claim that neither the contexts nor the question holds vetoes the claim. Windows never cross
chunks. The score sees no negation and no word order: a mismatch of negation is reported as a
warning. Measured agreement with people is in docs/validation.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from ragmetrics.support_model import THRESHOLDS as LANGUAGE_THRESHOLDS
from ragmetrics.text import numbers as text_numbers
from ragmetrics.text.content import content_stems
from ragmetrics.text.numbers import Number, NumberIndex, numbers
from ragmetrics.text.plain import PlainText, plain
from ragmetrics.text.refusals import declines
from ragmetrics.text.sentences import MARK, Unit, units
from ragmetrics.text.talk import talk_ends
from ragmetrics.text.words import STOP_WORDS, clean, content_words, fold, words
from ragmetrics.windows import (
    WINDOW,
    Amount,
    PreparedChunk,
    best_hit,
    merged,
    window_bits,
    window_span,
)

SUPPORT_RULES = 5

THRESHOLDS: dict[ClaimType, float] = {"assertion": 0.55, "inference": 0.45, "general": 0.55}
"""Thresholds for English; ``support_model.py`` has those measured for other languages."""

_MIN_CONTENT = 3

_FLAGS: tuple[text_numbers.Verdict, ...] = ("fabricated", "derived", "rounded")

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|nobody|nothing)\b|n['’]t\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ClaimSupport:
    """One claim's verdict with its evidence.

    ``chunk`` is the place in the list of contexts, from 0.
    """

    supported: bool
    score: float
    chunk: int | None
    window: tuple[int, int] | None
    missing: tuple[str, ...]
    vetoing: tuple[str, ...]
    derived: tuple[str, ...]
    rounded: tuple[str, ...]
    negated: bool
    """The claim has a negation."""
    window_negated: bool
    restated: frozenset[str] = frozenset()
    """Stems that the window does not have, of numbers that it has in other words."""

    @property
    def negation_mismatch(self) -> bool:
        """Whether exactly one of the claim and its best window is negated."""
        return self.chunk is not None and self.negated != self.window_negated

    @property
    def strength(self) -> float:
        """The score, 0.0 when a number vetoes: what the mean and the ranking use."""
        return 0.0 if self.vetoing else self.score


def stands_plainly(chunk: PreparedChunk, text: str) -> bool:
    """Return whether a chunk contains a claim verbatim, for claims without content words."""
    return fold(text).strip() in fold(chunk.text)


def _distinct(matches: Iterable[Number]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(number.text.strip() for number in matches))


def _has_negation(text: str) -> bool:
    return _NEGATION.search(text) is not None


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim taken apart: ``plain`` has no citation marks, ``sentences`` are stems with words.

    ``stated``: the numbers that its contexts must contain. ``amounts``: these, and "an hour" or
    "a half", which a context may state in other words.
    """

    plain: str
    sentences: tuple[Mapping[str, str], ...]
    stated: tuple[Number, ...]
    kind: ClaimType
    negated: bool
    amounts: tuple[Amount, ...]


def claim_words(claim: str, lead: str = "", language: str | None = None) -> ClaimWords:
    """Take a claim apart; the last 256 are kept, since each is compared with many passages.

    A claim under a ``lead`` is one sentence with it. Sentences without a content word are left out.
    """
    return _known_words(claim, lead, language)


@lru_cache(maxsize=256)
def _known_words(claim: str, lead: str, language: str | None) -> ClaimWords:
    plain = bare(clean(claim))
    parts = [plain[unit.start : unit.end] for unit in units(plain)]
    if lead:
        parts = [f"{lead} {plain}"]
    stated = tuple(numbers(plain, language=language))
    by_place: dict[tuple[int, int], list[Number]] = {}
    for number in (*stated, *text_numbers.amounts_in_words(plain)):
        by_place.setdefault((number.start, number.end), []).append(number)
    return ClaimWords(
        plain,
        tuple(stems for part in parts if (stems := content_stems(fold(part), language))),
        stated,
        claim_type(plain),
        _has_negation(plain),
        tuple(
            Amount(
                frozenset(content_stems(group[0].phrase, language)),
                frozenset(content_stems(group[0].text, language)),
                tuple(group),
            )
            for group in by_place.values()
        ),
    )


def _language(chunks: Sequence[PreparedChunk]) -> str | None:
    return chunks[0].language if chunks else None


def score_claim(
    claim: str,
    chunks: Sequence[PreparedChunk],
    *,
    question: NumberIndex | None = None,
    context_numbers: NumberIndex | None = None,
    kind: ClaimType | None = None,
    lead: str = "",
    threshold: float | None = None,
    size: int = WINDOW,
    restated: bool = True,
) -> ClaimSupport | None:
    """Check one claim against chunks; return None when it has no content word.

    Args:
        claim: the claim's text; citation marks in it are ignored.
        chunks: prepared contexts; none gives score 0 and "not supported".
        question: numbers of the question, which an answer may repeat.
        context_numbers: the numbers of all chunks together, when the caller has them already.
        kind: the claim's type; found from the text when not given.
        lead: words put before a short list item; its numbers are not checked.
        threshold: instead of the type's own (0.55 assertion and general, 0.45 inference).
        size: sentences in a window.
        restated: count the words of amounts that the window states in other words (2 kg as
            2,000 g).
    """
    read = claim_words(claim, lead, _language(chunks))
    sentences, stated = read.sentences, read.stated
    amounts = read.amounts if restated else ()
    if not sentences:
        return None
    weakest = min(
        (best_hit(sentence, chunks, size, amounts) for sentence in sentences),
        key=lambda hit: hit.score,
    )
    verdicts = (
        text_numbers.judge(stated, context_numbers or merged(chunks), question) if stated else []
    )
    by = {
        flag: _distinct(n for n, verdict in zip(stated, verdicts, strict=True) if verdict == flag)
        for flag in _FLAGS
    }
    usual = _usual(_language(chunks), kind or read.kind)
    needed = _needed(sentences, usual, threshold)
    chunk = chunks[weakest.chunk] if weakest.chunk >= 0 else None
    window = window_span(chunk, weakest.first, size) if chunk else None
    bits, masks = window_bits(weakest.first, size), chunk.masks if chunk else {}
    return ClaimSupport(
        supported=weakest.score >= needed and not by["fabricated"],
        score=weakest.score,
        chunk=weakest.chunk if chunk else None,
        window=window,
        missing=tuple(
            word
            for stem, word in weakest.sentence.items()
            if not masks.get(stem, 0) & bits and stem not in weakest.restated
        ),
        vetoing=by["fabricated"],
        derived=by["derived"],
        rounded=by["rounded"],
        negated=read.negated,
        window_negated=bool(chunk and window and _has_negation(chunk.text[slice(*window)])),
        restated=weakest.restated,
    )


def has_threshold(language: str | None) -> bool:
    """Return True for English, a language with a measured threshold, or an unknown language."""
    return language in (None, "en") or language in LANGUAGE_THRESHOLDS


def _usual(language: str | None, kind: ClaimType) -> float:
    return LANGUAGE_THRESHOLDS.get(language or "", THRESHOLDS[kind])


def _needed(
    sentences: Sequence[Mapping[str, str]], usual: float, threshold: float | None = None
) -> float:
    """The share of a claim's words that supports it; of very few words all."""
    if sum(map(len, sentences)) < _MIN_CONTENT:
        return 1.0
    return usual if threshold is None else threshold


def supported_together(
    claim: str,
    chunks: Sequence[PreparedChunk],
    *,
    question: NumberIndex | None = None,
    kind: ClaimType | None = None,
    lead: str = "",
) -> bool:
    """Return True when the best windows of all chunks together contain enough of a claim's words.

    As ``score_claim``, but what one chunk lacks another may hold: the numbers likewise. False for a
    claim without a content word.
    """
    read = claim_words(claim, lead, _language(chunks))
    sentences, stated = read.sentences, read.stated
    if not sentences:
        return False
    needed = _needed(sentences, _usual(_language(chunks), kind or read.kind))
    for sentence in sentences:
        held: set[str] = set()
        for chunk in chunks:
            hit = best_hit(sentence, [chunk], WINDOW, read.amounts)
            bits = window_bits(hit.first, WINDOW) if hit.count else 0
            held |= {stem for stem in sentence if chunk.masks.get(stem, 0) & bits} | hit.restated
        if len(held) < needed * len(sentence):
            return False
    verdicts = text_numbers.judge(stated, merged(chunks), question) if stated else []
    return "fabricated" not in verdicts


CLAIM_RULES = 3

ClaimType = Literal["assertion", "inference", "general"]

SkipReason = Literal[
    "heading",
    "stem",
    "code",
    "question",
    "greeting or offer",
    "abstention",
    "too short",
    "no content word",
]

MIN_WORDS = 3

_SHORT_ITEM = 5

_MIN_CLAUSE = 3

_THING = (
    r"(?:passages?|contexts?|texts?|documents?|docs?|sources?|articles?|excerpts?|information"
    r"|notes?|data|snippets?|references?|search results?|chunks?|summary|material|content)"
)

_SOURCES = (
    r"(?:the |these |this |your )?"
    r"(?:(?:provided|given|above|retrieved|supplied|available|following|same|context|search) )*"
    rf"{_THING}(?: (?:provided|given|above|supplied))?"
    rf"(?: #?\d+(?: ?(?:,|and|&) ?(?:{_THING} )?#?\d+)*)?"
)

_CONNECTIVE = (
    r"(?:so|therefore|thus|hence|in summary|in short|in conclusion|overall|however|additionally"
    r"|furthermore|moreover)[,!:] "
)

_LEAD_IN = re.compile(
    (
        rf" ?(?:{_CONNECTIVE})?(?:(?:based (?:up)?on|according to|per|from|in|using"
        rf"|as (?:stated|mentioned|described|noted|seen|shown|indicated)(?: in)?) {_SOURCES} ?[,:] "
        rf"|{_SOURCES} (?:also )?(?:says?|states?|mentions?|suggests?|indicates?|notes?|explains?"
        rf"|shows?|describes?|adds?|reports?) that )| ?{_CONNECTIVE}"
    ).replace(" ", r"\s"),
    re.IGNORECASE,
)

_META = re.compile(
    rf"\(?\b{_THING}\s#?\d+(?:\s?(?:,|and|&|-|to)\s?#?\d+)*\)?".replace(" ", r"\s"), re.IGNORECASE
)

_MARKS = re.compile(MARK)

_MARK_STARTS = frozenset("[【(")

_DIGIT = re.compile(r"\d")

# A list marker that a claim was cut with, at the start of a line or left over after a last colon.
# Only blanks of its own line stand before it: line breaks there cost the square of their number.
_MARKER = re.compile(
    r"^[^\S\n]*(?:[-*•]|\(?\d{1,2}[.)])\s+|(?<=:)\s+\d{1,2}\s*(?:\.\s*)?\Z", re.MULTILINE
)

_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”")

_GENERAL = re.compile(r"\b(?:generally|typically|usually|in general)\b", re.IGNORECASE)

_INFERENCE = re.compile(
    r"\b(?:may|might|could|likely|unlikely|possibly|perhaps|probably|suggests?|suggesting)\b",
    re.IGNORECASE,
)

_MONTH_MAY = re.compile(
    r"\bMay\b(?=\s+\d)|(?<=\d\s)May\b"
    r"|\b(?:in|of|since|until|by|from|during|every|last|next|early|late|mid)[\s-]May\b"
)

_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|might"
    r"|\w{3,}ed|\w{3,}[^s\W]s|became|began|went|made|took|gave|said|won|wrote|led|held|grew|ran)\b",
    re.IGNORECASE,
)

_CLAUSE = re.compile(r";\s+|,\s+(?:and|but)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """One claim: ``text`` is ``answer[start:end]`` as a reader sees it (``plain``); ``lead`` is the
    stem line of a short list item.

    ``sentence`` is the span of the whole sentence, which citation marks refer to.
    """

    text: str
    start: int
    end: int
    type: ClaimType
    sentence: tuple[int, int]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A unit of the answer that is no claim, and why."""

    text: str
    start: int
    end: int
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Extraction:
    """All claims and all skipped units of an answer, each in reading order."""

    claims: tuple[AnswerClaim, ...]
    skipped: tuple[Skipped, ...]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def bare(text: str) -> str:
    """The text, same length, without citation marks, list markers and mentions such as "(Passage
    2)".
    """
    if not _MARK_STARTS.isdisjoint(text):
        text = _MARKS.sub(_blank, text)
    if _DIGIT.search(text):
        text = _META.sub(_blank, text)
    return _MARKER.sub(_blank, text)


def claim_type(text: str) -> ClaimType:
    """``general`` before ``inference``, else ``assertion``; quoted words do not count."""
    plain = _QUOTED.sub(" ", text)
    if "May" in plain:
        plain = _MONTH_MAY.sub(" ", plain)
    if _GENERAL.search(plain):
        return "general"
    return "inference" if _INFERENCE.search(plain) else "assertion"


def _skip_reason(text: str, unit: Unit, lead: str) -> SkipReason | None:
    if unit.kind in ("heading", "stem", "code"):
        return unit.kind
    plain = bare(text).strip()
    plain_words = words(fold(plain))
    if all(word in STOP_WORDS for word in plain_words):
        return "no content word"
    if plain.rstrip("\"'”’*_) ").endswith(("?", "？", "؟")):
        return "question"
    if declines(plain):
        return "abstention"
    if talk_ends(plain) == len(plain):
        return "greeting or offer"
    if len(plain_words) < MIN_WORDS and not lead:
        return "too short"
    return None


def _clauses(text: str) -> list[tuple[int, int]]:
    """Spans of clauses with a finite verb and at least three content words each."""
    cuts = [match.span() for match in _CLAUSE.finditer(text)]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(text)]
    # No word crosses a cut, so what stands on a side of it is the sum over the pieces there.
    pieces = [_verb_and_words(text[a:b]) for a, b in zip(starts, ends, strict=True)]
    verbs, content = (list(accumulate(column, initial=0)) for column in zip(*pieces, strict=True))

    def stands_alone(first: int, behind: int) -> bool:
        enough = content[behind] - content[first] >= _MIN_CLAUSE
        return bool(enough and verbs[behind] > verbs[first])

    spans: list[tuple[int, int]] = []
    first = 0
    for cut in range(1, len(pieces)):
        if stands_alone(first, cut) and stands_alone(cut, len(pieces)):
            spans.append((starts[first], ends[cut - 1]))
            first = cut
    return [*spans, (starts[first], len(text))]


def _verb_and_words(text: str) -> tuple[bool, int]:
    """Whether there is a finite verb, and the number of content words."""
    return _VERB.search(text) is not None, len(content_words(fold(text)))


def extract(
    answer: str, *, clauses: bool = False, denial: tuple[int, int] | None = None
) -> Extraction:
    """The claims of an answer: sentences and list items, lead-ins removed.

    With ``clauses`` a sentence is also cut at "; " and at ", and" / ", but" where both sides stand
    alone. ``denial``: the span of a sentence that is a claim although it is worded like an
    abstention.
    """
    read = plain(answer)
    text = read.text
    claims: list[AnswerClaim] = []
    skipped: list[Skipped] = []
    stem_line = ""
    for unit in units(text):
        sentence = text[unit.start : unit.end]
        short = unit.kind == "item" and len(sentence.split()) < _SHORT_ITEM
        lead = stem_line if short else ""
        reason = _skip_reason(sentence, unit, lead)
        if reason == "abstention" and read.span(unit.start, unit.end) == denial:
            reason = None
        if unit.kind in ("stem", "heading"):
            stem_line = sentence[talk_ends(sentence) :] if unit.kind == "stem" else ""
        elif unit.kind == "prose":
            stem_line = ""
        if reason is not None:
            skipped.append(Skipped(sentence, *read.span(unit.start, unit.end), reason))
            continue
        claims.extend(_cut(read, unit, lead, clauses))
    return Extraction(tuple(claims), tuple(skipped))


def _lead_ends(sentence: str) -> int:
    match = _LEAD_IN.match(sentence)
    return match.end() if match else 0


def _cut(read: PlainText, unit: Unit, lead: str, clauses: bool) -> list[AnswerClaim]:
    text, start = read.text, unit.start
    for opening in (talk_ends, _lead_ends, talk_ends):
        ends = start + opening(text[start : unit.end])
        if ends > start and len(words(fold(text[ends : unit.end]))) >= MIN_WORDS:
            start = ends
    body = text[start : unit.end]
    spans = _clauses(body) if clauses else [(0, len(body))]
    kind = claim_type(body)
    sentence = read.span(unit.start, unit.end)
    return [
        AnswerClaim(body[a:b], *read.span(start + a, start + b), kind, sentence, lead)
        for a, b in spans
    ]
