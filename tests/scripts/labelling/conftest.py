"""label_eval.py as a user runs it: a folder with a set, and the script on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script

import storage

SCRIPT = Path(__file__).resolve().parents[3] / "eval" / "scripts" / "label_eval.py"
Record = dict[str, Any]
CASES: list[Record] = [
    {"id": "a", "question": "Where is A?", "x": 1},
    {"id": "b", "question": "Where is B?", "category": "factual"},
    {"id": "c", "question": "Where is C?"},
]


class Tool:
    """The script, run in a folder of its own."""

    SCRIPT = SCRIPT
    CASES = CASES

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set = folder / "eval_set.jsonl"
        self.write(CASES)

    def write(self, cases: list[Record]) -> None:
        self.set.write_text("".join(json.dumps(case) + "\n" for case in cases))

    def cases(self) -> dict[str, Record]:
        return {case["id"]: case for case in map(json.loads, self.set.read_text().splitlines())}

    def words(self, *words: str) -> list[str]:
        return [
            *(sys.executable, str(SCRIPT), "--eval-set", str(self.set)),
            *("--labels-dir", str(self.folder / "labels")),
            *("--results-dir", str(self.folder / "results"), *words),
        ]

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RAG_EVAL_")}
        return kept | {"RAG_EVAL_CONFIG": os.devnull}

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return call_script("label_eval", *self.words(*words)[2:], typed=typed)

    def make_run(self, name: str = "r1") -> None:
        writer = storage.ResultsWriter(self.folder / "results", name, store_full_text=True)
        for case in CASES:
            found: list[storage.RetrievedChunk | str] = [
                storage.RetrievedChunk(
                    f"c{n}", rel_path=f"f{n}.md", heading_path="H", text=f"Text {n}.", score_final=s
                )
                for n, s in enumerate((0.9, 0.9 if case["id"] == "b" else 0.1, 0.05))
            ]
            writer.write_result(
                storage.TestResult(str(case["id"]), str(case["question"]), retrieved=found)
            )
        writer.finish(["a", "b", "c"])


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)
