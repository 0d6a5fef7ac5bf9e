"""gate_run.py without a file of one's own: the built-in rules, on real scored runs, in process.

90 questions; the bot finds the gold of the first 60. The 11 hardest are among the last 30: without
them every mean rises, which nobody may take for progress.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

import gate_run
import score_pipeline
import score_retrieval
from records.metrics import load_metrics
from records.results import RunConfig
from storage import ErrorInfo, RetrievedChunk, TestResult

N, GOOD = 90, 60
HARDEST = [f"q{n}" for n in range(N - 11, N)]
CASES = [
    {
        "id": f"q{n}",
        "answerable": True,
        "relevant_docs": [f"q{n}.md"],
        "expected_outcome": "no_citation",
    }
    for n in range(N)
]
DECIDE = ("retrieval.recall@5", "pipeline.pass", "pipeline.answered")


def answer(case_id: str, found: bool) -> TestResult:
    path = f"{case_id}.md" if found else "b.md"
    chunk = RetrievedChunk(path, path, path, text="Yes.", rank=1)
    return TestResult(case_id, f"About {case_id}?", answer="Yes.", retrieved=[chunk])


def failed(case_id: str) -> TestResult:
    error = ErrorInfo("timeout", "too slow")
    return TestResult(case_id, f"About {case_id}?", status="error", error=error)


class Runs:
    """``make("new", results)`` writes and scores a run; ``gate()`` holds new against base."""

    def __init__(self, finished: Any) -> None:
        self.finished, self.folder = finished, finished.folder

    def make(self, name: str, results: list[TestResult], **run: Any) -> Path:
        folder: Path = self.folder / "results" / name
        self.finished.run = folder
        self.finished.write(CASES, results)
        run = {"selected": N, "repeat": 1} | run
        self.finished.configure(run=run, dataset={"cases": N})
        for script in (score_retrieval, score_pipeline):
            done = self.finished.score(script.main, "--run", name, "--json")
            assert done.exit_code == 0, done.output
        return folder

    def gate(self, *words: str, baseline: object = "base") -> dict[str, Any]:
        options = ["--run", "new", "--json", *words]
        options += ["--baseline", str(baseline)] if baseline else []
        if "--gates" not in words:
            (self.folder / "none.toml").write_text("[gates]\n")
            options += ["--gates", str(self.folder / "none.toml")]
        done = self.finished.score(gate_run.main, *options)
        assert done.exit_code in (0, 1), done.output
        verdict: dict[str, Any] = json.loads(done.stdout)
        assert verdict["passed"] is (done.exit_code == 0)
        return verdict


def failures(verdict: dict[str, Any]) -> dict[str, str]:
    return {c["name"]: c["reason"] for c in verdict["checks"] if c["status"] == "failed"}


@pytest.fixture
def runs(finished: Any, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr("decisions.primary.BUILT_IN", DECIDE)
    made = Runs(finished)
    made.make("base", [answer(f"q{n}", n < GOOD) for n in range(N)])
    return made


def test_a_run_whose_hardest_calls_failed_fails(runs: Runs) -> None:
    results = [answer(f"q{n}", n < GOOD) for n in range(N)]
    new = runs.make(
        "new", [failed(r.test_case_id) if r.test_case_id in HARDEST else r for r in results]
    )
    recall = load_metrics(new / "metrics.json")["sections"]["retrieval"]["mean"]["recall@5"]
    assert recall == pytest.approx(60 / 79, abs=1e-6), "the mean rises from 60 / 90"
    reasons = failures(runs.gate())
    assert set(reasons) == {"failed_calls", "pipeline.answered", "pipeline.pass"}
    assert (
        "1.000 → 0.878: worse by 0.122 (paired cases, joint test, 90 cases"
        in reasons["pipeline.answered"]
    )
    assert reasons["failed_calls"].startswith("11 of 90 calls failed")


def test_a_run_that_lost_the_lines_of_its_hardest_calls_fails(runs: Runs) -> None:
    runs.make("new", [answer(f"q{n}", n < GOOD) for n in range(N - 11)])
    reasons = failures(runs.gate())
    assert set(reasons) == {"missing", "cases_missing", "pipeline.answered", "pipeline.pass"}
    assert "11 of 90 asked cases have no result" in reasons["missing"]
    allowed = failures(runs.gate("--allow-missing", "11"))
    assert set(allowed) == {"pipeline.answered", "pipeline.pass"}, "still worse"
    assert set(failures(runs.gate(baseline=None))) == {"missing"}


def test_a_committed_file_is_enough_for_the_paired_test(runs: Runs) -> None:
    """8 of 90 lose their passage: one-sided and alone (1/2)^8 = .004."""
    runs.make("new", [answer(f"q{n}", n < GOOD - 8) for n in range(N)])
    committed = runs.folder / "main.json"
    committed.write_bytes((runs.folder / "results" / "base" / "metrics.json").read_bytes())
    by_file, by_folder = runs.gate(baseline=committed), runs.gate()
    for verdict in (by_file, by_folder):
        (check,) = [c for c in verdict["checks"] if c["name"] == "retrieval.recall@5"]
        tested = (check["status"], check["n"], check["method"])
        assert tested == ("failed", 90, "paired cases, joint test")
    assert by_file["checks"] == by_folder["checks"]
    lines = committed.read_text().splitlines()
    diff = [
        line
        for line in (runs.folder / "results" / "new" / "metrics.json").read_text().splitlines()
        if line.startswith('    "q') and line not in lines
    ]
    assert len(diff) == 8, "a git diff shows the cases that flipped"


def test_a_baseline_without_scores_of_its_cases_is_not_tested_and_says_what_to_give(
    runs: Runs,
) -> None:
    runs.make("new", [answer(f"q{n}", n < GOOD - 8) for n in range(N)])
    old = load_metrics(runs.folder / "results" / "base" / "metrics.json")
    del old["primary"], old["primary_metrics"]
    committed = runs.folder / "old.json"
    committed.write_text(json.dumps(old))
    reason = failures(runs.gate(baseline=committed))["retrieval.recall@5"]
    assert reason == (
        "no verdict: base has no scores of its cases in metrics.json (more than 5,000 cases, or an "
        "older version), so they cannot be paired; score it again or give its run folder with "
        'scores/, or write untested = "allow" under [gates] of the rules file'
    )


def test_an_equal_run_passes_and_a_better_one_too(runs: Runs) -> None:
    runs.make("new", [answer(f"q{n}", n < GOOD + 15) for n in range(N)])
    verdict = runs.gate()
    assert failures(verdict) == {}
    rows = {c["name"]: c for c in verdict["checks"] if c["rule"] == "worse"}
    assert set(rows) == {"retrieval.recall@5", "pipeline.pass", "pipeline.answered"}
    assert rows["retrieval.recall@5"]["delta"] == pytest.approx(15 / 90, abs=1e-6)


def test_a_stopped_run_needs_leave(runs: Runs) -> None:
    """Only the first 40 were asked: the others are neither missing nor compared."""
    asked = [f"q{n}" for n in range(40)]
    run = {"selected": 40, "asked": asked, "stopped": "the race was lost"}
    runs.make("new", [answer(case_id, True) for case_id in asked], **run)
    reasons = failures(runs.gate())
    assert set(reasons) == {"stopped", "cases_missing"}
    assert "the run was stopped (the race was lost)" in reasons["stopped"]
    verdict = runs.gate("--set", "allow_stopped=true")
    assert failures(verdict) == {}
    assert {c["n"] for c in verdict["checks"] if c["rule"] == "worse"} == {40}


def test_a_rule_of_the_file_stands_in_for_the_built_in_test(runs: Runs) -> None:
    runs.make("new", [answer(f"q{n}", n < GOOD - 8) for n in range(N)])
    gates = runs.folder / "own.toml"
    gates.write_text('[gates.baseline]\n"retrieval.*" = "drop 50 %"\n')
    verdict = runs.gate("--gates", str(gates))
    assert failures(verdict) == {}
    tested = {c["name"] for c in verdict["checks"] if c["rule"] == "worse"}
    assert tested == {"pipeline.pass", "pipeline.answered"}
    gates.write_text('[gates.run]\nerrors = "<= 20"\n')
    results = [answer(f"q{n}", n < GOOD) for n in range(N - 11)]
    shutil.rmtree(runs.folder / "results" / "new")
    runs.make("new", [*results, *map(failed, HARDEST)])
    assert set(failures(runs.gate("--gates", str(gates), baseline=None))) == set()


def test_init_writes_gates_that_the_run_keeps(runs: Runs) -> None:
    """Only what its labels can measure: no line of safety, which is named as left out."""
    runs.make("new", [answer(f"q{n}", n < GOOD) for n in range(N)])
    gates = runs.folder / "mine.toml"
    words = ("--results-dir", str(runs.folder / "results"), "--gates", str(gates))
    done = runs.finished.score(gate_run.main, "--init", "new", "--gates", str(gates))
    assert done.exit_code == 0, done.output
    text = gates.read_text()
    assert '"recall@5" = ">= 0.56"  # measured 0.667, 95 % 0.56' in text
    assert "# [safety] auc" in text
    assert "[safety]\n" not in text.replace("# [safety]", "")
    assert failures(runs.gate("--gates", str(gates))) == {}
    again = runs.finished.score(gate_run.main, "--init", "new", "--gates", str(gates))
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert gates.read_text() == text
    assert runs.finished.score(gate_run.main, "--init", "new", "--force", *words).exit_code == 0


def test_what_no_case_is_labelled_for_is_skipped_where_the_file_says_so(runs: Runs) -> None:
    runs.make("new", [answer(f"q{n}", n < GOOD) for n in range(N)])
    gates = runs.folder / "own.toml"
    rules = '[retrieval]\nscope_miss = "<= 0.1"\n[safety]\nauc = "> 0.9"\n[context]\nx = "> 0"\n'
    gates.write_text(rules)
    names = {"retrieval.scope_miss:measured", "safety.auc:measured", "context.x:measured"}
    assert set(failures(runs.gate("--gates", str(gates)))) == names
    gates.write_text(rules + '[gates]\nunlabelled = "skip"\n')
    verdict = runs.gate("--gates", str(gates))
    assert set(failures(verdict)) == {"context.x:measured"}, "nobody scored that section"
    skipped = {c["name"] for c in verdict["checks"] if c["status"] == "skipped"}
    assert {"retrieval.scope_miss", "safety.auc"} <= skipped


def test_the_rules_of_another_set_are_skipped(runs: Runs) -> None:
    runs.make("new", [answer(f"q{n}", n < GOOD) for n in range(N)])
    runs.finished.configure(dataset={"path": "mine.jsonl"})
    demo = gate_run.GATES_FILE
    verdict = runs.gate("--gates", str(demo))
    assert failures(verdict) == {}
    assert verdict["gates"] == "built-in rules", "the title names what decided"
    (check,) = [c for c in verdict["checks"] if c["name"] == "gates"]
    assert "was made for eval_set.jsonl, and this run was asked mine.jsonl" in check["reason"]


@each_row(("calls", "most"), [(30, 2), (90, 4), (300, 10)])
def test_failed_calls_by_the_binomial_distribution(calls: int, most: int) -> None:
    """The smallest x with P(X >= x) < .05 for X ~ B(n, .02) is 3, 5, 11: from the sum itself."""
    from math import comb

    from decisions.conditions import Conditions
    from decisions.gate_checks import GateEvidence, failed_calls
    from decisions.gate_rules import GateRules

    for errors in range(most + 3):
        tail = sum(comb(calls, x) * 0.02**x * 0.98 ** (calls - x) for x in range(errors, calls + 1))
        numbers = {"cases": calls, "errors": errors}
        side = Conditions("r", numbers, RunConfig("r"), Path("r"))
        (check,) = failed_calls(GateRules(None), GateEvidence(side))
        assert (check.status == "failed") is (tail < 0.05) is (errors > most)
