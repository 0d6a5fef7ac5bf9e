"""A real git repository that a test fills with commits of metrics.json."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.definitions import definition_of
from tests.metrics_files import metrics_text

PLAIN = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def metrics(run_id: str, means: dict[str, dict[str, float | None]], **more: Any) -> dict[str, Any]:
    """A metrics.json; ``definitions``: other ids than the catalogue's, by section.metric."""
    other = more.pop("definitions", {})
    sections = {}
    for name, table in means.items():
        sections[name] = {
            "mean": table,
            "ci95": {metric: None if v is None else [v, v] for metric, v in table.items()},
            "n": dict.fromkeys(table, 10),
            "not_applicable": dict.fromkeys(table, 0),
            "failed": dict.fromkeys(table, 0),
            "definitions": {
                metric: other.get(f"{name}.{metric}", definition_of(name, metric))
                for metric in table
            },
            "options": {"seed": 0},
        }
    head = {"run_id": run_id, "cases": 10, "errors": 0, "eval_set_sha256": "a" * 64}
    return head | more | {"sections": sections}


class Repo:
    """Commits are a day apart, from 2026-01-01 on."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.commits = 0
        top.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        day = f"2026-01-{self.commits + 1:02d}T12:00:00+00:00"
        dates = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
        done = subprocess.run(
            ["git", "-C", str(self.top), *words],
            env=os.environ | PLAIN | dates,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, run_id: str, content: dict[str, Any] | str) -> Path:
        """Put a metrics.json into the run's folder, without committing it."""
        path = self.top / "eval" / "results" / run_id / "metrics.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else metrics_text(content)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self, subject: str) -> str:
        """Commit all that there is; returns the full id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        self.commits += 1
        return self.git("rev-parse", "HEAD")

    @property
    def results(self) -> Path:
        return self.top / "eval" / "results"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture(scope="session")
def make_repo() -> Any:
    """``make_repo(folder)``: an empty repository in a folder that is not there yet."""
    return Repo


@pytest.fixture(scope="session")
def make_metrics() -> Any:
    return metrics
