"""Abstention by phrases, and the four-cell table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.abstention import FourCells, case_metrics, detect, four_cells, rates
from ragmetrics.text.words import clean


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I’m sorry, but I can’t help with that.",
        "Hello! I am not able to find this in the notes.",
        "The provided context does not mention the fee.",
        "There is no information about refunds in the documents.",
        "Based on the notes, the question cannot be answered.",
        "Unfortunately, the notes do not say.",
        "As an AI language model, I cannot give advice.",
        "The fee is not specified in the given passages.",
        "It's not appropriate to share such data.",
    ],
)
def test_abstentions(answer: str) -> None:
    assert detect(answer).state == "abstained"


@pytest.mark.parametrize(
    "answer",
    [
        "Plan B costs 20 EUR.",
        "No, plan B does not include phone support.",
        "I'm sorry to hear that. You can return it within 15 days.",
        "The manual may be unclear, but the fee is probably 20 EUR.",
        "It is not safe to open the case while it is hot.",
        "I don't think it costs more than 20 EUR.",
        "🙂",
        "42",
        "# Only a heading",
    ],
)
def test_answers(answer: str) -> None:
    assert detect(answer).state == "answered"


@pytest.mark.parametrize("answer", [None, "", " \n\t "])
def test_an_empty_answer_is_a_failure_and_no_abstention(answer: str | None) -> None:
    found = detect(answer)
    assert found.state == "empty"
    assert not found.abstained


def test_the_deciding_sentence_is_evidence() -> None:
    answer = "Sure. The notes do not mention the fee. Ask the desk."
    found = detect(answer)
    assert found.rule == "lack"
    assert found.span is not None
    assert answer[slice(*found.span)] == "The notes do not mention the fee."


def test_statements_of_lack_decide_when_they_are_half_of_the_sentences() -> None:
    lack = "The notes do not mention the fee."
    assert detect(f"Plan B exists for companies. {lack}").abstained  # 1 of 2
    assert not detect(f"Plan B exists for companies. It costs 20 EUR. {lack}").abstained  # 1 of 3


def test_an_answer_after_a_refusal_is_partial_when_two_claims_are_supported() -> None:
    answer = (
        "Unfortunately, the notes do not name plan C. Plan B costs 20 EUR. It has phone support."
    )
    assert detect(answer).state == "abstained"
    assert detect(answer, supported_after=1).state == "abstained"
    assert detect(answer, supported_after=2).state == "partial"
    assert not detect(answer, supported_after=2).abstained


def test_four_cells_and_rates() -> None:
    # unanswerable: 3 abstained, 1 answered; answerable: 1 abstained, 5 answered.
    cases = [(True, False)] * 3 + [(False, False)] + [(True, True)] + [(False, True)] * 5
    table = four_cells(cases)
    assert table == FourCells(5, 1, 1, 3)
    assert rates(table) == {
        "abstention_accuracy": 3 / 4,
        "hallucination_on_unanswerable": 1 / 4,
        "over_refusal": 1 / 6,
        "abstention_f1": 6 / 8,  # 2 * 3 / (2 * 3 + 1 + 1)
    }


def test_rates_without_cases_are_undefined() -> None:
    assert rates(FourCells()) == dict.fromkeys(rates(FourCells()))
    answerable = rates(FourCells(answered_answerable=4))
    assert answerable["over_refusal"] == 0.0
    assert answerable["abstention_accuracy"] is None
    assert answerable["abstention_f1"] is None  # nothing to abstain from, nothing abstained


def test_one_case() -> None:
    assert case_metrics(True, False) == {
        "abstention_accuracy": 1.0,
        "hallucination_on_unanswerable": 0.0,
        "over_refusal": None,
    }
    assert case_metrics(True, True)["over_refusal"] == 1.0


@given(st.text(st.characters(), max_size=100))
def test_any_text_has_a_state(text: str) -> None:
    found = detect(text)
    assert found.state in ("abstained", "answered", "empty")
    assert (found.state == "empty") == (not clean(text).strip())
