"""The seam between the embedded bot and the toolkit's guardrails.

``check_input`` scores a question before anything is searched, ``check_output`` an answer before it
is sent. Both give entries of the response's ``guardrail`` object, and say whether to block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guardrails import injection, leakage


@dataclass(frozen=True, slots=True)
class Verdict:
    """``scores`` as the response shows them: numbers in [0, 1], and names of categories."""

    blocked: bool
    scores: dict[str, Any]


def check_input(question: str) -> Verdict:
    """How much the question looks like an attack on the prompt; blocked from ``BLOCK`` on."""
    report = injection.score_injection(question)
    scores = {"input_score": round(report.score, 4), "input_category": report.category}
    return Verdict(report.score >= injection.BLOCK, scores)


def check_output(answer: str, contexts: Sequence[str]) -> Verdict:
    """How much the answer gives away; blocked from ``BLOCK`` on.

    ``output_categories`` holds all four leaks, ``output_score`` the highest but copying: this bot
    answers in its sources' own words, so a copied passage is no fault of it.
    """
    report = leakage.score_leakage(answer, contexts)
    categories = {name: round(score, 4) for name, score in report.categories.items()}
    worst = max(score for name, score in categories.items() if name != "verbatim_context")
    scores = {"output_score": worst, "output_categories": categories}
    return Verdict(worst >= leakage.BLOCK, scores)
