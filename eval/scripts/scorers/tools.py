"""Tools: were the expected ones called, and no others, with the right arguments?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.tools import ROWS
from ragmetrics.tools import ToolLabels, score_tools
from records.cases import TestCase
from records.results import TestResult, tells_tools
from records.runs import RESULTS
from records.scores import ScoreLine
from records.tool_calls import expected_tool
from scorers.common import row_of
from scorers.contract import Evidence, NothingToScore, ScoreRow, ScoringJob, SectionScorer

if TYPE_CHECKING:
    from rich.console import Console

_NAMES = [metric.name for metric in ROWS]

_COUNTED = ("expected", "forbidden", "redundant", "failed", "retry")

_MOST_TOOLS = 50
"""Tools that the table by name has; the others are put together."""

_OTHERS = "(other tools)"


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

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """The section with ``by_tool``: how often each tool was called, and how that went."""
        tools: dict[str, Counter[str]] = {}
        for line in lines:
            for call in (line.evidence or {}).get("calls", ()):
                counts = tools.setdefault(call["name"], Counter(calls=0))
                counts["calls"] += 1
                counts.update(name for name in _COUNTED if name in call)
        ranked = sorted(tools, key=lambda name: (-tools[name]["calls"], name))
        table = {name: tools[name] for name in ranked[:_MOST_TOOLS]}
        if others := ranked[_MOST_TOOLS:]:
            table[_OTHERS] = sum((tools[name] for name in others), Counter())
        return section | {
            "by_tool": {
                name: {key: counts[key] for key in ("calls", *_COUNTED)}
                for name, counts in table.items()
            }
        }


def _show_tools(console: Console, section: Mapping[str, Any]) -> None:
    """How often each tool was called, and how that went."""
    from terminal.tables import plain, print_rows

    if not section["by_tool"]:
        return
    console.print("\nBy tool (every try counts):")
    heads = ("calls", *_COUNTED)
    rows = [
        (plain(name, 40), *(str(counts[head]) for head in heads))
        for name, counts in section["by_tool"].items()
    ]
    print_rows(console, ("tool", *heads[:-1], "retries"), rows)


def _make(job: ScoringJob, options: ToolsScorer) -> ToolsScorer:
    results = job.folder / RESULTS
    if results.exists() and not tells_tools(results):
        raise NothingToScore(
            f"No result of {job.folder.name} reports its tool calls; map `tools` in the profile of "
            "a bot that does (eval/profiles/default.toml explains it) and ask again."
        )
    return options


SECTION = SectionScorer(
    options=ToolsScorer,
    scorer=_make,
    show_more=_show_tools,
)
