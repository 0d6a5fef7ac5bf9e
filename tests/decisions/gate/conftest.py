"""Two made-up runs on disk (score lines, metrics.json), and gate_run.py on them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.definitions import definition_of
from tests.metrics_files import write_metrics
from tests.processes import call_script
from tests.score_lines import write_lines

N = 40
Score = float | None
SHA = "a" * 64


class MadeRun:
    """``scores``: section → metric → a score a case (None: not applicable), c0, c1, …"""

    def __init__(self, folder: Path, scores: Mapping[str, Mapping[str, Sequence[Score]]]) -> None:
        self.folder = folder
        self.scores = {name: dict(table) for name, table in scores.items()}
        self.head: dict[str, Any] = {"eval_set_sha256": SHA, "errors": 0}
        self.more: dict[str, dict[str, Any]] = {}
        self.ids: list[str] | None = None
        self.write()

    def names(self, count: int) -> list[str]:
        return self.ids if self.ids is not None else [f"c{place}" for place in range(count)]

    def write(self) -> None:
        """Put everything on the disk, over what was there."""
        (self.folder / "scores").mkdir(parents=True, exist_ok=True)
        sections = {}
        count = 0
        for name, table in self.scores.items():
            count = max(map(len, table.values()))
            self._lines(name, table, count)
            sections[name] = self._section(name, table) | self.more.get(name, {})
        for path in (self.folder / "scores").glob("*.jsonl"):
            if path.stem not in self.scores:
                path.unlink()
        head = {"run_id": self.folder.name, "cases": count} | self.head
        write_metrics(self.folder / "metrics.json", head | {"sections": sections})
        dataset = {"sha256": head["eval_set_sha256"]}
        self._json("config.json", {"schema": 1, "run_id": self.folder.name, "dataset": dataset})

    def _json(self, name: str, value: Any) -> None:
        (self.folder / name).write_text(json.dumps(value), encoding="utf-8")

    def _lines(self, name: str, table: Mapping[str, Sequence[Score]], count: int) -> None:
        rows = []
        for place, case_id in enumerate(self.names(count)):
            scores = {metric: column[place] for metric, column in table.items()}
            reasons = {metric: "no gold" for metric, value in scores.items() if value is None}
            rows.append({"case_id": case_id, "scores": scores, "reasons": reasons})
        write_lines(self.folder, name, rows)

    def _section(self, name: str, table: Mapping[str, Sequence[Score]]) -> dict[str, Any]:
        known = {metric: [v for v in column if v is not None] for metric, column in table.items()}
        means = {metric: sum(v) / len(v) if v else None for metric, v in known.items()}
        return {
            "mean": means,
            "ci95": {m: None if v is None else [v - 0.1, v + 0.1] for m, v in means.items()},
            "n": {metric: len(values) for metric, values in known.items()},
            "not_applicable": {m: len(table[m]) - len(values) for m, values in known.items()},
            "failed": dict.fromkeys(table, 0),
            "definitions": {m: definition_of(name, m) for m in table},
            "options": {},
        }


class Gate:
    """Runs the script on results/new."""

    def __init__(self, folder: Path, make_run: Any) -> None:
        self.folder = folder
        self.base = make_run("base", self.scores(32, 4))
        self.new = make_run("new", self.scores(32, 4))

    @staticmethod
    def scores(hits: int, misses: int) -> dict[str, dict[str, list[Score]]]:
        """Recall of 40 cases is 1 in the first ``hits``; scope_miss (better when low) is 1 in the
        first ``misses``; a second section that nothing changes."""
        recall: list[Score] = [float(place < hits) for place in range(N)]
        scope: list[Score] = [float(place < misses) for place in range(N)]
        redundancy: list[Score] = [0.1 for _ in range(N)]
        return {
            "retrieval": {"recall@5": recall, "scope_miss": scope},
            "context": {"redundancy_ngram": redundancy},
        }

    def rules(self, text: str) -> None:
        (self.folder / "gates.toml").write_text(text, encoding="utf-8")

    def run(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        options = ["--run", "new", "--gates", "gates.toml", "--results-dir", "results"]
        settings = {"COLUMNS": "100"} | env
        return call_script("gate_run", *options, *map(str, words), cwd=self.folder, **settings)

    def failures(self, *words: object) -> dict[str, str]:
        """Name and reason of what fails; the exit code, screen and gate.json must agree."""
        done = self.run(*words)
        assert done.returncode in (0, 1), done.stderr
        found = json.loads((self.new.folder / "gate.json").read_text("utf-8"))
        failed = {
            one["name"]: one["reason"] for one in found["checks"] if one["status"] == "failed"
        }
        assert done.returncode == (1 if failed else 0)
        assert found["passed"] is (not failed)
        shown = f" {' '.join(done.stdout.split())} "
        names = [one["name"] for one in found["checks"] if one["status"] == "failed"]
        for name in failed:  # each rule once: in a row of numbers, or in a sentence
            times = len(re.findall(rf"✗ {re.escape(name)}[ ,]", shown))
            assert times == names.count(name), (name, shown)
        return failed


@pytest.fixture
def make_run(tmp_path: Path) -> Any:
    """``make_run("new", {"retrieval": {"mrr": [1.0, 0.0]}})`` writes results/new."""

    def make(name: str, scores: Mapping[str, Mapping[str, Sequence[Score]]]) -> MadeRun:
        return MadeRun(tmp_path / "results" / name, scores)

    return make


@pytest.fixture
def gate(tmp_path: Path, make_run: Any) -> Gate:
    return Gate(tmp_path, make_run)
