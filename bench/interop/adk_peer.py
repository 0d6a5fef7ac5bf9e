"""Scores tool trajectories with the real ADK."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from facts import Call, trajectories
from google.adk.evaluation.eval_case import IntermediateData, Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.genai import types


def invocation(calls: list[Call]) -> Invocation:
    uses = [types.FunctionCall(name=name, args=arguments) for name, arguments in calls]
    return Invocation(
        user_content=types.Content(parts=[types.Part(text="?")], role="user"),
        intermediate_data=IntermediateData(tool_uses=uses),
    )


def make(folder: Path) -> None:
    """Nothing: ADK has no data of ours to read."""


def check(folder: Path) -> None:
    """The score of each trajectory by each way of matching."""
    drawn = trajectories()
    values: dict[str, list[Any]] = {}
    for kind in ToolTrajectoryCriterion.MatchType:
        criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=kind)
        metric = EvalMetric(metric_name="tool_trajectory", threshold=1.0, criterion=criterion)
        result = TrajectoryEvaluator(eval_metric=metric).evaluate_invocations(
            [invocation(actual) for _, actual in drawn],
            [invocation(expected) for expected, _ in drawn],
        )
        values[kind.name] = [each.score for each in result.per_invocation_results]
    print(json.dumps(values))


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](Path(sys.argv[2]))
