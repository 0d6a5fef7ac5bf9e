"""The checks of an answer's form, and their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import each_row

from ragmetrics import groundedness
from ragmetrics.case_scores import CaseScores
from ragmetrics.groundedness import Labels

Checks = Callable[..., dict[str, float | None]]


@pytest.fixture
def checks(scored: Callable[..., CaseScores]) -> Checks:
    """Scores an answer; gives each check and their mean."""

    def check(answer: str, **more: Any) -> dict[str, float | None]:
        values = scored(answer, **more).values
        return {name: values[name] for name in (*groundedness.CHECKS, "answer_quality")}

    return check


def test_quality_checks(checks: Checks) -> None:
    # Passed: not empty, contexts, citations, no fallback; not applicable: scores, list. 4/4.
    assert checks("Plan B costs money [1].") == {
        "answer_not_empty": 1.0,
        "contexts_exist": 1.0,
        "has_citations": 1.0,
        "no_fallback_phrase": 1.0,
        "retrieval_scores_ok": None,
        "list_question_gets_list": None,
        "answer_quality": 1.0,
    }
    # No citation, best score 0.2 under 0.3, a list question without a list: 3 of 6.
    found = checks("Plan B costs money.", question="List the plans.", best_score=0.2, min_score=0.3)
    assert found["has_citations"] == found["retrieval_scores_ok"] == 0.0
    assert found["list_question_gets_list"] == 0.0
    assert found["answer_quality"] == 3 / 6


def test_quality_of_an_empty_answer_and_of_an_unanswerable_case(checks: Checks) -> None:
    empty = checks("")
    assert (empty["answer_not_empty"], empty["contexts_exist"]) == (0.0, 1.0)
    assert empty["has_citations"] is empty["no_fallback_phrase"] is None
    assert empty["answer_quality"] == 1 / 2
    honest = checks("I don't know.", abstained=True, labels=Labels(answerable=False))
    assert honest["no_fallback_phrase"] is None
    assert checks("I don't know.", abstained=True)["no_fallback_phrase"] == 0.0


@each_row(
    ("answer", "is_list"),
    [
        ("- plan A\n- plan B", True),
        ("Plan A, plan B, and plan C exist.", True),
        ("Plan A; plan B; plan C.", True),
        ("Red, green or blue.", True),
        ("Plan B costs money, and it renews.", False),
        ("Plan B.", False),
        ("a, b, " * 50_000, False),
    ],
)
def test_lists(answer: str, is_list: bool) -> None:
    assert groundedness.is_list(answer) is is_list
