"""A run scored by several processes gives the same bytes, and a killed one is one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing import get_all_start_methods
from pathlib import Path
from random import Random
from typing import Any

import pytest

import storage
from ragmetrics.catalogue.metric import Metric
from records.cases import TestCase
from records.errors import Unreachable
from records.metrics import load_metrics
from records.results import TestResult
from records.runs import METRICS, SLICES, scores_file
from scorers.abstention import AbstentionScorer
from scorers.contract import ScoreOutcome, Scorer, ScoreRow
from scorers.groundedness import GroundednessScorer
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer

HARD = (1e16, 1.0, -1e16, 0.1, 1 / 3, 1e-9, -0.7, 2**53 + 2.0, 3e-17, -(2**53) - 2.0)
"""1e16 + 1 is 1e16: added up in another order, or in parts, these give another sum."""


@dataclass(frozen=True)
class Hard:
    """Scores of the kinds that there are: hard to add up, shares, yes and no. ``deadly``: the case
    whose scoring kills the process."""

    deadly: str = ""

    section = "hard"
    metrics = (
        Metric("hard", "made", "", "", "", low=None, high=None),
        Metric("share", "made", "", "", ""),
        Metric("flag", "made", "", "", "", binary=True),
    )

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        if case.id == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        number = int(case.id[1:])
        share = Random(number).randrange(1, 90) / 97
        return ScoreRow((HARD[number * 7 % len(HARD)], share, float(share > 0.5))), {}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of 900 cases in several blocks, some asked twice, the last third turns."""
    cases: list[dict[str, Any]] = []
    answers = []
    for number in range(900):
        case: dict[str, Any] = {"id": f"q{number}", "question": "?" * 40}
        case |= {"relevant_chunks": [f"c{number % 170}"], "tags": [f"t{number % 7}"]}
        if number >= 600:
            case |= {"conversation": f"c{number // 2}", "turn": number % 2 + 1}
        cases.append(case | {"answerable": number % 3 > 0})
        answer = "I do not know." if number % 4 == 0 else "It costs 3 euros." + " More." * 9
        for repeat in range(2 if number % 5 == 0 else 1):
            ids = [f"c{(number + repeat) % 170}", f"c{number * number % 170}"]
            row = {"test_case_id": f"q{number}", "answer": answer, "retrieved": ids}
            answers.append(row | {"repeat": repeat})
    folder = tmp_path / "run"
    folder.mkdir()
    for path, rows in ((tmp_path / "set.jsonl", cases), (folder / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (folder / "results.jsonl").stat().st_size > 5 * 2**14  # blocks of 16 kB
    return folder


@pytest.mark.parametrize(
    "scorer", [Hard(), RetrievalScorer(), AbstentionScorer(), GroundednessScorer()], ids=type
)
def test_any_number_of_processes_gives_the_same_bytes(run: Path, scorer: Scorer) -> None:
    files = (run / METRICS, run / SLICES, scores_file(run, scorer.section))
    found = []
    for jobs in (1, 2, 3):
        score_run(run, run.parent / "set.jsonl", scorer, jobs=jobs)
        found.append([path.read_bytes() for path in files])
    assert found[0] == found[1] == found[2]
    assert "turn_loss" in load_metrics(run / METRICS)["sections"][scorer.section]


def test_results_in_any_order_give_the_same_bytes(run: Path) -> None:
    files = (run / METRICS, run / SLICES, scores_file(run, "hard"))
    score_run(run, run.parent / "set.jsonl", Hard())
    before = [path.read_bytes() for path in files]
    results = run / "results.jsonl"
    rows = results.read_text().splitlines(keepends=True)
    Random(3).shuffle(rows)
    results.write_text("".join(rows))
    score_run(run, run.parent / "set.jsonl", Hard(), jobs=2)
    assert [path.read_bytes() for path in files] == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_killed_process_is_one_sentence_and_nothing_is_written(run: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        score_run(run, run.parent / "set.jsonl", Hard("q700"), jobs=2)
    assert caught.value.exit_code == 3
    assert caught.value.message == (
        "a worker process was killed, or ran out of memory. Nothing was written: free memory, or "
        "score with --jobs 1."
    )
    assert sorted(path.name for path in run.iterdir()) == ["results.jsonl"]


@pytest.mark.parametrize("way", get_all_start_methods())
def test_workers_of_every_kind_score(run: Path, way: str) -> None:
    """Python 3.14 forks them from a server, whose child they are then."""
    code = (
        f"import multiprocessing, sys; multiprocessing.set_start_method({way!r});"
        "import score_retrieval; sys.argv[0] = 'score_retrieval.py'; score_retrieval.main()"
    )
    words = ["--run", str(run), "--eval-set", str(run.parent / "set.jsonl"), "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--quiet"],
        cwd=Path(storage.__file__).parent,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = scores_file(run, "retrieval").read_bytes().count(b"\n")
    assert lines == 900 + 180  # a fifth is asked twice
