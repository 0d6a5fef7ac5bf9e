"""Scored run folders, written line by line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.metrics_files import write_metrics
from tests.score_lines import write_lines

from records.metrics import load_metrics

SHA = "5" * 64
Scores = Mapping[str, Sequence[float | None]]
"""A metric and its value for each case; None where it does not apply."""


class Runs:
    """Makes run folders below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(
        self,
        name: str,
        scores: Scores,
        section: str = "retrieval",
        *,
        ids: Sequence[str] | None = None,
        evidence: Sequence[Any] | None = None,
        repeats: int = 1,
        definitions: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        eval_set: str = SHA,
        labels: str | None = None,
        whole_run: Mapping[str, float] | None = None,
        answers: Mapping[str, str] | None = None,
    ) -> Path:
        """A run with one section of scores; called again for another section of the same run.

        ``repeats``: the scores are those of repeats, side by side, of fewer cases.
        """
        run = self.folder / name
        count = len(next(iter(scores.values()))) // repeats
        ids = ids or [f"q{number}" for number in range(count)]
        lines = []
        for place in range(count * repeats):
            line: dict[str, Any] = {
                "case_id": ids[place // repeats],
                "repeat": place % repeats,
                "scores": {metric: values[place] for metric, values in scores.items()},
            }
            if evidence is not None:
                line["evidence"] = evidence[place]
            lines.append(line)
        write_lines(run, section, lines)
        answers = answers or {}
        self.lines(
            run / "results.jsonl",
            [
                {"test_case_id": i, "question": f"About {i}?", "answer": answers.get(i, "Yes.")}
                for i in ids
            ],
        )
        self.write_config(run, config or {})
        path = run / "metrics.json"
        known: dict[str, Any] = load_metrics(path) if path.exists() else {"sections": {}}
        known |= {"eval_set_sha256": eval_set, "labels_sha256": labels}
        known["sections"][section] = self.section(scores, definitions, options, whole_run)
        write_metrics(path, known)
        return run

    def section(
        self, scores: Scores, definitions: Any, options: Any, whole_run: Any
    ) -> dict[str, Any]:
        mean: dict[str, float | None] = {}
        n = {}
        for metric, values in scores.items():
            known = [value for value in values if value is not None]
            mean[metric] = sum(known) / len(known) if known else None
            n[metric] = len(known)
        mean |= whole_run or {}
        return {
            "definitions": {metric: f"x/{metric}@1" for metric in mean} | (definitions or {}),
            "options": {"seed": 0} | (options or {}),
            "mean": mean,
            "ci95": dict.fromkeys(mean),
            "n": n,
            "not_applicable": {metric: len(scores[metric]) - count for metric, count in n.items()},
            "failed": dict.fromkeys(mean, 0),
            "by": {},
        }

    def write_config(self, run: Path, config: Mapping[str, Any]) -> None:
        whole: dict[str, Any] = {"schema": 1, "run_id": run.name, "dataset": {"sha256": SHA}}
        whole |= config
        (run / "config.json").write_text(json.dumps(whole))

    @staticmethod
    def lines(path: Path, rows: Sequence[Any]) -> None:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "results")


@pytest.fixture
def targets(tmp_path: Path) -> Callable[[str], Path]:
    """Write a targets.toml; returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "targets.toml"
        path.write_text(text)
        return path

    return write
