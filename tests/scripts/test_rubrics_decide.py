"""Rubrics where runs are compared, gated and shown: explored unless declared primary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.scripts.conftest import FinishedRun
from tests.scripts.judging.conftest import JudgedRun, Server, helpful_as_said, result
from tests.scripts.judging.conftest import server as server

import compare_runs
import report_run
from ragmetrics import catalogue
from records.judgements import read_verdicts
from records.labels import read_cases
from records.results import iter_results
from records.runs import results_file
from records.verdicts import judge_of
from views.case import case_of

NAMES = [f"case{number:02}" for number in range(40)]


@pytest.fixture
def runs(tmp_path: Path, server: Server) -> JudgedRun:
    """``base`` helps in 10 of 40 cases, ``new`` in 30; every other answer helps in part."""
    server.reply = helpful_as_said
    made = JudgedRun(FinishedRun(tmp_path))
    for name, helped in (("base", 10), ("new", 30)):
        made.finished.run = tmp_path / "results" / name
        answers = [2 if number < helped else 1 for number in range(40)]
        results = [result(n, f"Verdict {a} of {n}.") for n, a in zip(NAMES, answers, strict=True)]
        made.write([{"id": n} for n in NAMES], results)
        words = (*server.words()[:-2], "--metrics", "rubrics.helpful", "--run", name, "-q")
        judged = made.call(*words)
        assert judged.exit_code == 0, judged.output
    return made


def compared(runs: JudgedRun, *words: str) -> dict[str, Any]:
    call = runs.finished.score(compare_runs.main, "base", "new", "--json", *words)
    assert call.exit_code in (0, 1), call.output
    (found,) = json.loads(call.stdout)["comparisons"]
    return dict(found)


def row_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    rows = [row for row in report["rows"] if row["metric"] == name]
    assert len(rows) == 1, report["rows"]
    return dict(rows[0])


def test_a_rubric_is_explored_and_decides_where_it_is_declared(runs: JudgedRun) -> None:
    row = row_of(compared(runs), "helpful")
    assert row["section"] == "rubrics"
    assert (row["base_mean"], row["new_mean"]) == (0.25, 0.75)
    assert not row["primary"]
    report = compared(runs, "--metrics", "rubrics.helpful")
    row = row_of(report, "helpful")
    assert row["primary"]
    assert row["verdict"] == "better"
    assert report["headline"] == "BETTER"


def compared_page(runs: JudgedRun, home: Path) -> str:
    """compare_runs.py as a process of a team whose targets.toml declares the rubric."""
    (home / "eval").mkdir(parents=True, exist_ok=True)
    text = '[decide]\nprimary = ["rubrics.helpful"]\n'
    (home / "eval" / "targets.toml").write_text(text, "utf-8")
    own = runs.finished.folder
    script = Path(compare_runs.__file__)
    words = ["base", "new", "--results-dir", own / "results", "--eval-set", own / "set.jsonl"]
    command = [sys.executable, *map(str, [script, *words])]
    env = os.environ | {"RAG_EVAL_HOME": str(home), "COLUMNS": "120"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8")
    return done.stdout + done.stderr


def test_a_rubric_declared_in_targets_decides_and_is_marked(
    runs: JudgedRun, tmp_path: Path
) -> None:
    shown = compared_page(runs, tmp_path / "home")
    assert "! Not calibrated by labels of people: helpful, helpful_rank." in shown
    assert "BETTER: helpful: 30 of 40 (10 before)." in shown


def change_section(runs: JudgedRun, change: Any) -> None:
    path = runs.finished.folder / "results" / "base" / "metrics.json"
    metrics = json.loads(path.read_text("utf-8"))
    change(metrics["sections"])
    path.write_text(json.dumps(metrics), "utf-8")


def test_shares_by_different_targets_are_not_compared(runs: JudgedRun, tmp_path: Path) -> None:
    def change(sections: Any) -> None:
        prompt = sections["rubrics"]["options"]["judge"]["prompts"]["rubrics.helpful"]
        assert prompt["target"] == "helpful or higher"
        prompt["target"] = "partly helpful or higher"

    change_section(runs, change)
    shown = compared_page(runs, tmp_path / "home")
    assert "cannot be compared" in shown
    assert "rubrics.helpful.target: partly helpful or higher" in shown
    change_section(runs, lambda sections: sections.pop("rubrics"))
    assert "cannot be compared" not in compared_page(runs, tmp_path / "home"), "none to compare"


def test_the_report_tells_the_distribution_and_why(runs: JudgedRun) -> None:
    own = runs.finished.folder
    call = runs.finished.score(report_run.main, "--run", "new", "--format", "md")
    assert call.exit_code == 0, call.output
    text = (own / "results" / "new" / "report.md").read_text("utf-8")
    line = "helpful: not helpful 0, partly helpful 10, helpful 30; the target is helpful"
    assert f"{line}; not calibrated" in text


def test_the_browser_has_verdict_quote_and_reason(runs: JudgedRun) -> None:
    folder = runs.finished.folder / "results" / "new"
    cases = {case.id: case for case in read_cases(runs.finished.folder / "set.jsonl", None)}
    verdicts = read_verdicts(folder, judge_of(folder))
    first = next(iter(iter_results(results_file(folder))))
    (judged,) = case_of(first, cases[first.test_case_id], {}, verdicts).judged
    (claim,) = judged.items
    assert judged.metric == "rubrics.helpful"
    assert (claim.word, claim.verdict, claim.quote) == ("helpful", "supported", "Verdict 2")
    assert claim.text.startswith("Does the answer help")


def test_the_catalogue_knows_a_rubric_by_its_section() -> None:
    share = catalogue.find("rubrics.anything")
    assert (share.binary, share.low, share.high, share.higher_is_better) == (True, 0.0, 1.0, True)
    rank = catalogue.find("rubrics.anything_rank")
    assert (rank.binary, rank.low, rank.high) == (False, 1.0, None)
    with pytest.raises(KeyError):
        catalogue.find("anything")
