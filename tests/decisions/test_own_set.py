"""Runs of a set of their own are compared by that set, never by the repository's."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.score_lines import change_lines

import compare_runs
import gate_run
import score_pipeline
import track_metrics
from decisions.alerts import clusters_of_points
from decisions.conditions import measured_run
from decisions.gate_checks import GateEvidence
from decisions.history import read_history
from decisions.regressions import regressions
from records.asked import asked_set
from records.files import sha256_file
from records.results import RunConfig
from records.runs import HOME
from records.scores import ScoreLine
from storage import EVAL_SET, ResultsWriter, TestResult

CASES = 12


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two scored runs of twelve cases, two in each group, of which the second abstains."""
    write_set(tmp_path / "mine.jsonl")
    for run, abstained in (("base", False), ("new", True)):
        writer = ResultsWriter(tmp_path / "results", run)
        dataset: dict[str, Any] = {
            "path": "mine.jsonl",
            "sha256": sha256_file(tmp_path / "mine.jsonl"),
        }
        dataset["cases"] = CASES
        writer.write_config(RunConfig(run, dataset=dataset, run={"selected": CASES}))
        for number in range(CASES):
            result = TestResult(f"q{number}", "?", answer="yes", abstained=abstained)
            writer.write_result(result)
        writer.finish(f"q{number}" for number in range(CASES))
        done = call(score_pipeline, tmp_path, "--run", run, "--eval-set", tmp_path / "mine.jsonl")
        assert done.exit_code == 0, done.output
    return tmp_path / "results"


def write_set(path: Path, more: str = "") -> None:
    rows = [
        {"id": f"q{n}", "question": "?", "group": f"g{n // 2}", "expected_outcome": "success"}
        for n in range(CASES)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + more)


def call(script: object, folder: Path, *words: object) -> Result:
    words = (*words, "--results-dir", folder / "results")
    return CliRunner().invoke(script.main, [str(word) for word in words])  # type: ignore[attr-defined]


def test_score_lines_name_the_clusters(results: Path) -> None:
    """12 cases in 6 groups; the repository's set, which has 146 cases, is not asked."""
    (results.parent / "mine.jsonl").unlink()
    done = call(compare_runs, results.parent, "base", "new")
    assert "12 cases in both; in 6 groups" in done.stdout
    assert "Note" not in done.stderr

    evidence = GateEvidence(measured_run(results / "new"), measured_run(results / "base"))
    assert regressions(evidence, ["pipeline.pass"]).cases == "12 cases in 6 groups"
    assert "Note" not in call(gate_run, results.parent, "--run", "new", "--baseline", "base").stderr

    history = read_history([results], "runs")
    (labels,) = clusters_of_points(history, None).values()
    assert labels["q0"] == labels["q1"] == "group: g0"
    assert call(track_metrics, results.parent, "--set", "source=runs").exit_code == 0


def forget_clusters(results: Path) -> None:
    """As an older version left the score lines."""

    def forget(lines: list[ScoreLine]) -> None:
        for line in lines:
            line.cluster = None

    for run in results.iterdir():
        change_lines(run, "pipeline", forget)


def test_of_older_score_lines_the_set_that_the_run_was_asked_with_counts(results: Path) -> None:
    forget_clusters(results)
    done = call(compare_runs, results.parent, "base", "new")
    assert "12 cases in both; in 6 groups" in done.stdout
    assert "Note" not in done.stderr
    (labels,) = clusters_of_points(read_history([results], "runs"), None).values()
    assert labels["q0"] == labels["q1"]


def test_a_set_with_another_hash_clusters_nothing(results: Path) -> None:
    forget_clusters(results)
    mine = results.parent / "mine.jsonl"
    write_set(mine, '{"id": "q99", "question": "?"}\n')
    done = call(compare_runs, results.parent, "base", "new")
    assert "cases in both\n" in done.stdout
    assert f"{mine} is not the set that new was scored with, so every case" in done.stderr
    assert clusters_of_points(read_history([results], "runs"), None) == {}
    done = call(compare_runs, results.parent, "base", "new", "--eval-set", EVAL_SET)
    assert "cases in both\n" in done.stdout
    done = call(compare_runs, results.parent, "base", "new", "--set", "cluster=group")
    assert done.exit_code == 2
    assert f"--set cluster=group: {mine} is not the set" in done.stderr
    assert "Give that set with --eval-set" in done.stderr


def test_of_sets_of_one_name_that_with_the_hash_is_taken(
    results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "mine.jsonl").write_text("{}\n")
    monkeypatch.chdir(other)
    assert asked_set(results / "base") == results.parent / "mine.jsonl"
    (results.parent / "mine.jsonl").unlink()
    assert asked_set(results / "base") == other / "mine.jsonl"
    (other / "mine.jsonl").unlink()
    assert asked_set(results / "base") == Path("mine.jsonl")
    (results / "base" / "config.json").unlink()
    assert asked_set(results / "base") == EVAL_SET


def name_set(results: Path, name: str, **dataset: str) -> None:
    """Let config.json of both runs name another set."""
    for run in ("base", "new"):
        config = results / run / "config.json"
        raw = json.loads(config.read_text())
        raw["dataset"] |= {"path": name} | dataset
        config.write_text(json.dumps(raw))


@pytest.mark.parametrize("name", ["a" * 5000, ".", "a\0b"])
def test_a_name_that_no_file_can_have_is_no_set(results: Path, name: str) -> None:
    name_set(results, name)
    assert asked_set(results / "base") == Path(name)


def test_of_a_path_elsewhere_the_name_alone_counts(results: Path, tmp_path: Path) -> None:
    """A config.json from another person can name any file. Beside the run is mine.jsonl."""
    other = tmp_path / "elsewhere" / "mine.jsonl"
    other.parent.mkdir()
    other.write_bytes((tmp_path / "mine.jsonl").read_bytes())
    for name in (str(other), "../elsewhere/mine.jsonl", "a/../../elsewhere/mine.jsonl"):
        name_set(results, name)
        assert asked_set(results / "base") == tmp_path / "mine.jsonl"
        done = call(compare_runs, tmp_path, "base", "new")
        assert f"new/config.json names its set as {name}. A run may not" in done.stderr
        assert "only a file called mine.jsonl was looked for" in done.stderr
        assert "names its set" not in call(compare_runs, tmp_path, "base", "new", "-q").stderr
        words = ("base", "new", "--eval-set", other)
        assert "names its set" not in call(compare_runs, tmp_path, *words).stderr
    name_set(results, str(tmp_path / "elsewhere" / "other.jsonl"))
    assert asked_set(results / "base") == Path("other.jsonl")


def test_a_file_of_another_repository_must_have_the_hash(results: Path, tmp_path: Path) -> None:
    """Above the run sets/a.jsonl is the set while it is unchanged; here it always is."""
    other = tmp_path / "sets" / "a.jsonl"
    other.parent.mkdir()
    write_set(other)
    name_set(results, "sets/a.jsonl", sha256=sha256_file(other))
    assert asked_set(results / "base") == other
    write_set(other, '{"id": "q99", "question": "?"}\n')
    assert asked_set(results / "base") == HOME / "sets" / "a.jsonl"
    with contextlib.chdir(tmp_path):
        assert asked_set(results / "base") == other


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_nothing_below_the_root_is_looked_into(results: Path) -> None:
    """Each folder above the run is looked into, the root of the file system for names alone."""
    name_set(results, "proc/self/mem", sha256=sha256_file(Path(__file__)))
    with contextlib.chdir("/"):
        assert asked_set(results / "base") == HOME / "proc" / "self" / "mem"
