"""The loop takes its executor from outside: ranges scored elsewhere give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from records.metrics import load_metrics
from records.runs import METRICS, SLICES, scores_file
from scorers.abstention import AbstentionScorer
from scorers.contract import Scorer
from scorers.groundedness import GroundednessScorer
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer


class Recording(ThreadPoolExecutor):
    """Counts what it is asked to do."""

    calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        return super().submit(fn, *args, **kwargs)


def test_ranges_scored_by_an_executor_give_the_same_bytes(tmp_path: Path) -> None:
    ids = [f"q{number:02}" for number in range(40)]
    cases = [{"id": name, "question": "?", "relevant_chunks": ["a"]} for name in ids]
    answers = [{"test_case_id": name, "retrieved": ["b", "a"]} for name in ids]
    run = tmp_path / "run"
    run.mkdir()
    for path, rows in ((tmp_path / "set.jsonl", cases), (run / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = (run / METRICS, run / SLICES, scores_file(run, "retrieval"))
    score_run(run, tmp_path / "set.jsonl", RetrievalScorer(), jobs=1)
    here = [path.read_bytes() for path in files]
    with Recording(2) as executor:
        score_run(run, tmp_path / "set.jsonl", RetrievalScorer(), jobs=2, executor=executor)
    assert executor.calls == 2
    assert [path.read_bytes() for path in files] == here
    # rank 2 in each
    assert load_metrics(run / METRICS)["sections"]["retrieval"]["mean"]["mrr"] == 0.5


@pytest.mark.parametrize("scorer", [AbstentionScorer(), GroundednessScorer()], ids=type)
def test_ranges_with_turns_and_without_give_the_numbers_of_the_whole(
    tmp_path: Path, scorer: Scorer
) -> None:
    """The second half of the set are turns. Abstention reads the clusters of the lines for its own
    numbers, too; groundedness notes them for turns alone."""
    cases: list[dict[str, Any]] = []
    answers = []
    for number in range(40):
        cases.append({"id": f"q{number:02}", "question": "?", "answerable": number % 3 > 0})
        if number >= 20:
            cases[-1] |= {"conversation": f"c{number // 2}", "turn": number % 2 + 1}
        answer = "I do not know." if number % 4 == 0 else "It costs 3 euros."
        answers.append({"test_case_id": f"q{number:02}", "answer": answer, "retrieved": []})
    run = tmp_path / "run"
    run.mkdir()
    for path, rows in ((tmp_path / "set.jsonl", cases), (run / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = (run / METRICS, run / SLICES, scores_file(run, scorer.section))
    found = []
    for executor in (None, ThreadPoolExecutor(2)):
        jobs = 1 if executor is None else 4
        score_run(run, tmp_path / "set.jsonl", scorer, jobs=jobs, executor=executor)
        found.append([path.read_bytes() for path in files])
    assert found[0] == found[1]
    assert "turn_loss" in load_metrics(run / METRICS)["sections"][scorer.section]
