"""What was imported is scored by the scripts as it is; the numbers are those of trec_eval."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script

import convert_data
from formats import core_formats


def script(name: str, *words: str, code: int = 0) -> str:
    """What a script prints."""
    done = call_script(name, *words)
    assert done.returncode == code, done.stderr
    return done.stdout


def scored(name: str, folder: Path, run: str, *more: str) -> dict[str, Any]:
    """The section that a score_* script writes for an imported run."""
    words = ["--eval-set", str(folder / "eval_set.jsonl"), "--results-dir", str(folder / "results")]
    section: dict[str, Any] = json.loads(script(name, *words, "--run", run, "--json", *more))
    return section


def test_other_scripts_take_an_imported_set(tmp_path: Path) -> None:
    rows = [
        {
            "user_input": "When does the hall open?",
            "response": "The hall opens at nine each day.",
            "retrieved_contexts": ["Opening hours: the hall opens at nine each day."],
            "reference": "At nine.",
            "reference_contexts": ["the hall opens at nine each day"],
        },
        {"user_input": "And when does it close?", "response": "I do not know."},
    ]
    source = tmp_path / "samples.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "set"
    made = script("convert_data", "import", "ragas", str(source), "-o", str(folder), "-q")
    assert made.split() == [str(folder / "eval_set.jsonl"), str(folder / "results/samples")]
    words = ["--eval-set", str(folder / "eval_set.jsonl")]
    script("label_eval", "--validate", *words)
    grounded = scored("score_groundedness", folder, "samples")
    assert grounded["mean"]["claim_support_rate"] == 1.0
    assert scored("score_retrieval", folder, "samples")["mean"]["recall@1"] == 1.0
    for name in ("score_context", "score_abstention", "score_pipeline"):
        scored(name, folder, "samples")
    metrics = json.loads((folder / "results/samples/metrics.json").read_text())
    assert metrics["cases"] == 2


def open_data(*parts: str) -> Path:
    """A file of the open data sets, or a visible skip."""
    root = os.environ.get("RAG_EVAL_DATA")
    path = Path(root or "/nowhere").joinpath(*parts)
    if not path.exists():
        pytest.skip("RAG_EVAL_DATA names no folder with this set")
    return path


@pytest.mark.thorough
def test_real_conversations_as_plain_rows(tmp_path: Path) -> None:
    """MTRAG's rows hold much that a plain row has no name for: all of it is kept and told."""
    with gzip.open(open_data("mtrag_human", "data.jsonl.gz")) as file:
        rows = [json.loads(line) for line in file]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "set"
    script("convert_data", "import", "json", str(source), "-o", str(folder), "-q")
    lines = (folder / "eval_set.jsonl").read_text().splitlines()
    cases = list(map(json.loads, lines))
    assert [case["id"] for case in cases] == [row["id"] for row in rows]
    assert all(
        case["metadata"]["human"] == row["human"] for case, row in zip(cases, rows, strict=True)
    )
    assert scored("score_context", folder, "rows")["n"]


def test_the_help_names_every_format() -> None:
    """Nothing lists them by hand: the names are those of the registry."""
    (option,) = (param for param in convert_data.main.params if "--list" in param.opts)
    assert set(core_formats()) <= set(re.findall(r"[\w-]+", str(getattr(option, "help", ""))))
