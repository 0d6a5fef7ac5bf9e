"""score_groundedness.py as a user runs it."""

from __future__ import annotations

from typing import Any

from score_groundedness import main
from storage import ErrorInfo, RetrievedChunk, TestResult

LEAVE = "Staff get 15 days of paid vacation each year. Vacation accrues monthly."
HOSTILE = "The [bold]kitchen[/] opens at 31 \x1b[Howned\x07 in the morning for everybody."


def result(name: str, answer: str, **fields: Any) -> TestResult:
    chunk = RetrievedChunk("c1", "leave.md", "leave.md", text=LEAVE + " " * 200, rank=1)
    return TestResult(name, answer=answer, **({"retrieved": [chunk]} | fields))


CASES = [
    {"id": "good", "category": "factual"},
    {"id": "bad", "category": "reasoning", "question": "What [red]opens[/]?"},
    {"id": "shy"},
    {"id": "broken"},
]
RESULTS = [
    result("good", "Staff get 15 days of paid vacation each year [1]."),
    result("bad", f"Vacation accrues monthly [1]. {HOSTILE} [7]"),
    result("shy", "I cannot find this in the documents."),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


def test_numbers_states_and_evidence(finished: Any) -> None:
    labels = [{"case_id": "good", "expected_claims": ["15 days vacation", "sick pay"]}]
    finished.write(CASES, RESULTS, groundedness_labels=labels)
    found = finished.section(main)
    # good: 1 of 1; bad: 1 of 2, the other has 31, which stands nowhere
    assert found["mean"]["claim_support_rate"] == 0.75
    assert found["mean"]["numeric_fabrications"] == 0.5
    assert found["mean"]["citation_validity_form"] == 0.75
    assert found["mean"]["expected_claim_recall"] == 0.5
    counts = [found[name]["claim_support_rate"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 1, 1]
    assert found["by"]["category"]["reasoning"]["mean"]["claim_support_rate"] == 0.5
    rows = finished.rows("groundedness")
    assert rows["shy"]["reasons"]["claim_support_rate"] == "abstention"
    assert rows["broken"]["reasons"] == {"*": "call failed: timeout"}
    claims = rows["bad"]["evidence"]["claims"]
    assert [claim["supported"] for claim in claims] == [True, False]
    assert rows["good"]["evidence"]["claims"][0]["chunk_id"] == "c1"


def test_the_worst_case_shows_what_failed_and_runs_no_markup(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--by", "category", "--worst", "1")
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "claim_support_rate" in shown
    assert "> 0.85" in shown
    assert "bad  mean_claim_support" in shown
    assert "What [red]opens[/]?" in shown
    assert "The [bold]kitchen[/] opens at 31" in shown
    assert "number not in any source: 31" in shown
    assert "citation [7] names no retrieved passage" in shown
    assert "passage 1 · " in shown
    assert "\x1b" not in shown


def test_cut_texts_are_not_applicable_and_the_remedy_is_told(finished: Any) -> None:
    finished.write(CASES, RESULTS, full=False)
    done = finished.score(main)
    assert done.exit_code == 0, done.output
    assert "--store-full-text" in done.stderr
    rows = finished.rows("groundedness")
    assert rows["good"]["reasons"]["claim_support_rate"] == "text was truncated"
    assert rows["good"]["scores"]["citation_validity_form"] == 1.0
    assert finished.section(main)["mean"]["claim_support_rate"] is None
    assert "--store-full-text" not in finished.score(main, "-q").stderr


def test_an_unknown_metric_for_the_worst_cases_is_refused(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--worst", "1", "--worst-by", "nothing")
    assert done.exit_code == 2
    assert "choose from: claim_support_rate" in done.stderr


def test_unsure_claims_are_shown_and_texts_of_an_unknown_kind_warned_of(finished: Any) -> None:
    # 100 claims of which no passage has a word: strength 0 each. Of every training set at least
    # .79 of the claims have a strength of .10 or more: far more than .30 away.
    cases = [{"id": f"c{n}"} for n in range(100)]
    finished.write(cases, [result(case["id"], "The moon has green cheese.") for case in cases])
    shown = " ".join(finished.score(main).stdout.split())
    assert "Unsure claims (strength .40 to .55): 0% of an answer's claims" in shown
    assert "is between 0.000 and 0.000 if all of these failed or held" in shown
    assert "the threshold is not known to hold for such texts" in shown
    found = finished.section(main)
    assert found["mean"]["strength_distance"] > 0.7
    assert (found["english_claims"], found["n"]["strength_distance"]) == (100, 100)


def test_fewer_than_100_claims_are_not_compared(finished: Any) -> None:
    cases = [{"id": f"c{n}"} for n in range(99)]
    finished.write(cases, [result(case["id"], "The moon has green cheese.") for case in cases])
    assert finished.section(main)["mean"]["strength_distance"] is None
    assert "not known to hold" not in finished.score(main).stdout
