"""Citations of an answer, and what the labels of its case expect or forbid."""

from __future__ import annotations

from collections.abc import Callable

from ragmetrics.case_scores import CaseScores
from ragmetrics.groundedness import Labels
from ragmetrics.text.words import overlap
from records.results import Reference

Scored = Callable[..., CaseScores]


def test_citations_of_a_case(scored: Scored) -> None:
    # [1] resolves and bears its claim out, [7] does not resolve: form 1/2, content 1/1.
    # Two claims, both cited: coverage 1; joint: the second has no source at all: 1/2.
    found = scored("Plan B costs 20 EUR a month [1]. Plan C is free of charge [7].")
    assert found.values["citation_validity_form"] == 1 / 2
    assert found.values["citation_validity_content"] == 1.0
    assert found.values["citation_coverage"] == 1.0
    assert found.values["citation_joint"] == 1 / 2
    assert found.evidence["citations"] == [
        {"target": 1, "span": [28, 31], "chunk_id": "c1"},
        {"target": 7, "span": [58, 61], "chunk_id": None},
    ]
    found = scored("Plan B costs 20 EUR a month [2].")
    assert found.values["citation_validity_content"] == 0.0
    assert found.evidence["citations"][0]["supported"] is False


def test_without_citations(scored: Scored) -> None:
    found = scored("Plan B costs 20 EUR a month.")
    assert found.reasons["citation_validity_form"] == "no citations"
    assert found.reasons["citation_validity_content"] == "no citation marks"
    assert found.values["citation_coverage"] == 0.0
    assert found.reasons["citation_joint"] == "no claim has a citation"
    listed = [Reference(doc_id="plans"), Reference(doc_id="gone")]
    found = scored("Plan B costs 20 EUR a month.", references=listed)
    assert found.values["citation_validity_form"] == 1 / 2
    assert found.values["citation_validity_content"] is None


def test_labels(scored: Scored) -> None:
    answer = "You get 15 days of paid vacation [1]. There is no unlimited vacation."
    labels = Labels(
        expected_claims=["fifteen days paid vacation", "vacation accrues monthly"],
        forbidden_claims=["unlimited vacation", "15 days of paid vacation", "30 days of vacation"],
        expected_citations=["plans", "free"],
    )
    found = scored(answer, labels=labels)
    # Stated: the first; "accrues monthly" is not: 1/2. Unlimited is denied, 30 not said.
    assert found.values["expected_claim_recall"] == 1 / 2
    assert found.evidence["expected_claims_missing"] == ["vacation accrues monthly"]
    assert found.values["forbidden_claims"] == 1.0
    assert found.evidence["forbidden_claims_found"] == ["15 days of paid vacation"]
    assert found.values["expected_citation_recall"] == 1 / 2
    found = scored("Plan B costs money.")
    assert found.reasons["expected_claim_recall"] == "no expected_claims"
    assert found.reasons["forbidden_claims"] == "no forbidden_claims"
    assert found.reasons["expected_citation_recall"] == "no expected_citations"
    assert found.reasons["answer_overlap"] == "no reference_answer"


def test_overlap_with_the_reference() -> None:
    # answer: plan b cost 20 eur (5); reference: plan b cost 25 (4); shared plan b cost (3).
    assert overlap("Plan B costs 20 EUR.", "Plan B costs 25.") == (6 / 9, 3 / 4)
    assert overlap("Plan B.", "Plan B.") == (1.0, 1.0)
    assert overlap("", "Plan B.") == (0.0, 0.0)
    assert overlap("Plan B.", "It is.") is None  # nothing to expect
    assert overlap("plan plan plan", "plan b") == (2 / 5, 1 / 2)  # repeats count
