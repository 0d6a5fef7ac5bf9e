"""Figures of a whole run over two versions of a set: of the cases that did not change, or left out
and said so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.decisions.test_living_set import (
    CASES,
    GATED,
    Rows,
    call,
    case,
    compared,
    first_set,
    grown,
    leave_metrics_alone,
    make_run,
    row_of,
    write_set,
)

import compare_runs
import gate_run
import score_conversations
import score_pipeline
from records.files import sha256_file
from records.fingerprints import asked_digests
from records.labels import read_cases
from records.results import EARLIER_TURN_FAILED, ErrorInfo, RunConfig, TestResult
from storage import ResultsWriter


def test_figures_of_a_whole_run_are_of_the_cases_that_did_not_change(tmp_path: Path) -> None:
    """q130 is gone and 28 questions are new: 139 are compared, 19 of them unanswerable. The new bot
    answers q120 and declines q7: F1 is 2 · 18 / (2 · 18 + 1 + 1), and 1 before. Each of the 139
    answers took 100 ms, 10 tokens and $ .01, and now 120 ms, 12 tokens and $ .02; within the budget
    of 110 ms, and no longer. What is not compared is slow and dear, and declines, in both runs."""
    dear = {"latency_ms": {"total": 9000.0}, "usage": {"total_tokens": 9000}, "cost_usd": 9.0}
    refused = {"answer": "I do not know.", "abstained": True}

    def measured(time: float, tokens: int, cost: float) -> dict[str, Any]:
        own = {"total_tokens": tokens}
        return {"latency_ms": {"total": time}, "usage": own, "cost_usd": cost}

    def budgeted(rows: Rows) -> Rows:
        return [row | {"latency_budget_ms": {"max": 110}} for row in rows]

    answers = {number: measured(100.0, 10, 0.01) for number in range(CASES)}
    answers[130] = dear | {"answer": "It is 130.", "abstained": False}
    path = write_set(tmp_path / "set.jsonl", budgeted(first_set()))
    make_run(tmp_path, "base", path, answers=answers)
    answers = {number: measured(120.0, 12, 0.02) for number in range(CASES)}
    answers |= dict.fromkeys(range(200, 228), dear | refused)
    answers[120] |= {"answer": "It is 120.", "abstained": False}
    answers[7] |= refused
    rows = [row for row in grown(first_set()) if row["id"] != "q130"]
    make_run(tmp_path, "new", write_set(path, budgeted(rows)), answers=answers)

    found = compared(tmp_path, "--all")
    f1 = row_of(found, "abstention.abstention_f1")
    assert (f1["base"], f1["n"]) == (1.0, 139)
    assert f1["new"] == pytest.approx(36 / 38)
    shown = call(compare_runs, tmp_path, "base", "new", "--all", "-v").stdout
    assert re.search(r"abstention_f1 +1\.000 +0\.947 .* −0\.053 ", shown), shown
    kept = row_of(found, "pipeline.latency_percentiles_ok")
    assert (kept["base"], kept["new"], kept["n"]) == (1.0, 0.0, 139)

    rules = tmp_path / "gates.toml"
    words = (*GATED, "--gates", rules, "--json")
    names = {
        "run.latency_p95_ms": (100.0, 120.0),
        "run.tokens": (1390.0, 1668.0),
        "run.cost_usd": (1.39, 2.78),
        "abstention.abstention_f1": (1.0, 36 / 38),
    }
    for drop, status in (("1 %", "failed"), ("150 %", "passed")):
        lines = "".join(f'"{name}" = "drop {drop}"\n' for name in names)
        rules.write_text(f"[gates.baseline]\n{lines}")
        checks = json.loads(call(gate_run, tmp_path, *words).stdout)["checks"]
        for name, values in names.items():
            (check,) = (row for row in checks if f"{row['section']}.{row['metric']}" == name)
            assert (check["baseline"], check["value"]) == pytest.approx(values), name
            assert check["status"] == status, check

    rules.write_text('[gates.baseline]\n"abstention.abstention_f1" = "margin 0.5"\n')
    checks = json.loads(call(gate_run, tmp_path, *words).stdout)["checks"]
    (check,) = (row for row in checks if row["metric"] == "abstention_f1")
    assert (check["status"], "write a drop rule" in check["reason"]) == ("skipped", True)

    leave_metrics_alone(tmp_path / "results/base")
    rules.write_text(f"[gates.baseline]\n{lines}")
    checks = json.loads(call(gate_run, tmp_path, *words).stdout)["checks"]
    own = [row for row in checks if f"{row['section']}.{row['metric']}" in names]
    assert [row["status"] for row in own] == ["skipped"] * 4
    assert all("a figure of all cases" in row["reason"] for row in own)


def test_counts_and_conversations_of_two_sets_are_compared_or_said(tmp_path: Path) -> None:
    """28 questions are new and q130 is gone: 139 are compared. Of the calls for these q50 failed in
    base, q50 and q51 in new; q130 failed in base and q200 in new, too, which do not count."""
    failed = {"status": "error", "answer": None, "error": ErrorInfo("timeout", "late", 1)}
    path = write_set(tmp_path / "set.jsonl", first_set())
    make_run(tmp_path, "base", path, answers=dict.fromkeys((50, 130), failed))
    rows = [row for row in grown(first_set()) if row["id"] != "q130"]
    write_set(path, rows)
    make_run(tmp_path, "new", path, answers=dict.fromkeys((50, 51, 200), failed))
    rules = tmp_path / "gates.toml"
    words = (*GATED, "--gates", rules, "--json")
    rules.write_text(
        '[gates.baseline]\n"run.errors" = "drop 50 %"\n"run.cases" = "drop 1 %"\n'
        '"run.error_share" = "drop 150 %"\n'
    )
    checks = {
        row["name"]: row for row in json.loads(call(gate_run, tmp_path, *words).stdout)["checks"]
    }
    found = {
        n: (checks[n]["baseline"], checks[n]["value"], checks[n]["status"])
        for n in ("errors", "cases", "error_share")
    }
    assert found == {
        "errors": (1, 2, "failed"),
        "cases": (139, 139, "passed"),
        "error_share": (
            pytest.approx(1 / 139, abs=1e-6),
            pytest.approx(2 / 139, abs=1e-6),
            "passed",
        ),
    }


def turn(talk: int, number: int) -> dict[str, Any]:
    own = case(1000 + 10 * talk + number)
    return own | {"conversation": f"talk-{talk}", "turn": number}


def test_a_figure_of_whole_conversations_is_said_to_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    for run, talks in (("base", 10), ("new", 14)):
        write_set(path, [turn(talk, number) for talk in range(talks) for number in (1, 2)])
        make_run(tmp_path, run, path)
        call(score_conversations, tmp_path, "--run", run, "--eval-set", path)
    done = call(compare_runs, tmp_path, "base", "new")
    note = "Not compared, since the cases are not the same: conversations.conversation_pass."
    assert f"! {note}" in done.stdout.splitlines()
    paths = json.loads(call(compare_runs, tmp_path, "base", "new", "--json").stdout)[
        "evidence_path"
    ]
    assert [path["steps"]["need evidence"] for path in paths] == [20, 20]


def test_counts_of_repeats_and_conversations_are_those_of_metrics_json(tmp_path: Path) -> None:
    """Of twelve conversations of two turns, asked twice, the first has no result; in the second
    the first call of both times failed, so its second turn was not asked. So 22 cases of 24 have
    results and two calls failed. Two conversations are new in the other set."""
    late = ErrorInfo("timeout", "late", 1)
    behind = ErrorInfo(EARLIER_TURN_FAILED, "not asked", 0)
    path = tmp_path / "set.jsonl"
    for run, talks in (("base", 12), ("new", 14)):
        write_set(path, [turn(talk, number) for talk in range(talks) for number in (1, 2)])
        cases = read_cases(path, None)
        writer = ResultsWriter(tmp_path / "results", run)
        dataset = {"path": path.name, "sha256": sha256_file(path), "cases": len(cases)}
        asked = {"selected": len(cases), "repeat": 2}
        writer.write_config(RunConfig(run, dataset=dataset, run=asked))
        digests = asked_digests(cases)
        for own in cases[2:]:
            failed = {0: late, 1: behind}[cases.index(own) % 2] if own in cases[2:4] else None
            answer: dict[str, Any] = {"answer": "It is so."}
            if failed:
                answer = {"status": "error", "error": failed}
            for repeat in range(2):
                result = TestResult(own.id, own.question, repeat=repeat, **answer)
                writer.write_result(msgspec.structs.replace(result, asked=digests[own.id]))
        writer.finish(own.id for own in cases)
        assert call(score_pipeline, tmp_path, "--run", run, "--eval-set", path).exit_code == 0
    head = json.loads((tmp_path / "results/base/metrics.json").read_text())
    assert (head["cases"], head["errors"]) == (22, 2)
    rules = tmp_path / "gates.toml"
    rules.write_text('[gates.baseline]\n"run.errors" = "drop 1 %"\n"run.cases" = "drop 1 %"\n')
    words = (*GATED, "--gates", rules, "--json")
    checks = {
        row["name"]: row for row in json.loads(call(gate_run, tmp_path, *words).stdout)["checks"]
    }
    assert (checks["cases"]["baseline"], checks["cases"]["value"]) == (22, 22)
    assert (checks["errors"]["baseline"], checks["errors"]["value"]) == (2, 2)
