"""eval_suite.py --gates is decided by the same engine: all kinds of rules hold there too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eval_suite import main
from storage import ResultsWriter, RetrievedChunk, RunConfig, TestResult


@pytest.fixture
def suite(tmp_path: Path) -> Any:
    """Scores the retrieval of a run of 4 questions: the gold of all but ``bad`` comes first."""
    lines = [
        {
            "id": f"c{n}",
            "question": "Why?",
            "answerable": True,
            "gold_supports": [{"rel_path": "a", "heading_path": "A"}],
        }
        for n in range(4)
    ]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def ask(run: str, bad: int) -> None:
        writer = ResultsWriter(tmp_path / "results", run)
        writer.write_config(RunConfig(run))
        for n in range(4):
            path = "b" if n < bad else "a"
            chunk = RetrievedChunk("k", path, path, "A", text="words", rank=1)
            writer.write_result(TestResult(f"c{n}", "Why?", answer="So.", retrieved=[chunk]))
        writer.finish(f"c{n}" for n in range(4))

    def call(run: str, gates: str, *words: str) -> dict[str, Any]:
        (tmp_path / "g.toml").write_text(gates)
        options = ["--run", run, "--gates", str(tmp_path / "g.toml"), "--json", "--quiet"]
        options += ["--results-dir", str(tmp_path / "results"), "--sections", "retrieval"]
        options += ["--eval-set", str(tmp_path / "set.jsonl"), *words]
        done = CliRunner().invoke(main, options)
        assert done.exit_code in (0, 1), done.output
        found: dict[str, Any] = json.loads(done.stdout)
        assert done.exit_code == (0 if found["passed"] else 1)
        return found

    ask("good", 0)
    ask("worse", 1)
    return call


def missed(found: dict[str, Any]) -> list[str]:
    return [one["name"] for one in found["gates_missed"]]


def test_cases_that_must_pass(suite: Any) -> None:
    rule = '[[gates.must_pass]]\nmetric = "retrieval.recall@5"\ncases = ["c0"]\n'
    assert missed(suite("good", rule)) == []
    found = suite("worse", rule)
    assert missed(found) == ["case.c0"]
    assert found["gates_missed"][0]["reason"] == "retrieval.recall@5 is 0.000, must be >= 1"


def test_rules_on_a_baseline_count_where_one_is_given(suite: Any, tmp_path: Path) -> None:
    """3 of 4 after 4 of 4 is 25 % less."""
    rule = '[gates.baseline]\n"retrieval.recall@5" = "drop 10 %"\n'
    suite("good", rule)
    assert suite("worse", rule)["gates_missed"] == []
    base = str(tmp_path / "results" / "good")
    assert missed(suite("worse", rule, "--baseline", base)) == ["retrieval.recall@5"]
    loose = rule.replace("10 %", "30 %")
    assert missed(suite("worse", loose, "--baseline", base)) == []


def test_numbers_of_other_perspectives_are_not_asked_for(suite: Any) -> None:
    """Only retrieval is scored: a limit of times, and a floor of safety, belong to others."""
    rule = '[safety]\nauc = "> 0.9"\n[gates.run]\nlatency_p95_ms = "<= 1"\ncases = ">= 4"\n'
    assert missed(suite("good", rule)) == []
