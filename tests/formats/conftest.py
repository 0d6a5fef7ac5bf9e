"""A folder with sources, and convert_data.py as a user calls it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import convert_data

Record = dict[str, Any]


class Desk:
    """Writes sources below a folder, converts, and reads what came out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, name: str, content: str | bytes) -> str:
        """Write a source; returns its path as a word of the command line."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def rows(self, name: str, rows: Sequence[Any]) -> str:
        """Write a JSONL source."""
        return self.file(name, "".join(json.dumps(row) + "\n" for row in rows))

    def convert(self, *words: str, ok: bool = True) -> Result:
        done = CliRunner().invoke(convert_data.main, list(words), catch_exceptions=False)
        if ok:
            assert done.exit_code == 0, done.output
        return done

    def take(self, kind: str, *sources: str, out: str = "out", more: Sequence[str] = ()) -> Record:
        """Import into a folder; returns the report."""
        target = str(self.folder / out)
        words = ("import", kind, *sources, "--output", target, "--json", "-q", *more)
        report: Record = json.loads(self.convert(*words).stdout)
        return report

    def give(self, kind: str, target: str, *more: str, out: str = "out", run: str = "") -> Record:
        """Export what ``take`` made; returns the report."""
        base = self.folder / out
        words = ["--eval-set", str(base / "eval_set.jsonl"), "--results-dir", str(base / "results")]
        words += ["--run", run or "none"]
        words += ["--output", str(self.folder / target), "--json", "-q", *more]
        report: Record = json.loads(self.convert("export", kind, *words).stdout)
        return report

    def refused(self, kind: str, *sources: str, more: Sequence[str] = ()) -> str:
        """Import what must be refused: exit code 2 and nothing written; returns what was said."""
        before = sorted(self.folder.rglob("*"))
        target = str(self.folder / "refused")
        done = self.convert("import", kind, *sources, "--output", target, *more, ok=False)
        assert done.exit_code == 2, done.output
        assert done.stdout == ""
        assert sorted(self.folder.rglob("*")) == before
        return done.stderr

    def read(self, name: str, out: str = "out") -> list[Record]:
        """The objects of a JSONL file that was made."""
        lines = (self.folder / out / name).read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def cases(self, out: str = "out") -> list[Record]:
        return self.read("eval_set.jsonl", out)

    def results(self, run: str, out: str = "out") -> list[Record]:
        return self.read(f"results/{run}/results.jsonl", out)

    def labels(self, name: str, out: str = "out") -> dict[str, Record]:
        return {row.pop("case_id"): row for row in self.read(f"labels/{name}.jsonl", out)}

    def text(self, name: str) -> str:
        return (self.folder / name).read_text("utf-8")


KEY = b"k" * 32
"""Of the hashes of ids, in the place of the one that is made in eval/."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr("formats.traces.ids.key_of_ids", lambda: KEY)
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def desk_class() -> type[Desk]:
    """For tests that hypothesis runs many times, each in a folder of its own."""
    return Desk
