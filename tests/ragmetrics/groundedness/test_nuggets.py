"""Nugget recall: which gold facts an answer holds, vital ones and all; derived by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragmetrics.case_scores import CaseScores
from ragmetrics.facts import nugget_recall
from ragmetrics.groundedness import Labels
from records.cases import GoldFact

Scored = Callable[..., CaseScores]

FACTS = [
    GoldFact("20 EUR a month", ["twenty euros monthly"]),
    GoldFact("phone support", ["help by phone"]),
    GoldFact("free for students", vital=False),
    GoldFact("renews yearly", vital=False),
]


def recalls(found: CaseScores) -> tuple[float | None, float | None]:
    """vital, all"""
    return found.values["nugget_recall_vital"], found.values["nugget_recall_all"]


def test_vital_and_all(scored: Scored) -> None:
    # Held: the first (vital) and the third (okay): vital 1 of 2, all 2 of 4.
    found = scored(
        "Plan B costs 20 EUR [1] a month. Free for students.", labels=Labels(gold_facts=FACTS)
    )
    assert recalls(found) == (1 / 2, 1 / 2)
    assert found.evidence["nuggets_missing"] == ["phone support", "renews yearly"]
    # By an alias both vital ones, and no other: 2 of 2, 2 of 4.
    found = scored("Twenty euros monthly, with help by phone.", labels=Labels(gold_facts=FACTS))
    assert recalls(found) == (1.0, 1 / 2)


@pytest.mark.parametrize(("answer", "abstained"), [("", False), ("I do not know.", True)])
def test_an_answer_that_says_nothing_holds_no_fact(
    scored: Scored, answer: str, abstained: bool
) -> None:
    found = scored(answer, abstained=abstained, labels=Labels(True, gold_facts=FACTS))
    assert recalls(found) == (0.0, 0.0)
    assert found.values["claim_support_rate"] is None


def test_where_it_is_not_applicable(scored: Scored) -> None:
    found = scored("Plan B costs 20 EUR.", labels=Labels(False, gold_facts=FACTS))
    assert recalls(found) == (None, None)
    assert found.reasons["nugget_recall_all"] == "unanswerable"
    found = scored("Plan B costs 20 EUR a month.", labels=Labels(gold_facts=FACTS[2:]))
    assert recalls(found) == (None, 0.0)
    assert found.reasons["nugget_recall_vital"] == "no vital gold_facts"
    german = "Der Tarif kostet nicht viel und ist für Studenten, aber nicht für alle anderen, frei."
    english = GoldFact("the plan is free for the students, and it is not for all of the others")
    found = scored(german, labels=Labels(gold_facts=[english]))
    assert found.reasons["nugget_recall_all"] == "language"


def test_recall_with_half_credit() -> None:
    # support, partial, none | okay: support. Vital (1 + .5 + 0) / 3, all (1 + .5 + 0 + 1) / 4.
    recall = nugget_recall([1.0, 0.5, 0.0, 1.0], [True, True, True, False])
    assert recall == {"vital": 0.5, "all": 0.625}
    assert nugget_recall([], []) == {"vital": None, "all": None}
