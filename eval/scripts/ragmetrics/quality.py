"""Six plain checks of an answer, and their share: is it there, sourced, and in the asked form?"""

from __future__ import annotations

import re

from ragmetrics import abstention
from ragmetrics.sentences import units
from ragmetrics.text import fold

CHECKS = (
    "answer_not_empty",
    "contexts_exist",
    "has_citations",
    "no_fallback_phrase",
    "retrieval_scores_ok",
    "list_question_gets_list",
)
WORDED = ("no_fallback_phrase", "list_question_gets_list")
"""Checks that look for English words."""
_FALLBACK = re.compile(
    r"\b(?:something went wrong|an error (?:has )?occurred|please try again|unable to "
    r"(?:generate|process)"
    r"|no (?:results?|documents?|answer) (?:was |were )?found|internal server error|request "
    r"timed out)\b"
)
_LIST_QUESTION = re.compile(
    r"^\W*(?:please )?(?:list|enumerate|name (?:the|all|some|\d|two|three|four|five))\b"
    r"|\bwhat are (?:the |some |all )?(?:\w+ ){0,3}(?:types|kinds|steps|ways|reasons|options"
    r"|requirements|benefits"
    r"|advantages|disadvantages|features|components|examples|differences|stages|phases|symptoms|causes|methods|rules"
    r"|parts)\b|\bwhich (?:\w+ ){1,3}are (?:there|available|supported)\b"
    r"|\bgive (?:me )?(?:a list|some examples|\d+|two|three|four|five)\b|\bwhat steps\b"
)
_LAST = re.compile(r"\s(?:and|or)\s")


def is_list_question(question: str) -> bool:
    """True when a question asks for several things by its wording (English)."""
    return _LIST_QUESTION.search(fold(question)) is not None


def _is_series(sentence: str) -> bool:
    """ "A, B, and C" or "A; B; C": cut by hand, since a pattern for it is quadratic."""
    if sentence.count(";") >= 2:
        return True
    before, comma, last = sentence.rpartition(",")
    if last.lstrip().startswith(("and ", "or ")):
        return "," in before  # "A, and B" are two
    return bool(comma) and _LAST.search(last) is not None


def is_list(answer: str) -> bool:
    """True for at least two list items or table rows, or a sentence that is a series of three."""
    found = units(answer)
    rows = sum(unit.kind in ("item", "table") for unit in found)
    return rows >= 2 or any(_is_series(answer[unit.start : unit.end]) for unit in found)


def checks(
    answer: str,
    *,
    question: str,
    contexts: int,
    citations: int,
    answerable: bool | None,
    best_score: float | None,
    min_score: float,
    covered: bool = True,
) -> dict[str, bool | None]:
    """Each check: True passed, False failed, None does not apply.

    An unanswerable case may well be answered by a fallback phrase and without a citation; a bot
    that sends no retrieval scores, or a question that asks for no list, cannot fail those checks.
    An empty answer fails the first check, and the checks of its wording do not apply. Nor do these
    apply in a language that is not ``covered``, where only a phrase that is found says something.
    """
    present = bool(answer.strip())
    fallback = abstention.detect(answer).abstained or bool(_FALLBACK.search(fold(answer)))
    judged = present and answerable is not False
    return {
        "answer_not_empty": present,
        "contexts_exist": contexts > 0,
        "has_citations": citations > 0 if judged else None,
        "no_fallback_phrase": not fallback if judged and (covered or fallback) else None,
        "retrieval_scores_ok": None if best_score is None else best_score > min_score,
        "list_question_gets_list": (
            is_list(answer)
            if judged and covered and not fallback and is_list_question(question)
            else None
        ),
    }


def share(found: dict[str, bool | None]) -> float:
    """Checks passed / checks that apply; the first always applies."""
    applying = [passed for passed in found.values() if passed is not None]
    return sum(applying) / len(applying)
