"""Show how the metrics went from commit to commit, and name the commit where one fell.

In: the metrics.json files that git's history holds (nothing is checked out), in the order of the
commits, and the runs of eval/results that are not committed, by the time they were started. PLACES
are metrics.json files, run folders, or folders of runs. Out: a table with sparklines, plots, what
changed in between, and an alert for each metric that is 10 % worse than its baseline, on the bad
side of its control band, or gone.

\b
Examples:
  python eval/scripts/track_metrics.py
  python eval/scripts/track_metrics.py --metrics 'retrieval.*,pass' --plot
  python eval/scripts/track_metrics.py --baseline v1.2 --max-drop-percent 5 --fail-on any
  python eval/scripts/track_metrics.py eval/results/nightly/metrics.json --csv history.csv

Only the newest point raises an alert: what fell and rose again is seen in the trend. A metric whose
definition changed begins a new line, and so does every metric with another eval set. The control
band is drawn once there are 8 earlier points.

Exit codes: 0 done, 1 a --fail-on rule was triggered, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from storage import StorageError
from terminal.tables import plain

if TYPE_CHECKING:
    from decisions.alerts import AlertRule, Band, HistoryChange, MetricLine
    from decisions.history import MetricHistory


@options.command(help=__doc__)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACES]...")
@options.results_dir_option
@click.option(
    "--metrics",
    type=options.Names(),
    default=(),
    metavar="GLOB,…",
    help="Only these, such as 'ndcg@5' or 'safety.*'.  [default: those with a target]",
)
@click.option(
    "--source",
    type=click.Choice(["both", "git", "runs"]),
    default="both",
    show_default=True,
    help="Commits and runs that are not committed, or one of the two.",
)
@click.option("--first-parent", is_flag=True, help="Follow the main line; a merge is one commit.")
@click.option("--since", metavar="COMMIT|RUN", help="Begin with this point.")
@click.option("--last", type=click.IntRange(1), help="Only the newest so many points.")
@click.option(
    "--baseline",
    default="best",
    show_default=True,
    metavar="best|previous|median|COMMIT|RUN",
    help="What each point is held against: of the points before it, or one point.",
)
@click.option(
    "--max-drop-percent",
    type=options.FiniteRange(0),
    default=10.0,
    show_default=True,
    metavar="P",
    help="Worse than the baseline by more than this is an alert.",
)
@click.option(
    "--band",
    type=click.Choice(["shewhart", "mad", "none"]),
    default="shewhart",
    show_default=True,
    help="Control band: mean and moving range, or median and MAD; both 3 sigma wide.",
)
@click.option("--plot", "plots", is_flag=True, help="Draw a plot of each metric.")
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write a row a metric and point to this file; '-' is stdout.",
)
@click.option(
    "--fail-on",
    type=options.Names(),
    default=(),
    metavar="KIND,…",
    help="Exit 1 on alerts that are a drop, out of the band, or gone; or on any.",
)
@options.json_option
@options.verbosity_options
def main(paths: tuple[Path, ...], results_dir: Path, **values: Any) -> int:
    from decisions.alerts import changes, chosen_keys, make_lines
    from decisions.history import read_history

    if values["as_json"] and _is_dash(values["csv_file"]):
        raise StorageError("--csv - and --json both want stdout; give --csv a file.")
    kinds = _kinds(values["fail_on"])
    history = read_history(
        paths or (results_dir,), values["source"], first_parent=values["first_parent"]
    )
    if values["since"] is not None:
        history.points = history.points[history.place_of(values["since"]) :]
    if values["last"] is not None:
        history.points = history.points[-values["last"] :]
    keys = chosen_keys(history.points, values["metrics"], _headline())
    if not keys:
        asked = ",".join(values["metrics"]) or "*"
        raise StorageError(f"--metrics {asked}: no metric of the history fits.")
    rule = _rule(history, values["baseline"], values["max_drop_percent"] / 100, values["band"])
    lines = make_lines(history.points, keys, rule)
    history.notes += _unanchored(lines, rule, values["baseline"])
    _put_out(history, lines, changes(history.points, lines), rule, values)
    struck = any(alert.kind in kinds for line in lines for alert in line.alerts)
    return options.Exit.GATE_FAILED if struck else options.Exit.DONE


def _kinds(asked: Collection[str]) -> set[str]:
    """The kinds of alerts that end with exit code 1."""
    from decisions.alerts import ALERTS

    if unknown := sorted({*asked} - {*ALERTS, "any"}):
        raise click.UsageError(
            f"--fail-on {unknown[0]}: no such alert; name some of {', '.join(ALERTS)}, or any."
        )
    return {*ALERTS} if "any" in asked else {*asked}


def _rule(history: MetricHistory, baseline: str, max_drop: float, band: Band) -> AlertRule:
    from decisions.alerts import KINDS, AlertRule

    return AlertRule(KINDS.get(baseline) or history.place_of(baseline), max_drop, band)


def _unanchored(lines: list[MetricLine], rule: AlertRule, baseline: str) -> list[str]:
    """A sentence on the metrics that a fixed baseline has no number of: nothing tells of a drop."""
    if not isinstance(rule.baseline, int):
        return []
    names = [line.name for line in lines if rule.baseline not in line.positions[line.segment() :]]
    if not names:
        return []
    return [
        f"--baseline {baseline}: {len(names)} of {len(lines)} metrics have no number there of "
        f"today's definition and eval set, so nothing tells whether they fell: {', '.join(names)}."
    ]


def _headline() -> list[tuple[str, str]]:
    """The metrics of eval/targets.toml."""
    from records.targets import read_targets

    return [(section, name) for section, table in read_targets().items() for name in table]


def _put_out(
    history: MetricHistory,
    lines: list[MetricLine],
    changed: list[HistoryChange],
    rule: AlertRule,
    values: dict[str, Any],
) -> None:
    """CSV to its file, and either JSON, CSV or the tables on stdout."""
    from decisions.history_print import as_csv, as_dict, print_history

    for note in history.notes if not values["quiet"] else ():
        click.echo(f"Note: {plain(note, 400)}", err=True)
    file = values["csv_file"]
    if file is not None and not _is_dash(file):
        storage.replace_bytes(file, as_csv(history, lines).encode("utf-8"))
    if _is_dash(file):
        click.echo(as_csv(history, lines), nl=False)
    elif values["as_json"]:
        history_dict = storage.rounded(as_dict(history, lines, changed))
        click.echo(storage.json_bytes(history_dict), nl=False)
    else:
        console = options.stdout_console()
        print_history(
            console, history, lines, changed, plots=values["plots"], max_drop=rule.max_drop
        )


def _is_dash(file: Path | None) -> bool:
    return str(file) == "-"


if __name__ == "__main__":
    main()
