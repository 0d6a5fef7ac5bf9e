"""A finished run on disk, and the score_* scripts as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

import storage
from records.metrics import load_metrics
from records.scores import read_whole_scores
from storage import ResultsWriter, TestResult

Case = dict[str, Any]


class FinishedRun:
    """Writes cases, labels and results below a folder; then scores them with any script."""

    def __init__(self, folder: Path, name: str = "run") -> None:
        self.folder = folder
        self.run = folder / "results" / name

    def write(
        self,
        cases: Sequence[Case],
        results: Sequence[TestResult],
        *,
        full: bool = True,
        config: Mapping[str, Any] | None = None,
        **labels: Sequence[Case],
    ) -> None:
        """``config``: more of config.json. ``labels``: label files by name, such as
        ``pipeline_labels=[{"case_id": …}]``."""
        self._lines("set.jsonl", [{"question": f"About {case['id']}?"} | case for case in cases])
        (self.folder / "labels").mkdir(exist_ok=True)
        for name, rows in labels.items():
            self._lines(f"labels/{name}.jsonl", rows)
        writer = ResultsWriter(self.folder / "results", self.run.name, store_full_text=full)
        sha = storage.sha256_file(self.folder / "set.jsonl")
        more = {"dataset": {"sha256": sha}, "run": {"store_full_text": full}, **(config or {})}
        writer.write_config(storage.RunConfig(self.run.name, **more))
        for result in results:
            writer.write_result(result)
        writer.finish(case["id"] for case in cases)

    def configure(self, **sections: dict[str, Any]) -> None:
        """Write these fields into their sections of config.json; None takes a field out."""
        path = self.run / "config.json"
        config = json.loads(path.read_text("utf-8"))
        for section, fields in sections.items():
            fields = config.get(section, {}) | fields
            config[section] = {name: value for name, value in fields.items() if value is not None}
        path.write_text(json.dumps(config), encoding="utf-8")

    def _lines(self, name: str, rows: Sequence[Case]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (self.folder / name).write_text(text, encoding="utf-8")

    def score(self, command: click.Command, *options: str, columns: int = 80) -> Result:
        words = ["--eval-set", str(self.folder / "set.jsonl")]
        words += ["--results-dir", str(self.folder / "results")]
        words += ["--labels-dir", str(self.folder / "labels"), *options]
        return CliRunner().invoke(command, words, env={"COLUMNS": str(columns)})

    def section(self, command: click.Command, *options: str) -> dict[str, Any]:
        """What --json prints; it must be what metrics.json holds."""
        done = self.score(command, "--json", *options)
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        kept = load_metrics(self.run / "metrics.json")["sections"]
        assert found in kept.values()
        return found

    def rows(self, section: str) -> dict[str, Any]:
        """The score lines by case, with what they leave out."""
        lines = map(msgspec.to_builtins, read_whole_scores(self.run, section))
        return {row["case_id"]: row for row in lines}

    def bytes_of(self, section: str) -> tuple[bytes, bytes]:
        """All that a score script writes."""
        scores = (self.run / "scores" / f"{section}.jsonl").read_bytes()
        return scores, (self.run / "metrics.json").read_bytes()


@pytest.fixture
def finished(tmp_path: Path) -> FinishedRun:
    return FinishedRun(tmp_path)


@pytest.fixture
def same_bytes() -> Callable[[FinishedRun, click.Command, str], None]:
    """Checks that neither a second scoring nor a second process changes a byte."""

    def check(run: FinishedRun, command: click.Command, section: str) -> None:
        kept = []
        for jobs in ("1", "1", "2"):
            done = run.score(command, "--jobs", jobs)
            assert done.exit_code == 0, done.output
            kept.append(run.bytes_of(section))
        assert kept[0] == kept[1] == kept[2]

    return check
