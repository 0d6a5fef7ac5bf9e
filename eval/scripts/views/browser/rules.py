"""The plain rules by which a case fails, and the words for them.

Standard library only. A rule that rests on a metric which a run does not have says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, gt, lt


@dataclass(frozen=True, slots=True)
class _FailureRule:
    """A case fails when ``metric`` compares so with ``value``; the first rule rests on no metric.

    ``word``: for a column of the list; ``counted``: behind a number of cases.
    """

    word: str
    counted: str
    says: str
    metric: str
    value: float
    compares: Callable[[float, float], bool] = eq


RULES = (
    _FailureRule("error", "with an error", "the call failed", "", 0),
    _FailureRule(
        "answered",
        "answered though unanswerable",
        "answered, though the documents hold no answer",
        "abstention_accuracy",
        0,
    ),
    _FailureRule(
        "refused", "refused", "refused, though the documents hold the answer", "over_refusal", 1
    ),
    _FailureRule("no gold", "no gold retrieved", "no gold support was retrieved", "mrr", 0),
    _FailureRule(
        "forbidden",
        "with a forbidden claim",
        "says what must not be said",
        "forbidden_claims",
        0,
        gt,
    ),
    _FailureRule(
        "number",
        "with a number without a source",
        "a number that no source holds",
        "numeric_fabrications",
        0,
        gt,
    ),
    _FailureRule(
        "claim",
        "claim unsupported",
        "the judge found a claim that the retrieved chunks do not support",
        "faithfulness",
        1,
        lt,
    ),
    _FailureRule(
        "pass=0", "pass=0", "outcome, flags, citations or time not as expected", "pass", 0
    ),
)
"""First come, first shown."""

CUSTOM = len(RULES) + 1
"""The code of a case that does not hold a condition of the user's."""

CUSTOM_WORD = "fails"


def word_of(code: int) -> str:
    """The failing rule in a word, by its code; empty for 0, which is success."""
    return "" if not code else CUSTOM_WORD if code == CUSTOM else RULES[code - 1].word


def counted_word(code: int) -> str:
    """The failing rule as it stands behind a number of cases."""
    return "condition not met" if code == CUSTOM else RULES[code - 1].counted


WORDS = (*(rule.word for rule in RULES), CUSTOM_WORD)
"""The words of all codes from 1 on."""
