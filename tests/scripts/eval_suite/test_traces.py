"""eval_suite.py --save-trace: all that is needed to look into a failed case."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval_suite import main
from records.metrics import load_metrics
from storage import ErrorInfo, TestResult


def test_traces_hold_all_that_is_needed(finished: Any, case: Any, result: Any, labels: Any) -> None:
    cases = [case("good"), case("bad"), case("broken")]
    results = [
        result("good"),
        result("bad", "owls.md"),
        TestResult("broken", status="error", error=ErrorInfo("timeout", "no answer")),
    ]
    finished.write(cases, results, safety_labels=labels)
    assert finished.score(main, "--save-trace").exit_code == 0
    lines = (finished.run / "traces" / "retrieval-run.jsonl").read_text().splitlines()
    found = {row["case_id"]: row for row in map(json.loads, lines)}
    assert list(found) == ["bad", "broken"]
    bad = found["bad"]
    says = "no gold passage was retrieved"
    told = {"metric": "retrieval.mrr", "score": 0.0, "target": "> 0", "says": says}
    assert bad["failed"] == [told], "targets of means are not held against one case"
    assert bad["evidence"]["found"] == [None]
    assert bad["case"]["gold_supports"] == [{"rel_path": "cats.md", "heading_path": "Cats"}]
    assert bad["result"]["retrieved"][0]["text"] == result("bad").chunks()[0].text
    assert bad["result"]["answer"] == result("bad").answer
    assert bad["run_id"] == "run"
    assert found["broken"]["result"]["error"]["message"] == "no answer"
    assert found["broken"]["reasons"] == {"*": "call failed: timeout"}


@pytest.mark.parametrize("place", ["traces", "traces/retrieval-run.jsonl/x"])
def test_traces_that_cannot_be_written_lose_no_report(
    finished: Any, place: str, write: Any
) -> None:
    """A file where the folder should be, and a folder where the file should be."""
    write()
    path = finished.run / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")
    done = finished.score(main, "--save-trace", "--sections", "retrieval")
    assert done.exit_code == 2, done.output
    assert "traces" in done.stderr
    assert "Traceback" not in done.output
    assert load_metrics(finished.run / "suite.json")["sections"]["retrieval"]
    assert path.read_text() == "in the way"


def test_traces_of_texts_without_a_case(finished: Any, case: Any, result: Any, labels: Any) -> None:
    rows = [*labels, labels[0] | {"case_id": "missed", "text": "Good morning!"}]
    finished.write([case("q")], [result("q")], safety_labels=rows)
    finished.score(main, "--save-trace", "--sections", "safety")
    lines = (finished.run / "traces" / "safety-run.jsonl").read_text().splitlines()
    (trace,) = map(json.loads, lines)
    assert trace["case_id"] == "missed"
    assert trace["evidence"]["text"] == "Good morning!"
    assert trace["failed"] == [{"metric": "detection_rate", "score": 0.0, "target": "1"}]
