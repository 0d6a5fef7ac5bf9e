"""The notebook of docs/examples: what it prints is what the scripts say of the same runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import storage

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "examples" / "notebook.py"
QUESTIONS = 12


def chunk(name: str) -> storage.RetrievedChunk:
    return storage.RetrievedChunk(chunk_id=name, rel_path=f"{name}.md", heading_path="H", rank=1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Each question has a file of its own as gold; run new finds that of the first four alone."""
    names = [f"q{number}" for number in range(QUESTIONS)]
    cases = [
        {
            "id": name,
            "question": f"{name}?",
            "gold_supports": [{"rel_path": f"{name}.md", "heading_path": "H"}],
        }
        for name in names
    ]
    (tmp_path / "eval" / "labels").mkdir(parents=True)
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    (tmp_path / "eval_set.jsonl").write_text(lines)
    dataset = {"sha256": storage.sha256_file(tmp_path / "eval_set.jsonl")}
    for run, found in (("base", QUESTIONS), ("new", 4)):
        writer = storage.ResultsWriter(tmp_path / "eval" / "results", run, store_full_text=True)
        writer.write_config(storage.RunConfig(run, dataset=dataset))
        for number, name in enumerate(names):
            passage = chunk(name if number < found else "other")
            writer.write_result(
                storage.TestResult(name, f"{name}?", answer="Yes.", retrieved=[passage])
            )
        writer.finish(names)
    return tmp_path


def run(home: Path, *words: str) -> str:
    env = os.environ | {"RAG_EVAL_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_notebook_scores_and_compares(home: Path) -> None:
    lines = run(home, str(NOTEBOOK), "base", "new").splitlines()
    assert lines[:2] == [
        "base 12 answers, evidence_recall@5 1.0",
        "new 12 answers, evidence_recall@5 0.3333333333333333",
    ]
    scripts = ROOT / "eval" / "scripts"
    compared: dict[str, Any] = json.loads(
        run(home, str(scripts / "compare_runs.py"), "base", "new", "--json", "-q")
    )
    (comparison,) = compared["comparisons"]
    assert lines[-1] == comparison["headline"]
    rows = [row for row in comparison["rows"] if row["primary"]]
    names = [f"{row['section']}.{row['metric']}" for row in rows]
    assert [line.split()[0] for line in lines[2:-1]] == names
    ends = zip(lines[2:-1], rows, strict=True)
    assert all(line.endswith(f" {row['verdict']}") for line, row in ends)
    assert (lines[-1], rows[0]["verdict"]) == ("WORSE", "worse")


@pytest.mark.parametrize("words", [(), ("base",), ("base", "new", "other")])
def test_it_asks_for_two_runs(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, NOTEBOOK, *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Name two runs: python docs/examples/notebook.py BASE NEW\n"


def test_it_is_as_short_as_it_says() -> None:
    text = NOTEBOOK.read_text("utf-8")
    last = text[text.rindex("# %%") :].splitlines()[1:]
    assert len(last) <= 13
    assert "from storage import" in text
