"""Keys that the toolkit does not know, whatever characters they are made of."""

from __future__ import annotations

import importlib
import json
from typing import Any

from storage import Reference, RetrievedChunk, TestResult

SCORERS = ("retrieval", "context", "groundedness", "abstention", "pipeline")
KEYS = ("C:\\notes", 'say "x"', "\x1b]0;T\x07", "a\tb\n", "\0", "\x9b31m\u202e")
CHUNK = RetrievedChunk("c", rel_path="a.md", text="Logs are kept for 30 days.", rank=1)
CASE: dict[str, Any] = {
    "id": "q",
    "answerable": True,
    "expected_key_facts": ["30 days"],
    "gold_supports": [{"rel_path": "a.md"}],
    "expected_outcome": "success",
}


def test_every_scorer_passes_them_over(finished: Any) -> None:
    result = TestResult(
        "q",
        answer="Logs are kept for 30 days [1].",
        retrieved=[CHUNK],
        references=[Reference(index=1, rel_path="a.md")],
        latency_ms={"total": 5.0},
    )
    mine = dict.fromkeys(KEYS, "\x1b[31mmine")
    finished.write([CASE | mine], [result])
    path = finished.run / "results.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | mine) + "\n", "utf-8")
    for name in SCORERS:
        done = finished.score(importlib.import_module(f"score_{name}").main)
        assert done.exit_code == 0, done.output
        assert all(char.isprintable() or char == "\n" for char in done.output), name
        assert "q" in finished.rows(name)
