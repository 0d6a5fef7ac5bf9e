"""A run scored in any number of ranges gives the same bytes: metrics.json and score lines."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import storage
from ragmetrics.catalogue.metric import Metric
from records.metrics import read_metrics
from scorers import loop, ranges
from scorers.contract import ScoreOutcome, ScoreRow
from scorers.retrieval import RetrievalScorer
from storage import TestCase, TestResult, Work

HARD = (1e16, 1.0, -1e16, 0.1, 1 / 3, 1e-9, -0.7, 2**53 + 2.0, 3e-17, -(2**53) - 2.0)
"""1e16 + 1 is 1e16: added up in another order, or in parts, these give another sum."""
CASES = 700


class Hard:
    """Scores of the kinds that there are: hard to add up, shares, yes and no."""

    section = "hard"
    metrics = (
        Metric("hard", "made", "", "", "", low=None, high=None),
        Metric("share", "made", "", "", ""),
        Metric("flag", "made", "", "", "", binary=True),
    )
    options: dict[str, Any] = {}  # noqa: RUF012 - the protocol's own form

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        number = int(case.id[1:])
        draw = Random(number)
        share = draw.randrange(1, 90) / 97
        return ScoreRow((HARD[number * 7 % len(HARD)], share, float(share > 0.5))), {}


@pytest.fixture
def whole(tmp_path: Path) -> Work:
    cases = [
        {"id": f"q{n}", "question": "?" * 40, "vaults": ["ab"[n % 3 > 0]], "tags": [f"t{n % 7}"]}
        for n in range(CASES)
    ]
    answers = [{"test_case_id": case["id"], "answer": "x" * 40} for case in cases]
    paths = (tmp_path / "results.jsonl", tmp_path / "set.jsonl")
    for path, rows in zip(paths, (answers, cases), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Work(*paths)


def score(whole: Work, splits: int, folder: Path) -> tuple[bytes, bytes]:
    """The section, unrounded, and the score lines of a run that is scored in so many ranges."""
    folder.mkdir()
    works = storage.split(whole, splits) if splits > 1 else [whole]
    assert len(works) == splits
    score_one = partial(ranges.score_range, scorer=Hard(), labels={}, folder=folder)
    parts = [score_one(work) for work in works]
    assert not any(part.problems for part in parts)
    lines = b"".join(part.rows.read_bytes() for part in parts)
    return storage.json_bytes(loop._section(parts, Hard(), seed=0)), lines


def test_any_number_of_ranges_gives_the_same_bytes(whole: Work, tmp_path: Path) -> None:
    one, two, three, eight = (score(whole, n, tmp_path / f"s{n}") for n in (1, 2, 3, 8))
    assert one == two == three == eight
    assert json.loads(one[0])["n"] == {"hard": CASES, "share": CASES, "flag": CASES}


def test_portions_of_clusters_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ranges counted and which ids they saw are put together a portion at a time."""
    ids = [f"q{n:03}" for n in range(300)]
    cases = [
        {"id": name, "question": "?", "relevant_chunks": [f"c{n * n % 170}"], "tags": ["ab"[n % 2]]}
        for n, name in enumerate(ids)
    ]
    answers = [
        {"test_case_id": name, "retrieved": [f"c{m * m % 170}" for m in (n + 1, n, n + 2)]}
        for n, name in enumerate(ids)
    ]
    run, eval_set = tmp_path / "run", tmp_path / "set.jsonl"
    run.mkdir()
    for path, rows in ((eval_set, cases), (run / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for jobs, portion in ((1, 1 << 20), (3, 1 << 20), (3, 20)):
        monkeypatch.setattr(loop, "_PORTION", portion)
        loop.score_run(run, eval_set, RetrievalScorer(), jobs=jobs)
        found.append((run / "metrics.json").read_bytes())
    assert found[0] == found[1] == found[2]
    section = read_metrics(run)["sections"]["retrieval"]
    assert section["clustered_by"] == "doc"
    assert 0 < section["clusters"]["mrr"] < 300
    eval_set.write_text(eval_set.read_text() + json.dumps(cases[7]) + "\n")
    with pytest.raises(storage.StorageError, match="'q007' is also the id of line 8"):
        loop.score_run(run, eval_set, RetrievalScorer(), jobs=3)
