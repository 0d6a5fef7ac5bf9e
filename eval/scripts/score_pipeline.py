"""Score the pipeline of a run end to end: outcomes, flags, citations, budgets, times, errors.

In: a run folder (results.jsonl), the eval set, and the labels of eval/labels/pipeline_labels.jsonl
(expected outcome, flags, least citations, budgets). Out: tables on the terminal,
scores/pipeline.jsonl (a line a case: which outcome and why, which check failed) and the section
``pipeline`` of the run's metrics.json, with p50, p95, p99 and max of each stage, errors by kind,
tokens and cost.

\b
Examples:
  python eval/scripts/score_pipeline.py
  python eval/scripts/score_pipeline.py --by category --worst 10
  python eval/scripts/score_pipeline.py --uncertain-below 0.3 --json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from scorers.show import score_and_show, score_options

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.contract import Scorer
    from scorers.show import WorstCase

SUMMARY = ["pass", "outcome_match", "citations_ok", "latency_ok"]


@options.command(help=__doc__)
@score_options
@click.option(
    "--uncertain-below",
    type=options.FiniteRange(0, 1),
    default=0.5,
    show_default=True,
    help="Confidence under which a response counts as uncertain.",
)
def main(uncertain_below: float, **shared: Any) -> None:
    def make_scorer(folder: Path) -> Scorer:
        from scorers.pipeline import PipelineScorer

        return PipelineScorer(uncertain_below)

    score_and_show(
        make_scorer,
        summary=SUMMARY,
        worst_key="pass",
        show_worst=show_worst,
        show_more=show_more,
        **shared,
    )


def show_more(console: Console, section: dict[str, Any]) -> None:
    """Outcomes against what was expected, times by stage, budgets, errors, tokens and cost."""
    from ragmetrics.pipeline import OUTCOMES
    from terminal.tables import plain, print_rows

    table = section["outcomes"]
    actual = [name for name in (*OUTCOMES, "none") if any(name in row for row in table.values())]
    if actual:
        console.print("\nOutcomes, expected in rows:")
        rows = [
            (plain(wanted, 30), *(str(row.get(name, 0)) for name in actual))
            for wanted, row in table.items()
        ]
        print_rows(console, ("expected", *actual), rows)
    marks = ("p50", "p95", "p99", "max")
    if section["latency_ms"]:
        console.print("\nTimes in ms:")
        rows = [
            (plain(stage, 30), str(times["n"]), *(f"{times[mark]:,.1f}" for mark in marks))
            for stage, times in section["latency_ms"].items()
        ]
        print_rows(console, ("stage", "n", *marks), rows)
    for line in totals_lines(section):
        console.print(line, soft_wrap=True)


def totals_lines(section: dict[str, Any]) -> list[str]:
    """Budgets of the run, errors, tokens and cost, a line each; nothing that is not there."""
    from terminal.tables import plain

    lines = []
    for row in section["run_budgets"]:
        kept = "✓" if row["kept"] else "✗"
        lines.append(
            f"{kept} {row['percentile']} of total: {row['ms']:,.1f} ms, budget "
            f"{row['budget_ms']:,.0f} ms ({row['n']} responses)"
        )
    named = (("Errors", section["errors"]), ("Tokens", section["usage"]))
    for title, counts in named:
        if counts:
            told = ", ".join(f"{plain(name, 40)} {count:,}" for name, count in counts.items())
            lines.append(f"{title}: {told}")
    if section["cost_usd"] is not None:
        lines.append(f"Cost: {section['cost_usd']:.4f} USD")
    return lines


def show_worst(console: Console, item: WorstCase) -> None:
    """The outcome and why, then each check that failed."""
    from terminal.tables import plain

    evidence = item.row["evidence"]
    wanted = f", expected {plain(evidence['expected'], 40)}" if "expected" in evidence else ""
    outcome = evidence["outcome"] or "no outcome"
    console.print(f"  {outcome} ({plain(evidence['why'])}){wanted}", soft_wrap=True)
    if evidence.get("missing_flags"):
        console.print(f"  missing flags: {plain(', '.join(evidence['missing_flags']))}")
    if evidence.get("forbidden_flags"):
        console.print(f"  forbidden flags: {plain(', '.join(evidence['forbidden_flags']))}")
    if "citations" in evidence:
        found = evidence["citations"]
        console.print(f"  citations: {found['found']}, at least {found['min']} wanted")
    for stage, over in evidence.get("over_budget", {}).items():
        console.print(f"  {plain(stage, 40)}: {over['ms']:,.1f} ms > {over['budget_ms']:,.0f} ms")


if __name__ == "__main__":
    main()
