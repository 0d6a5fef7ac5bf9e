"""A call that failed, and a result that should be there and is not, count as 0 in answered and in
pass; what was not asked counts nowhere."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.score_lines import read_lines

from records.cases import TestCase
from records.files import sha256_file
from records.metrics import load_metrics
from records.results import TestResult
from scorers.abstention import AbstentionScorer
from scorers.contract import ScoreOutcome
from scorers.loop import ScoreAll, score_run
from scorers.pipeline import PipelineScorer

CASES = [{"id": f"q{n}", "question": "?", "category": "factual"} for n in range(6)]
"""q5 has no label of the pipeline: nothing could pass there."""


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def folder_of(tmp_path: Path, results: list[dict[str, Any]], **run: Any) -> tuple[Path, Path]:
    cases = [case | {"expected_outcome": "no_results"} for case in CASES[:5]] + CASES[5:]
    cases[4]["category"] = "general"
    eval_set = write(tmp_path / "set.jsonl", cases)
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder / "results.jsonl", results)
    dataset = {"sha256": run.pop("sha256", sha256_file(eval_set)), "cases": 6}
    config = {"schema": 1, "run_id": "run", "dataset": dataset, "run": run}
    (folder / "config.json").write_text(json.dumps(config))
    return folder, eval_set


def ok(name: str, repeat: int = 0) -> dict[str, Any]:
    line = {"test_case_id": name, "question": "?", "answer": "a", "repeat": repeat}
    return line | {"retrieved": []}


def error(name: str) -> dict[str, Any]:
    failed = {"status": "error", "error": {"kind": "timeout"}}
    return {"test_case_id": name, "question": "?"} | failed


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder, "pipeline")


def test_failed_and_missing_calls_are_no_pass(tmp_path: Path) -> None:
    """Of six asked q1 failed, q0 and q3 have no line, the others pass; q5 has no check."""
    results = [error("q1"), ok("q2"), ok("q4"), ok("q5")]
    folder, eval_set = folder_of(tmp_path, results, selected=6)
    section = score_run(folder, eval_set, PipelineScorer(), jobs=1)
    assert section["mean"]["answered"] == 3 / 6
    assert (section["mean"]["pass"], section["n"]["pass"]) == (2 / 5, 5)
    assert section["not_applicable"]["pass"] == 1
    assert (section["n"]["outcome_match"], section["failed"]["outcome_match"]) == (2, 3)
    assert section["errors"] == {"timeout": 1}
    lines = lines_of(folder)
    assert [line["case_id"] for line in lines] == [f"q{n}" for n in range(6)]
    assert [line["status"] for line in lines[:4]] == ["failed", "failed", "scored", "failed"]
    assert lines[0]["reasons"] == {"*": "asked, but the run has no result"}
    head = load_metrics(folder / "metrics.json")
    assert (head["asked"], head["missing"], head["cases"], head["errors"]) == (6, 2, 4, 1)


def test_ranges_give_the_same_bytes(tmp_path: Path) -> None:
    results = [error("q1"), ok("q2"), ok("q4"), ok("q5")]
    folder, eval_set = folder_of(tmp_path, results, selected=6)
    sent: list[bytes] = []

    def elsewhere(
        score_all: ScoreAll, cases: Sequence[TestCase], results: Sequence[TestResult]
    ) -> list[ScoreOutcome]:
        """As another machine does: with what can be sent there."""
        sent.append(pickle.dumps(score_all))
        return pickle.loads(sent[-1])(cases, results)  # type: ignore[no-any-return]

    files = []
    for jobs, outcome_map in ((1, None), (3, None), (1, elsewhere)):
        score_run(folder, eval_set, PipelineScorer(), jobs=jobs, outcome_map=outcome_map)
        files.append([(folder / n).read_bytes() for n in ("metrics.json", "scores/pipeline.jsonl")])
    assert files[0] == files[1] == files[2]
    assert len(sent) == 1


@each_row(
    ("run", "answered"),
    [
        ({"selected": 4, "filter": ["category=factual"], "limit": 4}, 2 / 4),
        ({"selected": 5, "filter": ["category=factual"], "limit": None}, 2 / 5),
        ({"selected": 3, "filter": [], "limit": 3}, 2 / 3),
        # what was asked cannot be told: another set, a number without the way to it, no number
        ({"selected": 6, "sha256": "another"}, 1.0),
        ({"selected": 3}, 1.0),
        ({"selected": 2, "filter": ["colour=red"]}, 1.0),
        ({}, 1.0),
    ],
)
def test_only_what_was_asked_is_missing(tmp_path: Path, run: Any, answered: float) -> None:
    folder, eval_set = folder_of(tmp_path, [ok("q1"), ok("q2")], **run)
    section = score_run(folder, eval_set, PipelineScorer(), jobs=1)
    assert section["mean"]["answered"] == pytest.approx(answered)


def test_each_missing_repeat_counts(tmp_path: Path) -> None:
    """q0 has 2 of 3 results, the other five none: (2/3 + 0) / 6; other orders give the same."""
    results = [ok("q0"), ok("q0", 2)]
    folder, eval_set = folder_of(tmp_path, results, selected=6, repeat=3)
    section = score_run(folder, eval_set, PipelineScorer(), jobs=1)
    assert section["mean"]["answered"] == pytest.approx(2 / 3 / 6)
    assert section["n"]["answered"] == 6
    assert [(line["case_id"], line["repeat"]) for line in lines_of(folder)[:4]] == [
        ("q0", 0), ("q0", 2), ("q0", 1), ("q1", 0),
    ]  # fmt: skip
    write(folder / "results.jsonl", [ok("q3"), ok("q0"), ok("q0", 2)])  # not the set's order
    section = score_run(folder, eval_set, PipelineScorer(), jobs=1)
    assert section["mean"]["answered"] == pytest.approx((2 / 3 + 1 / 3) / 6)


def test_other_sections_have_no_lines_for_what_is_missing(tmp_path: Path) -> None:
    folder, eval_set = folder_of(tmp_path, [ok("q1"), error("q2")], selected=6)
    section = score_run(folder, eval_set, AbstentionScorer(), jobs=1)
    assert section["failed"]["decision_right"] == 1
    assert len((folder / "scores/abstention.jsonl").read_text().splitlines()) == 2


def test_turns_behind_a_failed_one_are_no_pass_but_no_failed_call_either(tmp_path: Path) -> None:
    """q0 to q2 are one conversation whose first call failed: one call of six, three answers lost.

    The passes are q3 and q4, of five cases with a check."""
    lost = [error("q1"), error("q2")]
    for line in lost:
        line["error"] = {"kind": "earlier_turn_failed"}
    results = [error("q0"), *lost, ok("q3"), ok("q4"), ok("q5")]
    folder, eval_set = folder_of(tmp_path, results, selected=6)
    section = score_run(folder, eval_set, PipelineScorer(), jobs=1)
    assert section["mean"]["answered"] == 3 / 6
    assert section["mean"]["pass"] == 2 / 5
    assert section["errors"] == {"earlier_turn_failed": 2, "timeout": 1}
    head = load_metrics(folder / "metrics.json")
    assert (head["asked"], head["cases"], head["errors"]) == (6, 6, 1)
