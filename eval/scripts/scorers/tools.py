"""Scores tools: whether the expected ones were called, and no others, with the right arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.tools import ROWS
from ragmetrics.tools import ToolLabels, score_tools
from records.cases import TestCase
from records.results import TestResult, tells_tools
from records.runs import RESULTS
from records.tool_calls import expected_tool
from scorers.common import row_of
from scorers.contract import Evidence, NothingToScore, ScoreRow, ScoringJob, SectionScorer

_NAMES = [metric.name for metric in ROWS]


@dataclass(frozen=True)
class ToolsScorer:
    """Scores the tool calls of one result against the labels of its case."""

    section = "tools"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Scores of one result; none of them is applicable where it reports no calls."""
        expected = case.expected_tools
        labels = ToolLabels(
            None if expected is None else [expected_tool(tool) for tool in expected],
            [expected_tool(tool) for tool in case.forbidden_tools],
            case.max_tool_calls,
            case.tool_order,
        )
        scores = score_tools(
            _NAMES, result.tools if isinstance(result.tools, list) else None, labels
        )
        return row_of(scores, self.metrics), dict(scores.evidence)


def _make(job: ScoringJob, options: ToolsScorer) -> ToolsScorer:
    results = job.folder / RESULTS
    if results.exists() and not tells_tools(results):
        raise NothingToScore(
            f"No result of {job.folder.name} reports its tool calls; map `tools` in the profile of "
            "a bot that does (eval/profiles/default.toml explains it) and ask again."
        )
    return options


SECTION = SectionScorer(options=ToolsScorer, scorer=_make)
