"""Writes goldens and a test run with the real DeepEval."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER = Path(sys.argv[2]).resolve()
os.chdir(FOLDER)
os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
os.environ["DEEPEVAL_RESULTS_FOLDER"] = str(FOLDER / "runs")

from deepeval import evaluate  # noqa: E402
from deepeval.dataset import EvaluationDataset, Golden  # noqa: E402
from deepeval.metrics import ExactMatchMetric  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402
from facts import FACTS  # noqa: E402


def make() -> None:
    goldens = [
        Golden(
            input=fact["question"],
            actual_output=fact["answer"],
            expected_output=fact["reference"],
            context=fact["gold"],
            retrieval_context=[passage["text"] for passage in fact["passages"]],
            additional_metadata={"note": fact["note"]},
        )
        for fact in FACTS
    ]
    data = EvaluationDataset(goldens=goldens)
    for kind in ("json", "jsonl", "csv"):
        data.save_as(kind, str(FOLDER), "goldens")
    cases = [
        LLMTestCase(
            input=fact["question"],
            actual_output=fact["answer"],
            expected_output=fact["reference"],
            context=fact["gold"],
            retrieval_context=[passage["text"] for passage in fact["passages"]],
            token_cost=fact["cost"],
            completion_time=fact["seconds"],
            metadata={"note": fact["note"]},
        )
        for fact in FACTS
    ]
    evaluate(cases, metrics=[ExactMatchMetric()])
    next((FOLDER / "runs").glob("test_run_*.json")).rename(FOLDER / "test-run.json")


if __name__ == "__main__":
    make()
