"""Blocks of results: each with its case, once, in whatever blocks the file is read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

import storage
from records import lines as records_lines
from records.run import Run
from scorers.contract import ScoreOutcome
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer
from storage import Problem, TestCase, TestResult


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


asked = st.lists(st.integers(0, 3), min_size=1, max_size=30)
"""How often each case was asked."""


@settings(max_examples=60, deadline=None)
@given(asked, st.integers(1, 400))
def test_every_result_is_joined_with_its_case_once(times: list[int], block: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(records_lines, "_BLOCK", block)
        folder = Path(name)
        set_ = [{"id": f"q{n}", "question": "?"} for n in range(len(times))]
        lines = [
            {"test_case_id": f"q{n}", "repeat": repeat}
            for n, often in enumerate(times)
            for repeat in range(often)
        ]
        write(folder / "results.jsonl", lines)
        run = Run(folder, write(folder / "s.jsonl", set_))
        problems: list[Problem] = []
        cases, results = run.answers(problems.append)
        assert [case.id for case in cases] == [result.test_case_id for result in results]
        found = [{"test_case_id": r.test_case_id, "repeat": r.repeat} for r in results]
        assert found == lines
        assert problems == run.problems == []


def test_results_without_a_case_are_reported_in_the_order_of_the_file(tmp_path: Path) -> None:
    set_ = write(tmp_path / "s.jsonl", [{"id": "a", "question": "?"}])
    names = [f"x{n}" for n in range(20)]
    write(tmp_path / "results.jsonl", [{"test_case_id": name} for name in names])
    problems: list[Problem] = []
    assert Run(tmp_path, set_).answers(problems.append) == ([], [])
    assert [problem.message.split()[0] for problem in problems] == [f"'{name}'" for name in names]


@each_row("jobs", [1, 2])
def test_an_id_that_comes_again_is_found(tmp_path: Path, jobs: int) -> None:
    rows = [{"id": f"q{n}", "question": "?" * 50, "relevant_chunks": ["a"]} for n in range(400)]
    set_ = write(tmp_path / "s.jsonl", [*rows, rows[7]])
    results = [{"test_case_id": row["id"], "retrieved": []} for row in rows]
    write(tmp_path / "results.jsonl", results)
    told = r"s\.jsonl:401: id: 'q7' is also the id of line 8"
    with pytest.raises(storage.StorageError, match=told):
        score_run(tmp_path, set_, RetrievalScorer(), jobs=jobs)
    assert not (tmp_path / "metrics.json").exists()
    write(set_, rows)
    assert score_run(tmp_path, set_, RetrievalScorer(), jobs=jobs)["n"]["recall@5"] == 400


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_FSIZE's EFBIG")
def test_scores_that_cannot_be_written_are_one_sentence_with_the_folder(tmp_path: Path) -> None:
    cases = [{"id": f"q{n}", "question": "?", "relevant_chunks": ["a"]} for n in range(2000)]
    set_ = write(tmp_path / "s.jsonl", cases)
    (tmp_path / "run").mkdir()
    write(tmp_path / "run/results.jsonl", [{"test_case_id": case["id"]} for case in cases])
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "import score_retrieval; sys.argv[0] = 'score_retrieval.py'; score_retrieval.main()"
    )
    words = ["--run", str(tmp_path / "run"), "--eval-set", str(set_), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=Path(storage.__file__).parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: {tmp_path}/run/scores/retrieval.jsonl: cannot be written (File too large).\n"
    )
    left = sorted(path.name for path in (tmp_path / "run").rglob("*"))
    assert left == ["results.jsonl", "scores"]


def test_a_file_that_a_scorer_misses_is_not_told_as_a_full_disk(tmp_path: Path) -> None:
    class Missing(RetrievalScorer):
        def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
            raise FileNotFoundError(2, "No such file", "model.bin")

    set_ = write(tmp_path / "s.jsonl", [{"id": "q", "question": "?", "relevant_chunks": ["a"]}])
    write(tmp_path / "results.jsonl", [{"test_case_id": "q"}])
    with pytest.raises(FileNotFoundError, match=r"model\.bin"):
        score_run(tmp_path, set_, Missing())
    assert not (tmp_path / "metrics.json").exists()
