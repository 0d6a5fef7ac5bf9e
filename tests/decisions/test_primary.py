"""Primary scores: which metrics decide, and the same scores from a folder and a committed file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row

from decisions.case_lines import write_case_lines
from decisions.primary import BUILT_IN, primary_names, read_primary
from records.errors import StorageError
from records.metrics import load_metrics, update_metrics, update_primary
from records.scores import ScoreLine, write_scores
from records.targets import read_decide, read_targets

NAMES = ("retrieval.mrr", "pipeline.pass", "pipeline.answered")


def line(case_id: str, status: str, metric: str, score: float | None, repeat: int = 0) -> ScoreLine:
    return ScoreLine(case_id, repeat, status, {metric: score})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three cases: b comes before a, a failed; z was asked and has no result."""
    folder = tmp_path / "run"
    folder.mkdir()
    for section, lines in {
        "retrieval": [
            line("b", "scored", "mrr", 1 / 3),
            line("a", "failed", "mrr", None),
            line("c", "not_applicable", "mrr", None),
        ],
        "pipeline": [
            line("b", "scored", "pass", 1.0),
            line("a", "failed", "pass", None),
            line("c", "scored", "pass", 0.0),
        ],
    }.items():
        write_scores(folder, section, lines)
        update_metrics(folder, section, {"definitions": {"pass": "pipeline/pass@1"}}, {})
    return folder


def targets(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "targets.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decisions.primary.primary_names", lambda: NAMES)


def test_a_failed_and_a_missing_call_are_zero_for_answered_and_pass_alone(run: Path) -> None:
    scores = read_primary(run, NAMES, ["b", "a", "z", "c"])
    assert scores is not None
    assert scores.names == NAMES
    assert scores.case_ids == ("b", "a", "z", "c")
    nan = np.nan
    np.testing.assert_array_equal(
        scores.values, [[0.333333, 1, 1], [nan, 0, 0], [nan, 0, 0], [nan, 0, 1]]
    )
    assert scores.definitions == {"pipeline.pass": "pipeline/pass@1"}


@pytest.mark.usefixtures("declared")
def test_one_line_a_case_in_the_order_of_the_set(run: Path) -> None:
    write_case_lines(run)
    lines = (run / "metrics.json").read_text().splitlines()
    at = lines.index('  "primary": {')
    assert lines[at + 1 : at + 5] == [
        '    "b": [0.333333, 1, 1, "ok"],',  # gold at rank 3
        '    "a": [null, 0, 0, "fails", "no_response"],',
        '    "c": [null, 0, 1, "ok"]',  # no rule reads pass
        "  },",
    ]
    before = (run / "metrics.json").read_bytes()
    write_case_lines(run)
    assert (run / "metrics.json").read_bytes() == before
    metrics = load_metrics(run / "metrics.json")
    assert metrics["primary"]["a"] == [None, 0, 0]
    assert metrics["case_verdicts"]["a"] == ["fails", "no_response"]
    update_metrics(run, "context", {}, {})  # another section leaves them as they are
    assert '    "b": [0.333333, 1, 1, "ok"],' in (run / "metrics.json").read_text()
    update_primary(run, (), {})
    assert not load_metrics(run / "metrics.json").keys() & {"primary", "case_rule"}


@pytest.mark.usefixtures("declared")
def test_other_results_take_the_old_scores_away(run: Path) -> None:
    write_case_lines(run)
    update_metrics(run, "retrieval", {}, {"cases": 3})
    update_metrics(run, "retrieval", {}, {"cases": 2})
    assert "primary" not in load_metrics(run / "metrics.json")


def test_a_damaged_member_is_named(run: Path, tmp_path: Path) -> None:
    committed = tmp_path / "metrics.json"
    for rows, message in (({"a": [1]}, "do not match the names"), ({"a": "x"}, "primary.a")):
        committed.write_text(
            json.dumps({"schema": 2, "primary_metrics": list(NAMES), "primary": rows})
        )
        with pytest.raises(StorageError, match=message):
            read_primary(committed, NAMES)
    committed = tmp_path / "metrics.json"
    shutil.copyfile(run / "metrics.json", committed)
    assert read_primary(committed, NAMES) is None


def test_repeats_are_averaged_and_a_failed_one_counts(tmp_path: Path) -> None:
    lines = [
        line("a", "scored", "pass", 1.0, 0),
        line("a", "failed", "pass", None, 1),
        line("a", "scored", "pass", 1.0, 2),
    ]
    write_scores(tmp_path, "pipeline", lines)
    update_metrics(tmp_path, "pipeline", {}, {})
    scores = read_primary(tmp_path, NAMES)
    assert scores is not None  # pass (1 + 0 + 1) / 3, answered 2 of 3
    np.testing.assert_array_equal(scores.values, [[0.666667, 0.666667]])


def test_a_set_declares_what_decides_and_what_matters(tmp_path: Path) -> None:
    path = targets(tmp_path, '[decide]\nprimary = ["retrieval.mrr"]\n[retrieval]\nmrr = "> 0.5"\n')
    assert primary_names(path) == ("retrieval.mrr",)
    assert list(read_targets(path)) == ["retrieval"]
    assert primary_names(tmp_path / "none.toml") == BUILT_IN
    assert read_decide(targets(tmp_path, "[decide]\nmatters = 0.05\n")).matters == 0.05
    assert read_decide(targets(tmp_path, "")).matters is None
    for bad in ("5", "0.0", "1.0", '"5 %"', "true"):
        with pytest.raises(StorageError, match="the share of a metric's range that matters, such"):
            read_decide(targets(tmp_path, f"[decide]\nmatters = {bad}\n"))


@each_row(
    ("text", "message"),
    [
        ('primary = "retrieval.mrr"', "is not a list of names"),
        ("primary = []", "names no metric"),
        ('primary = ["mrr"]', "'mrr' is not a section.metric"),
        ('primary = ["a.b", "a.b"]', "twice"),
        (f"primary = {[f'a.m{n}' for n in range(7)]}", "names 7 metrics, but at most 6"),
        ('primery = ["a.b"]', "decide.primery: is unknown; write primary"),
    ],
)
def test_a_bad_declaration_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        primary_names(targets(tmp_path, f"[decide]\n{text}\n"))


@pytest.mark.parametrize("cases", [5_000, 5_001])
@pytest.mark.usefixtures("declared")
def test_up_to_5000_cases_have_a_line_in_metrics_json(cases: int, tmp_path: Path) -> None:
    """Of 5,000 cases about 150 kB: some 30 bytes a line."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_scores(
        folder, "pipeline", [line(f"c{n:04}", "scored", "pass", 1.0) for n in range(cases)]
    )
    update_metrics(folder, "pipeline", {"definitions": {"pass": "pipeline/pass@1"}}, {})
    write_case_lines(folder)
    lines = load_metrics(folder / "metrics.json").get("primary", {})
    assert len(lines) == (5_000 if cases == 5_000 else 0)
    assert (folder / "metrics.json").stat().st_size < 170_000
    committed = tmp_path / "metrics.json"
    shutil.copyfile(folder / "metrics.json", committed)
    assert (read_primary(committed) is None) is (cases > 5_000)
