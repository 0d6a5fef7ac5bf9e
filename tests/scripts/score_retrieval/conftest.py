"""A finished run for score_retrieval.py: its cases, its chunks, its scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import score_retrieval
from storage import RetrievedChunk, TestResult

Case = dict[str, Any]


class EvaluatedRun:
    """Scores the run of ``path``; ``folder`` has its eval set too. As ``FinishedRun`` does it."""

    def __init__(self, finished: Any) -> None:
        self.folder: Path = finished.folder
        self.path: Path = finished.run
        self.score = partial(finished.score, score_retrieval.main, columns=100)
        self.section = partial(finished.section, score_retrieval.main)
        self.rows = partial(finished.rows, "retrieval")


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
