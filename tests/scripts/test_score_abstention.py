"""score_abstention.py as a user runs it: the four cells, F1, who decided."""

from __future__ import annotations

from typing import Any

from score_abstention import main
from storage import ErrorInfo, TestResult

REFUSAL = "I cannot find this in the documents."
ANSWER = "The lease ends at noon."
CASES: list[dict[str, Any]] = [
    {"id": "right", "answerable": True, "category": "factual"},
    {"id": "refused", "answerable": True, "category": "factual"},
    {"id": "shy", "answerable": False, "category": "general"},
    {"id": "invented", "answerable": False, "category": "general"},
    {"id": "unlabelled"},
    {"id": "broken", "answerable": False},
]
RESULTS = [
    TestResult("right", answer=ANSWER),
    TestResult("refused", answer=REFUSAL),
    TestResult("shy", answer=REFUSAL, abstained=True),
    TestResult("invented", answer=f"[bold]{ANSWER}\x1b[2J", abstained=False),
    TestResult("unlabelled", answer=ANSWER),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


def test_numbers_states_and_evidence(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    found = finished.section(main)
    assert found["mean"]["abstention_accuracy"] == 0.5
    assert found["mean"]["hallucination_on_unanswerable"] == 0.5
    assert found["mean"]["over_refusal"] == 0.5
    assert found["mean"]["abstention_f1"] == 0.5  # tp 1, fp 1, fn 1: 2 / (2 + 2)
    assert found["definitions"]["abstention_f1"] == "abstention/abstention_f1@6"
    counts = [found[name]["abstention_f1"] for name in ("n", "not_applicable", "failed")]
    assert counts == [4, 1, 1]
    counts = [found[name]["over_refusal"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 3, 1]
    assert set(found["cells"].values()) == {1}
    assert found["decided_by"] == {"api": 2, "phrases": 2}
    rows = finished.rows("abstention")
    assert rows["unlabelled"]["reasons"] == {"*": "answerable is not labelled"}
    assert rows["shy"]["evidence"]["decided_by"] == "api"
    assert rows["refused"]["evidence"]["decided_by"] == "phrases"


def test_the_wording_alone_may_decide(finished: Any) -> None:
    results = [TestResult("q", answer=REFUSAL, abstained=False)]
    finished.write([{"id": "q", "answerable": False}], results)
    assert finished.section(main)["mean"]["abstention_accuracy"] == 0.0
    shown = finished.score(main, "--worst", "1").stdout
    assert "In 1 result the text and the bot's flag disagree" in shown
    assert "phrases: abstained" in shown
    found = finished.section(main, "--set", "decide_by=phrases")
    assert found["mean"]["abstention_accuracy"] == 1.0
    assert found["options"]["decide_by"] == "phrases"


def test_the_tables_and_the_worst_case(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--by", "category", "--worst", "1")
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "Decided by the bot's own field (2), the wording (2)." in shown
    assert "decided by: api" in shown
    assert f"[bold]{ANSWER}" in shown
    assert "\x1b" not in shown
    other = finished.score(main, "--worst", "1", "--worst-by", "over_refusal").stdout
    assert "decided by: phrases" in other
    assert "why: refusal" in other
    assert f"sentence: {REFUSAL}" in other
