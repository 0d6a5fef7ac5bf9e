"""Which sentences of an answer are claims, and of which type; every skip has its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ragmetrics.abstention import is_lack, is_refusal
from ragmetrics.sentences import MARK, Unit, units
from ragmetrics.stopwords import STOP_WORDS
from ragmetrics.text import clean, content_words, fold, words

CLAIM_RULES = 1
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
SHORT_ITEM = 5
MIN_CLAUSE = 3

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
    r"(?:so|therefore|thus|hence|in summary|in conclusion|overall|yes|no|sure|certainly|of course"
    r"|however|additionally|furthermore|moreover)[,!:] "
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
# A list marker that a claim was cut with, at the start of a line or left over after a last colon.
_MARKER = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+|(?<=:)\s+\d{1,2}\s*\.?\s*\Z", re.MULTILINE)
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
_TALK = re.compile(
    r"\W*(?:(?:hi|hello|hey|welcome)\b.{0,40}$|thanks?\b|(?:sure|certainly|of course"
    r"|absolutely)[,!.]?"
    r"(?:\s(?:here|let)\b.*)?$|(?:great|good) question|you'?re welcome|(?:please )?let me know\b"
    r"|(?:please )?feel free\b|i hope\b|hope this\b|if you (?:have|need|want|would like)\b.{0,80}"
    r"\b(?:questions?|help|let me know|ask|assist)|is there anything\b|would you like\b"
    r"|(?:i'?m |i'?d be )?happy to help|here(?:'s| is| are)\b.{0,80}"
    r"\b(?:summary|answer|list|overview|information|response)\b.{0,60}$)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|might"
    r"|\w{3,}ed|\w{3,}[^s\W]s|became|began|went|made|took|gave|said|won|wrote|led|held|grew|ran)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r";\s+|,\s+(?:and|but)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: ``text`` is ``answer[start:end]``; ``lead`` is the stem line of a short list item.

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

    claims: tuple[Claim, ...]
    skipped: tuple[Skipped, ...]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def bare(text: str) -> str:
    """The text, same length, without citation marks, list markers and mentions such as "(Passage
    2)".
    """
    for pattern in (_MARKS, _META, _MARKER):
        text = pattern.sub(_blank, text)
    return text


def claim_type(text: str) -> ClaimType:
    """``general`` before ``inference``, else ``assertion``; quoted words do not count."""
    plain = _MONTH_MAY.sub(" ", _QUOTED.sub(" ", text))
    if _GENERAL.search(plain):
        return "general"
    return "inference" if _INFERENCE.search(plain) else "assertion"


def _skip_reason(text: str, unit: Unit, lead: str) -> SkipReason | None:
    if unit.kind in ("heading", "stem", "code"):
        return unit.kind
    plain = bare(text).strip()
    found = words(fold(plain))
    if all(word in STOP_WORDS for word in found):
        return "no content word"
    if plain.rstrip("\"'”’*_) ").endswith(("?", "？", "؟")):
        return "question"
    if _TALK.match(plain):
        return "greeting or offer"
    if is_refusal(plain) or is_lack(plain):
        return "abstention"
    if len(found) < MIN_WORDS and not lead:
        return "too short"
    return None


def _clauses(text: str) -> list[tuple[int, int]]:
    """Spans of clauses with a finite verb and at least three content words each."""
    spans: list[tuple[int, int]] = []
    start = 0
    for cut in _CLAUSE.finditer(text):
        left, right = text[start : cut.start()], text[cut.end() :]
        if _stands_alone(left) and _stands_alone(right):
            spans.append((start, cut.start()))
            start = cut.end()
    return [*spans, (start, len(text))]


def _stands_alone(clause: str) -> bool:
    return bool(_VERB.search(clause)) and len(content_words(fold(clause))) >= MIN_CLAUSE


def extract(answer: str, *, clauses: bool = False) -> Extraction:
    """The claims of an answer: sentences and list items, lead-ins removed.

    With ``clauses`` a sentence is also cut at "; " and at ", and" / ", but" where both sides stand
    alone.
    """
    text = clean(answer)
    claims: list[Claim] = []
    skipped: list[Skipped] = []
    stem_line = ""
    for unit in units(text):
        sentence = text[unit.start : unit.end]
        short = unit.kind == "item" and len(sentence.split()) < SHORT_ITEM
        lead = stem_line if short else ""
        reason = _skip_reason(sentence, unit, lead)
        if unit.kind in ("stem", "heading"):
            stem_line = sentence if unit.kind == "stem" else ""
        elif unit.kind == "prose":
            stem_line = ""
        if reason is not None:
            skipped.append(Skipped(sentence, unit.start, unit.end, reason))
            continue
        claims.extend(_cut(text, unit, lead, clauses))
    return Extraction(tuple(claims), tuple(skipped))


def _cut(text: str, unit: Unit, lead: str, clauses: bool) -> list[Claim]:
    start = unit.start
    match = _LEAD_IN.match(text[start : unit.end])
    if match and len(words(fold(text[start + match.end() : unit.end]))) >= MIN_WORDS:
        start += match.end()
    body = text[start : unit.end]
    spans = _clauses(body) if clauses else [(0, len(body))]
    kind = claim_type(body)
    return [
        Claim(body[a:b], start + a, start + b, kind, (unit.start, unit.end), lead) for a, b in spans
    ]
