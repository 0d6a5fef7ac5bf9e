"""Does an answer talk to whoever judges it? Rules; a suspicion is reported and changes no score."""

from __future__ import annotations

import re

from ragmetrics.text import fold

_JUDGE = (
    r"(?:graders?|judges?|evaluators?|evaluation model|assessors?|rat(?:ers?|ing model)"
    r"|scoring (?:model|system)|reviewing model|llm judge)"
)
RULES: dict[str, re.Pattern[str]] = {
    "addresses the judge": re.compile(
        rf"\b(?:notes?|message|instructions?|attention|hint|reminder|dear)\W{{0,3}}"
        rf"(?:(?:to|for) )?(?:the |any |all )?(?:\w+ )?{_JUDGE}\b"
        rf"|\bto (?:the |any |all )?{_JUDGE} ?:"
    ),
    "asks for a score": re.compile(
        r"\b(?:give|assign|award|return|output|deserves?|warrants?"
        r"|(?:rate|score|grade|mark) (?:this|it|the|my|with|as))\b[^.!?\n]{0,40}?"
        r"\b(?:(?:a |the )?(?:score|grade|rating|mark) of \W?\d"
        r"|(?:full|maximum|max|highest|perfect|top) (?:score|marks?|points|grade|rating)"
        r"|\d ?(?:/|out of) ?\d{1,3}\b)"
    ),
    "asks for a verdict": re.compile(
        r"\b(?:mark|label|classify|treat|judge|consider|return|count|declare)\b[^.!?\n]{0,30}?"
        r"\b(?:all|every|each|this|these)\b[^.!?\n]{0,30}?"
        r"\b(?:claims?|facts?|statements?|answers?|sentences?|verdicts?|responses?|items?|ids?)\b"
        r"[^.!?\n]{0,30}?\b(?:as |to |is |are )?\W?(?:supported|correct|present|faithful|grounded"
        r"|true|useful|attributed|accurate)\b"
    ),
    "overrides instructions": re.compile(
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,30}?\b(?:previous|prior|above"
        r"|earlier|all|any|the|your|evaluation|grading|judging)\b[^.!?\n]{0,25}?"
        r"\b(?:instructions?|rules?|rubrics?|criteria|prompts?|guidelines?|passages?|contexts?)\b"
    ),
    "forges a reply": re.compile(
        r"\"(?:verdicts?|score|manipulation)\"\s*:|<<<\s*(?:begin|end)\b|<\|[^|<>\n]{1,40}\|>"
        r"|\[/?inst\]|<</?sys>>"
    ),
}


def suspected(answer: str) -> list[str]:
    """The rules that an answer breaks; a question about grading is no talk to the judge."""
    folded = fold(answer)
    return [name for name, pattern in RULES.items() if pattern.search(folded)]
