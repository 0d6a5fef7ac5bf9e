"""Three runs to compare, on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scripts.compare_runs.runs import CASES, HOSTILE, Compare, run
from tests.scripts.conftest import FinishedRun

import compare_runs
import score_pipeline
import score_retrieval
from storage import RetrievedChunk, TestResult


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of 24 questions and the runs ``good`` (gold first), ``bad`` (every third time gone,
    k 5 instead of 9) and ``same`` (as good), all scored."""
    lines = [
        {
            "id": f"q{i}",
            "question": f"What is {i}? {HOSTILE}" if i == 3 else f"What is {i}?",
            "answerable": True,
            "category": "factual" if i < 12 else "reasoning",
            "relevant_docs": [f"notes/{i}.md"],
            "gold_supports": [],
            "expected_outcome": "success",
            "thread": i // 4,
        }
        for i in range(CASES)
    ]
    for name, lost, k in (("good", 0, 9), ("bad", 3, 5), ("same", 0, 9)):
        results = []
        for i in range(CASES):
            found = "other.md" if lost and i % lost == 0 else f"notes/{i}.md"
            chunks: list[RetrievedChunk | str] = [RetrievedChunk("c", "x.md", "x.md", rank=1)]
            chunks.append(RetrievedChunk("d", found, found, rank=2))
            answer = f"{name} says {i}. {HOSTILE}\n```\n<b>out</b>\n" if i == 3 else f"It is {i}."
            question = str(lines[i]["question"])
            results.append(TestResult(f"q{i}", question, answer=answer, retrieved=chunks))
        made = FinishedRun(tmp_path, name)
        made.write(lines, results, full=False, config={"retriever": {"k": k}})
        for script in (score_retrieval.main, score_pipeline.main):
            made.section(script, "--run", name)
    return tmp_path


@pytest.fixture
def compare(folder: Path) -> Compare:
    return lambda *words, **more: run(compare_runs.main, folder, *words, **more)
