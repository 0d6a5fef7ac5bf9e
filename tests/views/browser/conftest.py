"""Runs on disk, small enough to know every number in them by heart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.metrics_files import write_metrics
from tests.score_lines import write_lines
from tests.views.tables import answer, table_of

from records.cases import Category, TestCase
from views.browser.answers import AnswerTable

Record = dict[str, Any]


def json_lines(records: Sequence[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


class Runs:
    """A results folder with an eval set beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results_dir = root / "results"
        self.eval_set = root / "eval_set.jsonl"
        self.results_dir.mkdir(exist_ok=True)

    def cases(self, *cases: Record) -> None:
        """Write the eval set."""
        self.eval_set.write_bytes(json_lines(cases))

    def run(
        self,
        name: str,
        results: Sequence[Record] | None,
        *,
        partial: bool = False,
        config: Record | None = None,
        metrics: Record | None = None,
        **scores: Sequence[Record],
    ) -> Path:
        """Write a run: results with ids and what else is given, and score files by section."""
        folder = self.results_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(
            json.dumps({"schema": 1, "run_id": name, **(config or {})})
        )
        if metrics is not None:
            write_metrics(folder / "metrics.json", metrics)
        if results is not None:
            file = "results.partial.jsonl" if partial else "results.jsonl"
            (folder / file).write_bytes(json_lines([result(**one) for one in results]))
        for section, lines in scores.items():
            write_lines(folder, section, lines)
        return folder


def result(id: str, **more: Any) -> Record:  # noqa: A002 - as in the files
    """A line of results.jsonl."""
    return {"schema": 1, "test_case_id": id, "question": f"Question of {id}?", **more}


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """An empty results folder to write runs into."""
    return Runs(tmp_path)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is looked at again at once, not after a second."""
    monkeypatch.setattr("views.library.POLL_SECONDS", 0.02)
    monkeypatch.setattr("views.library._PAUSE_SHARE", 1)


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Waits for a condition, a minute at most."""

    def wait(condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, what
            time.sleep(0.01)

    return wait


SCORES = {
    "retrieval": {"recall@5": (1.0, 0.5, 0.0), "mrr": (1.0, 0.25, 0.0)},
    "pipeline": {"outcome_match": (1.0, 0.0, 1.0)},
}


CASES: tuple[tuple[str, Category, tuple[str, ...]], ...] = (
    ("a", "factual", ("logs", "time")),
    ("b", "factual", ("tenants",)),
    ("c", "recency/conflict", ("logs",)),
    ("e", "general", ()),
)


@pytest.fixture
def table() -> AnswerTable:
    """Five cases; a-e. recall@5: 1, 0.5, 0, none, none (d failed); latency 10 to 50."""
    rows = (
        ("a", "How long are logs kept?", "ok", 10.0),
        ("b", "Who owns the tenant?", "ok", 20.0),
        ("c", "How do I extend it?", "ok", 30.0),
        ("d", "Is it free?", "error", 40.0),
        ("e", "Long [bold] question", "ok", 50.0),
    )
    answers = [
        answer(
            case_id,
            question=question,
            status=status,
            latency=latency,
            policy_flags=["late"] if case_id == "e" else [],
        )
        for case_id, question, status, latency in rows
    ]
    cases = [
        TestCase(case_id, "?", True, category, difficulty="easy", tags=list(tags))
        for case_id, category, tags in CASES
    ]
    return table_of(answers, SCORES, cases)
