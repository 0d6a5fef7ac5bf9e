"""The report on a terminal, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.report import HEAD, Report, cells, change_text, rows_of, verdict_text
from tables import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLES = {True: "green", False: "red", None: None}
INDENT = "  "


def print_report(console: Console, report: Report, every: bool) -> None:
    """A table of the perspectives, what cannot be told, the diagnosis, the changes, the verdict."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(f"Run {report.run_id}, {report.suite} suite")
    if report.left_out:
        console.print(Text(report.left_out))
    if report.incomplete:
        console.print(Text(report.incomplete, style="yellow"))
    console.print(_table(report, every))
    for outcome in report.outcomes:
        scored = outcome.status == "scored"
        if outcome.reason:
            state = "" if scored else f"{outcome.status}: "
            said = f"{outcome.name}: {state}{plain(outcome.reason, 400)}"
            console.print(Text(said, style="dim" if scored else "yellow"))
    console.print("\nDiagnosis")
    for finding in report.findings:
        console.print(Padding(Text(f"• {finding.says}"), (0, 0, 0, 0)))
        for name, text in (("because", "; ".join(finding.because)), ("look at", finding.look_at)):
            if text:
                console.print(Padding(Text(f"{name} {text}"), (0, 0, 0, 4)))
    _print_changes(console, report, every)
    for gate in report.gates:
        said = f"gate missed: {gate.section} {gate.metric}: {gate.reason}"
        console.print(Text(plain(said, 2000), style="red"))
    console.print(f"\n{verdict_text(report)}")


def _table(report: Report, every: bool) -> Table:
    from rich import box
    from rich.table import Table

    parts = [
        (one.name, rows_of(report, one, every)) for one in report.outcomes if one.status == "scored"
    ]
    shown = [cells(measure) for _, rows in parts for measure in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(HEAD):
        text = place in (0, 6)
        table.add_column(
            name,
            justify="left" if text else "right",
            no_wrap=True,
            min_width=None if text else max(len(row[place]) for row in (HEAD, *shown)),
        )
    for section, rows in parts:
        table.add_row(section, style="bold")
        for one in rows:
            name, *rest = cells(one)
            table.add_row(plain(INDENT + name, 60), *rest, style=STYLES[one.passed])
    return table


def _print_changes(console: Console, report: Report, every: bool) -> None:
    """Regressions, and with ``every`` also what is worse by no more than chance explains."""
    from rich.text import Text

    if report.changes is None:
        return
    console.print(Text(f"\nAgainst {report.baseline}"))
    if report.unlike:
        console.print(Text(plain(f"not comparable: {report.unlike}", 2000), style="red"))
    for note in report.caveats:
        console.print(Text(note, style="yellow"))
    worse = [one for one in report.changes if one.verdict == "worse"]
    for change in report.changes:
        failing = change in report.regressions
        if failing or change.verdict == "not comparable" or (every and change in worse):
            said = f"{change.verdict}: {change.section} {change.metric} {change_text(change)}"
            console.print(Text(said, style="red" if failing else ""))
    better = sum(one.verdict == "better" for one in report.changes)
    console.print(
        f"{len(report.changes)} metrics compared: {len(report.regressions)} regressions, "
        f"{len(worse)} worse within chance{'' if every else ' (-v lists them)'}, {better} better."
    )
