"""A finished run for score_retrieval.py: its cases, its chunks, its scores."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import score_retrieval
from storage import RetrievedChunk, TestResult

Case = dict[str, Any]


class EvaluatedRun:
    """Scores the run that stands in ``path``; ``folder`` holds its eval set too."""

    def __init__(self, finished: Any) -> None:
        self.finished = finished
        self.folder: Path = finished.folder
        self.path: Path = finished.run

    def command(self, *options: str) -> list[str]:
        """The command line of a process of its own."""
        places = ["--eval-set", str(self.folder / "set.jsonl")]
        places += ["--results-dir", str(self.folder / "results")]
        return [sys.executable, score_retrieval.__file__, *places, *options]

    def score(self, *options: str) -> Result:
        done: Result = self.finished.score(score_retrieval.main, *options, columns=100)
        return done

    def section(self, *options: str) -> dict[str, Any]:
        """What --json prints, which is what metrics.json holds."""
        found: dict[str, Any] = self.finished.section(score_retrieval.main, *options)
        return found

    def rows(self) -> dict[str, Any]:
        """The score lines by case."""
        found: dict[str, Any] = self.finished.rows("retrieval")
        return found


@pytest.fixture
def evaluated(finished: Any) -> Callable[..., EvaluatedRun]:
    """Writes a set and a finished run: ``evaluated(cases, results)``."""

    def make(cases: list[Case], results: list[TestResult], full: bool = True) -> EvaluatedRun:
        finished.write(cases, results, full=full)
        return EvaluatedRun(finished)

    return make


@pytest.fixture
def chunk() -> Callable[..., RetrievedChunk]:
    """``chunk("a.md > A")``: a chunk at ``path > heading``."""

    def make(place: str, **fields: Any) -> RetrievedChunk:
        path, _, heading = place.partition(" > ")
        text = fields.pop("text", f"Text of {place}.")
        return RetrievedChunk(f"id of {place}", path, path, heading, text=text, **fields)

    return make


@pytest.fixture
def gold() -> Callable[..., list[Case]]:
    """``gold("a.md > A")``: supports at each ``path > heading``."""

    def make(*places: str, **fields: Any) -> list[Case]:
        parts = [place.partition(" > ") for place in places]
        return [{"rel_path": path, "heading_path": heading} | fields for path, _, heading in parts]

    return make


@pytest.fixture
def many() -> Callable[[int], tuple[list[Case], list[TestResult]]]:
    """``many(400)``: cases in two categories, with results of most of them."""

    def make(count: int) -> tuple[list[Case], list[TestResult]]:
        cases = [
            {
                "id": f"q{n}",
                "chunk_relevance_grades": {f"c{n % 7}": n % 3 + 1, f"c{n % 5 + 3}": 1},
                "category": ("factual", "reasoning")[n % 2],
            }
            for n in range(count)
        ]
        results = [
            TestResult(f"q{n}", retrieved=[f"c{(n * k) % 11}" for k in range(1, 9)])
            for n in range(count)
            if n % 17
        ]
        return cases, results

    return make
