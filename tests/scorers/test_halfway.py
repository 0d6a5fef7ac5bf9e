"""A kill between the score lines and metrics.json is reported, and a refusal leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from records.errors import StorageError
from records.metrics import read_metrics
from records.run import Run
from scorers import loop
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer

KILLED = """
import os, signal, sys
from pathlib import Path
from scorers import loop
from scorers.retrieval import RetrievalScorer

loop.update_metrics = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
loop.score_run(Path(sys.argv[1]), Path(sys.argv[2]), RetrievalScorer())
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "r"
    folder.mkdir()
    case = {"id": "q", "question": "?", "relevant_chunks": ["a"]}
    (tmp_path / "set.jsonl").write_text(json.dumps(case) + "\n")
    (folder / "results.jsonl").write_text('{"test_case_id":"q","retrieved":["a"]}\n')
    return folder


def test_a_run_that_was_scored_halfway_is_reported_until_it_is_scored_again(run: Path) -> None:
    eval_set = run.parent / "set.jsonl"
    score_run(run, eval_set, RetrievalScorer())
    before = (run / "metrics.json").read_bytes()
    words = [sys.executable, "-c", KILLED, str(run), str(eval_set)]
    done = subprocess.run(words, cwd=Path(loop.__file__).parents[1], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    told = "retrieval is scored halfway, so its lines and metrics.json differ; score the run again"
    for read in (lambda: read_metrics(run), lambda: Run(run).section("retrieval")):
        with pytest.raises(StorageError) as caught:
            read()
        assert f"{run}/scores/retrieval.jsonl: {told} (eval_suite.py --run r)" in str(caught.value)
    score_run(run, eval_set, RetrievalScorer())
    assert (run / "metrics.json").read_bytes() == before
    assert Run(run).section("retrieval").cases == 1
    assert os.listdir(run / "scores") == ["retrieval.jsonl"]


def test_a_refused_section_leaves_no_lock(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetrievalScorer, "aggregate", lambda *_: {"mean": {"mrr": float("nan")}})
    with pytest.raises(StorageError):
        score_run(run, run.parent / "set.jsonl", RetrievalScorer())
    assert not [*run.glob("*.lock")]
