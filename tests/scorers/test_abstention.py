"""Who abstained: the bot's own field, else the wording; the four cells and F1 by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.catalogue.abstention import ROWS
from records.scores import ScoreLine
from scorers.abstention import AbstentionScorer, decide, usual_language
from scorers.contract import ScoreRow
from storage import RetrievedChunk, TestCase, TestResult

REFUSAL = "I cannot find this in the documents."
ANSWER = "Staff get 15 days of paid vacation each year."
CONTEXT = "Staff get 15 days of paid vacation each year. Vacation accrues monthly for all staff."


def result(answer: str | None, abstained: bool | None = None, **fields: Any) -> TestResult:
    return TestResult("q", question="How many?", answer=answer, abstained=abstained, **fields)


def score(answerable: bool | None, given_: TestResult) -> tuple[ScoreRow, Any]:
    return AbstentionScorer().score(TestCase("q", "?", answerable=answerable), given_)


@each_row(
    ("given_", "by", "abstained", "decided_by"),
    [
        (result(REFUSAL), "auto", True, "phrases"),
        (result(ANSWER), "auto", False, "phrases"),
        (result(REFUSAL, False), "auto", False, "api"),  # the bot's word comes first
        (result(ANSWER, True), "auto", True, "api"),
        (result(REFUSAL, False), "phrases", True, "phrases"),
        (result(ANSWER, True), "phrases", False, "phrases"),
        (result(ANSWER), "api", None, "api"),
        (result(None), "auto", None, "phrases"),
        (result(None, True), "auto", True, "api"),
        (result(" \n"), "auto", None, "phrases"),
    ],
)
def test_who_decides(given_: TestResult, by: Any, abstained: bool | None, decided_by: str) -> None:
    decision = decide(given_, by)
    assert (decision.abstained, decision.by) == (abstained, decided_by)


def test_a_refusal_that_supported_claims_follow_is_a_partial_answer() -> None:
    """Two supported claims after the refusal; with texts that say otherwise it stays a refusal."""
    answer = (
        "I cannot find the exact figure in the documents. "
        "Staff get paid vacation each year. Vacation accrues monthly for all staff."
    )
    known = [RetrievedChunk("c", text=CONTEXT)]
    other = [RetrievedChunk("c", text="The office kitchen opens at seven.")]
    cut = [RetrievedChunk("c", text=CONTEXT, text_length=999)]
    assert decide(result(answer, retrieved=list(known))).abstained is False
    assert decide(result(answer, retrieved=list(other))).abstained is True
    assert decide(result(answer, retrieved=list(cut))).abstained is True
    assert decide(result(answer)).abstained is True


@each_row(
    ("answerable", "answer", "values"),
    [
        (False, REFUSAL, (1.0, 0.0, None, 1.0)),
        (False, ANSWER, (0.0, 1.0, None, 0.0)),
        (True, REFUSAL, (None, None, 1.0, 0.0)),
        (True, ANSWER, (None, None, 0.0, 1.0)),
        (None, ANSWER, (None, None, None, None)),
        (True, "", (None, None, None, None)),
    ],
)
def test_the_cells(answerable: bool | None, answer: str, values: tuple[float | None, ...]) -> None:
    row, _ = score(answerable, result(answer))
    assert row.values == values


def test_evidence_shows_the_sentence_that_decided() -> None:
    row, evidence = score(True, result(f"{REFUSAL} Sorry."))
    assert evidence["cell"] == "abstained_answerable"
    assert evidence["decided_by"] == "phrases"
    assert f"{REFUSAL} Sorry."[slice(*evidence["span"])] == REFUSAL
    assert dict(row.reasons) == {
        "abstention_accuracy": "answerable",
        "hallucination_on_unanswerable": "answerable",
    }


def test_evidence_tells_when_the_wording_says_otherwise() -> None:
    agree = score(False, result(REFUSAL, True, abstain_reason="empty"))[1]
    assert agree == {"cell": "abstained_unanswerable", "decided_by": "api", "why": "empty"}
    differ = score(False, result(REFUSAL, False))[1]
    assert (differ["cell"], differ["phrases"]) == ("answered_unanswerable", "abstained")


LONG = "Nemohu to říci, ale může to být pro ostatní, které jsou zde nebo byly podle toho."
CZECH = [RetrievedChunk("c", text="Termín je pro osoby, které jsou zde, a nemůže být podle toho.")]
SHORT = "Nevím."


@each_row("answer", [LONG, "איני יודע.", "모르겠습니다."])
def test_a_refusal_in_a_language_without_phrases_is_not_applicable(answer: str) -> None:
    """Without a list nobody knows whether it is a refusal or an answer: it is neither."""
    row, evidence = score(False, result(answer))
    assert row == ScoreRow((None,) * 4, (("*", "language"),))
    assert evidence["why"] == "language"
    assert evidence["language"] in ("cs", "hebrew", "hangul")


@each_row("abstained", [True, False])
def test_the_bots_own_word_decides_in_any_language(abstained: bool) -> None:
    row, evidence = score(False, result(LONG, abstained))
    assert row.values == (float(abstained), float(not abstained), None, float(abstained))
    assert "phrases" not in evidence  # no phrase in Czech is no word against the bot's


def test_a_phrase_that_is_found_decides_in_any_surroundings() -> None:
    assert decide(result(REFUSAL, retrieved=list(CZECH)), usual_language="cs").abstained is True


def test_the_language_of_a_short_answer() -> None:
    """Its passages tell it, else the run; in English it is an answer, as it is when none tells."""
    assert decide(result(SHORT, retrieved=list(CZECH))).why == "language"
    assert decide(result(SHORT), usual_language="cs").why == "language"
    assert decide(result(SHORT), usual_language="en").abstained is False
    assert decide(result(SHORT)).abstained is False
    assert decide(result("42")).abstained is False


def test_the_most_frequent_language_of_a_run(tmp_path: Path) -> None:
    """Of the answers that tell theirs; ties go by name, so that every process takes the same."""

    def usual(*answers: str | None) -> str | None:
        lines = [
            {"schema": 1, "test_case_id": str(place), "status": "ok", "answer": answer}
            for place, answer in enumerate(answers)
        ]
        (tmp_path / "results.jsonl").write_bytes(b"".join(orjson.dumps(x) + b"\n" for x in lines))
        return usual_language(tmp_path)

    czech, english = CZECH[0].text, "It is the fee for that which you have paid."
    assert usual(czech, czech, english, SHORT, SHORT, SHORT, None) == "cs"
    assert usual(czech, english) == usual(english, czech) == "en"
    assert usual(SHORT, None, " ") is None


def test_an_empty_answer_is_no_abstention_and_no_score() -> None:
    row, evidence = score(False, result(""))
    assert row.reasons == (("*", "empty answer"),)
    assert evidence["state"] == "empty"


def section() -> dict[str, Any]:
    counts = ("definitions", "n", "not_applicable", "failed")
    return {name: {} for name in (*counts, "mean", "ci95", "method", "clusters", "marks")}


def line(case_id: str, cell: str = "", status: str = "scored", **evidence: Any) -> ScoreLine:
    found = {"decided_by": "api"} | ({"cell": cell} if cell else {}) | evidence
    return ScoreLine(case_id, 0, status, {}, evidence=found if cell else None)


def test_f1_of_a_run_by_hand() -> None:
    """tp 2, fp 1, fn 1: 4 / (4 + 2); two cases are not labelled and one call failed."""
    lines = [line("a", "abstained_unanswerable")]
    lines += [line("b", "abstained_unanswerable", phrases="answered")]
    lines += [line("c", "answered_unanswerable"), line("d", "abstained_answerable")]
    lines += [line("e", "answered_answerable"), line("f", status="not_applicable")]
    lines += [line("g", status="not_applicable"), line("h", status="failed")]
    found = AbstentionScorer().aggregate(section(), iter(lines), 0)
    assert found["mean"]["abstention_f1"] == pytest.approx(4 / 6)
    assert found["n"]["abstention_f1"] == 5
    assert found["not_applicable"]["abstention_f1"] == 2
    assert found["failed"]["abstention_f1"] == 1
    low, high = found["ci95"]["abstention_f1"]
    assert 0 <= low < 4 / 6 < high <= 1
    once = ("answered_answerable", "abstained_answerable", "answered_unanswerable")
    assert found["cells"] == dict.fromkeys(once, 1) | {"abstained_unanswerable": 2}
    assert found["decided_by"] == {"api": 5}
    assert found["phrases_disagree"] == 1


def test_f1_is_drawn_by_clusters() -> None:
    """Four cases of one document that share their fate count once: two units, of which a resample
    holds both, or one of them twice; so F1 is 8 / (8 + 1), 1 or 0."""
    lines = [line(f"a{n}", "abstained_unanswerable") for n in range(4)]
    lines += [line("b", "answered_unanswerable")]
    alone = AbstentionScorer().aggregate(section(), iter(lines), 0)
    assert alone["clusters"]["abstention_f1"] == 5
    assert alone["ci95"]["abstention_f1"][0] > 0
    for row in lines[:4]:
        row.cluster_number = 7
    found = AbstentionScorer().aggregate(section(), iter(lines), 0)
    assert found["mean"]["abstention_f1"] == pytest.approx(8 / 9)
    assert found["ci95"]["abstention_f1"] == [0.0, 1.0]
    assert found["clusters"]["abstention_f1"] == 2
    assert found["method"]["abstention_f1"] == "bootstrap"


def test_repeats_are_one_case() -> None:
    """One case that abstained in one of two repeats: tp 1/2, fn 1/2, so 1 / (1 + 1/2)."""
    lines = [line("a", "abstained_unanswerable"), line("a", "answered_unanswerable")]
    found = AbstentionScorer().aggregate(section(), iter(lines), 0)
    assert found["mean"]["abstention_f1"] == pytest.approx(2 / 3)
    assert found["n"]["abstention_f1"] == 1


def test_where_nothing_is_unanswerable_and_nothing_abstains_f1_does_not_apply() -> None:
    found = AbstentionScorer().aggregate(section(), iter([line("a", "answered_answerable")]), 0)
    assert found["mean"]["abstention_f1"] is found["ci95"]["abstention_f1"] is None
    assert (found["n"]["abstention_f1"], found["not_applicable"]["abstention_f1"]) == (0, 1)


@given(st.text(max_size=400), st.booleans(), st.sampled_from([True, False, None]))
def test_any_answer_falls_into_one_cell(answer: str, answerable: bool, own: bool | None) -> None:
    row, _ = score(answerable, result(answer, own))
    found: dict[str, Any] = dict(zip([metric.name for metric in ROWS], row.values, strict=True))
    assert set(row.values) <= {0.0, 1.0, None}
    if found["abstention_accuracy"] is not None:
        assert found["hallucination_on_unanswerable"] == 1 - found["abstention_accuracy"]
        assert found["over_refusal"] is None
