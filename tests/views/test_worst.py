"""The worst cases of a section: which are bad at all, and in which order."""

from __future__ import annotations

from pathlib import Path

import msgspec
import orjson
from tests.rows import each_row
from tests.score_lines import write_lines

from ragmetrics.catalogue.metric import Metric
from storage import TestResult
from views.worst import worst_cases


def metric(high: float | None, higher_is_better: bool) -> Metric:
    return Metric(
        "m", "f", "meaning", "needs", "source", high=high, higher_is_better=higher_is_better
    )


@each_row(
    ("known", "expected"),
    [
        # 1 is perfect and left out; the others from 0 up, in set order on ties.
        (metric(1.0, True), ["b", "e", "c"]),
        # 0 is perfect: b and e are left out.
        (metric(1.0, False), ["a", "c"]),
        # No upper end: no score is the best one.
        (metric(None, True), ["b", "e", "c", "a"]),
    ],
)
def test_perfect_and_unscored_cases_are_not_bad(
    tmp_path: Path, known: Metric, expected: list[str]
) -> None:
    scores = {"a": 1.0, "b": 0.0, "c": 0.5, "d": None, "e": 0.0}
    files = {"set.jsonl": b"", "results.jsonl": b""}
    rows = [
        {"case_id": name, "repeat": 1, "scores": {"m": score}} for name, score in scores.items()
    ]
    write_lines(tmp_path, "s", rows)
    for name in scores:
        files["set.jsonl"] += orjson.dumps({"id": name, "question": f"{name}?"}) + b"\n"
        files["results.jsonl"] += msgspec.json.encode(TestResult(name, repeat=1)) + b"\n"
    for path, data in files.items():
        (tmp_path / path).write_bytes(data)
    found = worst_cases(tmp_path, "s", known, 5, tmp_path / "set.jsonl", None)
    assert [(case.case_id, case.repeat) for _, case in found] == [(name, 1) for name in expected]
