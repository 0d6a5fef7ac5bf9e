"""Show the metrics from commit to commit, and name the commit where one fell.

In: the metrics.json files in git's history (nothing is checked out), in the order of the commits,
and the uncommitted runs of eval/results by their start. PLACES are metrics.json files, run folders,
or folders of runs. Out: a table with sparklines, plots with a control band, the changes between
points, and an alert for each primary metric that got worse.

\b
A primary metric (targets.toml [decide] primary) alerts by
  shift  lower than before for some runs (CUSUM, from the 8th run on)
  fall   one run 10 % under the median and outside chance (from the 6th on)
  pair   cases worse than in the run before (first 7 runs, or no spread)
  drop   more than P % under the median before (any metric; with --drop P)
  gone   no longer measured

\b
Examples:
  python eval/scripts/track_metrics.py
  python eval/scripts/track_metrics.py --metrics 'retrieval.*,pass' --plot
  python eval/scripts/track_metrics.py --since v1.2 --drop 10 --fail-on any
  python eval/scripts/track_metrics.py eval/results/nightly/metrics.json --csv history.csv

An alert names the run where it began. It ends with a rise, which is a note, or when you begin the
history after it with --since. A metric begins a new line when its definition or the eval set
changes. A stopped run is no point.

Exit codes: 0 done, 1 a --fail-on rule was triggered, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from storage import StorageError
from terminal.tables import plain

if TYPE_CHECKING:
    from decisions.alerts import AlertRule, HistoryChange, MetricCourse
    from decisions.history import MetricHistory


@options.command(help=__doc__)
@click.argument("paths", nargs=-1, type=options.PATH, metavar="[PLACES]...")
@options.results_dir_option
@click.option(
    "--metrics",
    type=options.Names(),
    default=(),
    metavar="GLOB,…",
    help="Only these, such as 'ndcg@5' or 'safety.*'.  [default: primary, and with a target]",
)
@click.option(
    "--source",
    type=click.Choice(["both", "git", "runs"]),
    default="both",
    help="Commits and runs that are not committed, or one of the two.",
)
@click.option("--since", metavar="COMMIT|RUN", help="Begin with this point.")
@click.option("--last", type=click.IntRange(1), help="Only the newest N points.")
@click.option(
    "--drop",
    type=options.FiniteRange(0, min_open=True),
    metavar="P",
    help="Also alert on a value more than P % under the median of earlier runs.",
)
@options.run_set_option
@click.option("--plot", "plots", is_flag=True, help="Draw a plot of each metric.")
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write one row for each metric and point to this file; '-' is stdout.",
)
@click.option(
    "--fail-on",
    type=options.Names(),
    default=(),
    metavar="KIND,…",
    help="Exit 1 on these alerts: shift, fall, pair, drop, gone, or any.",
)
@options.json_option
@options.verbosity_options
def main(paths: tuple[Path, ...], results_dir: Path, eval_set: Path | None, **values: Any) -> int:
    from decisions.alerts import (
        AlertRule,
        PointPairs,
        changes,
        chosen_keys,
        clusters_of_points,
        make_lines,
    )
    from decisions.history import read_history
    from decisions.primary import lead_of, primary_names
    from records.targets import declared_matters

    if values["as_json"] and _is_dash(values["csv_file"]):
        raise StorageError("--csv - and --json both write to stdout; give --csv a file.")
    kinds = _kinds(values["fail_on"])
    history = read_history(paths or (results_dir,), values["source"])
    if values["since"] is not None:
        history.points = history.points[history.place_of(values["since"]) :]
    if values["last"] is not None:
        history.points = history.points[-values["last"] :]
    primary = primary_names()
    keys = chosen_keys(history.points, values["metrics"], _headline(primary))
    if not keys:
        asked = ",".join(values["metrics"]) or "*"
        raise StorageError(f"--metrics {asked}: no metric of the history matches.")
    drop = values["drop"]
    rule = AlertRule(primary, None if drop is None else drop / 100)
    clusters = clusters_of_points(history, eval_set)
    pairs = PointPairs(history.points, primary, clusters, lead_of(primary), declared_matters())
    lines = make_lines(history.points, keys, rule, pairs)
    newest = len(history.points) - 1
    says = pairs.says(newest - 1, newest) if newest else ()
    _put_out(history, lines, changes(history.points, lines), rule, says, values)
    struck = any(alert.kind in kinds for line in lines for alert in line.alerts)
    return options.Exit.GATE_FAILED if struck else options.Exit.DONE


def _kinds(asked: Collection[str]) -> set[str]:
    """The kinds of alerts that end with exit code 1."""
    from decisions.alerts import ALERTS

    if unknown := sorted({*asked} - {*ALERTS, "any"}):
        raise click.UsageError(
            f"--fail-on {unknown[0]}: no such alert; choose from {', '.join(ALERTS)}, or any."
        )
    return {*ALERTS} if "any" in asked else {*asked}


def _headline(primary: Sequence[str]) -> list[tuple[str, str]]:
    """The primary metrics, and those of eval/targets.toml."""
    from records.targets import read_targets

    targets = [(section, name) for section, table in read_targets().items() for name in table]
    return [(section, name) for section, _, name in (n.partition(".") for n in primary)] + targets


def _put_out(
    history: MetricHistory,
    lines: list[MetricCourse],
    changed: list[HistoryChange],
    rule: AlertRule,
    says: Sequence[str],
    values: dict[str, Any],
) -> None:
    """CSV to its file, and either JSON, CSV or the tables on stdout, with what the newest point
    ``says`` beside the one before."""
    from decisions.history_print import as_csv, as_dict, history_page
    from terminal.page import Prose, Quoted, print_page

    for note in history.notes if not values["quiet"] else ():
        options.say(f"Note: {plain(note, 400)}")
    file = values["csv_file"]
    if file is not None and not _is_dash(file):
        storage.replace_bytes(file, as_csv(history, lines).encode("utf-8"))
    if _is_dash(file):
        click.echo(as_csv(history, lines), nl=False)
    elif values["as_json"]:
        history_dict = storage.rounded(as_dict(history, lines, changed) | {"says": list(says)})
        click.echo(storage.json_bytes(history_dict), nl=False)
    else:
        page = history_page(
            history,
            lines,
            changed,
            plots=values["plots"],
            max_drop=rule.max_drop,
            primary=rule.primary,
        )
        newest = [Prose(("The newest against the one before: ", Quoted(line))) for line in says[:1]]
        page = replace(page, blocks=[*page.blocks, *newest])
        print_page(options.stdout_console(), page)


def _is_dash(file: Path | None) -> bool:
    return str(file) == "-"


if __name__ == "__main__":
    main()
