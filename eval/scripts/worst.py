"""The cases that scored least: their score lines, cases and results, found in two passes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

import storage
from ragmetrics.catalogue import Metric


@dataclass(frozen=True, slots=True)
class Worst:
    """One bad case: its score line, what was asked, and what the bot returned."""

    score: float
    row: dict[str, Any]
    case: storage.TestCase
    result: storage.TestResult


def worst_cases(
    folder: Path, section: str, metric: Metric, count: int, eval_set: Path, labels_dir: Path | None
) -> list[Worst]:
    """The ``count`` cases with the worst score of one metric, worst first, in set order on ties.

    Reads scores/<section>.jsonl; unscored cases and those with the best score that the metric can
    have are left out. Memory: ``count`` cases.
    """
    best = metric.high if metric.higher_is_better else metric.low
    sign = 1.0 if metric.higher_is_better else -1.0
    rows: list[tuple[float, int, dict[str, Any]]] = []
    with open(folder / "scores" / f"{section}.jsonl", "rb") as file:
        for place, line in enumerate(file):
            row = orjson.loads(line)
            score = row["scores"].get(metric.name)
            if score is not None and score != best:
                entry = (-sign * score, -place, row)
                if len(rows) < count:
                    heapq.heappush(rows, entry)
                else:
                    heapq.heappushpop(rows, entry)
    kept = sorted(rows, reverse=True)
    wanted = {(row["case_id"], row["repeat"]) for _, _, row in kept}
    results = {
        key: result
        for result in storage.iter_results(folder / storage.RESULTS)
        if (key := (result.test_case_id, result.repeat)) in wanted
    }
    labels, _ = storage.read_labels(labels_dir, lambda problem: None)
    ids = {case_id for case_id, _ in wanted}
    cases = {
        case.id: case
        for case in storage.iter_cases(eval_set, lambda problem: None, labels)
        if case.id in ids
    }
    return [
        Worst(-sign * badness, row, cases[row["case_id"]], results[row["case_id"], row["repeat"]])
        for badness, _, row in kept
    ]
