"""Show the metrics from commit to commit, and name the commit where one fell.

In: the metrics.json files in git's history (nothing is checked out), in the order of the commits,
and the uncommitted runs of eval/results by their start. PLACES are metrics.json files, run folders,
or folders of runs. Out: a table with sparklines, the changes between
points, and an alert for each primary metric that got worse.

\b
A primary metric (targets.toml [decide] primary) alerts by
  shift  lower than before for some runs (CUSUM, from the 8th run on)
  drop   more than P % under the median before (any metric; with --drop P)
  gone   no longer measured

Beside them the newest point is compared, case by case, with the one before and with the run that
targets.toml names as [decide] pinned; this raises no alert.

\b
Examples:
  python eval/scripts/track_metrics.py
  python eval/scripts/track_metrics.py --metrics 'retrieval.*,pass'
  python eval/scripts/track_metrics.py --set since=v1.2 --drop 10 --fail-on any
  python eval/scripts/track_metrics.py eval/results/nightly/metrics.json --csv history.csv

An alert names the run where it began. It ends with a rise, which is a note, or when you begin the
history after it with --set since. A metric begins a new line when its definition or the eval set
changes. A stopped run is no point.

Exit codes: 0 done, 1 a --fail-on rule was triggered, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import options
from records import opt
from records.errors import StorageError
from terminal.tables import counted, plain

if TYPE_CHECKING:
    from decisions.alerts import AlertRule, HistoryBreak, MetricCourse
    from decisions.history import HistoryPoint, MetricHistory
    from decisions.history_print import NewestAgainst


@dataclass(frozen=True, kw_only=True)
class TrackOptions(opt.Output):
    """The options of track_metrics.py."""

    paths: tuple[Path, ...] = opt.argument(metavar="[PLACES]...")
    results_dir: Path = opt.results_dir()
    metrics: tuple[str, ...] = opt.value(
        "Only these, such as 'ndcg@5' or 'safety.*'.  [default: primary, and with a target]",
        default=(),
        metavar="GLOB,…",
    )
    source: Literal["both", "git", "runs"] = opt.setting(
        "both: commits, and runs that are not committed; or one of the two: git, runs",
        default="both",
        choices=("both", "git", "runs"),
    )
    since: str | None = opt.setting("begin with this commit or run")
    last: int | None = opt.setting("only the newest N points", low=1)
    drop: float | None = opt.value(
        "Also alert on a value more than P % under the median of earlier runs.",
        low=0,
        above=True,
        metavar="P",
    )
    eval_set: Path | None = opt.run_set()
    csv_file: Path | None = opt.value(
        "Write one row for each metric and point to this file; '-' is stdout.",
        names="--csv",
        path="file or -",
    )
    fail_on: tuple[str, ...] = opt.value(
        "Exit 1 on these alerts: shift, drop, gone, or any.", default=(), metavar="KIND,…"
    )


@options.script(TrackOptions, help=__doc__)
def main(asked: TrackOptions) -> int:
    from decisions.alerts import AlertRule, changes, chosen_keys, make_lines
    from decisions.history import of_present_set, read_history
    from decisions.primary import primary_names

    if asked.as_json and _is_dash(asked.csv_file):
        raise StorageError("--csv - and --json both write to stdout; give --csv a file.")
    kinds = _kinds(asked.fail_on)
    history = read_history(asked.paths or (asked.results_dir,), asked.source)
    pinned = _pinned(history)
    if asked.since is not None:
        history.points = history.points[history.place_of(asked.since) :]
    elif not asked.paths:
        every = len(history.points)
        history.points = of_present_set(history.points)
        if left := every - len(history.points):
            history.notes.append(
                f"{counted(left, 'point')} of another set {'is' if left == 1 else 'are'} left out; "
                "name the folder of runs to see all."
            )
    if asked.last is not None:
        history.points = history.points[-asked.last :]
    primary = primary_names()
    keys = chosen_keys(history.points, asked.metrics, _headline(primary))
    if not keys:
        globs = ",".join(asked.metrics) or "*"
        raise StorageError(f"--metrics {globs}: no metric of the history matches.")
    drop = asked.drop
    rule = AlertRule(primary, None if drop is None else drop / 100)
    lines = make_lines(history.points, keys, rule)
    against = _against(history, pinned, primary, asked.eval_set)
    _put_out(history, lines, changes(history.points, lines), rule, against, asked)
    struck = any(alert.kind in kinds for line in lines for alert in line.alerts)
    return options.Exit.GATE_FAILED if struck else options.Exit.DONE


def _pinned(history: MetricHistory) -> HistoryPoint | None:
    """The point that [decide] pinned names; None, with a note, if the history does not have it."""
    from records.targets import DECIDE, read_decide

    if not (name := read_decide().pinned):
        return None
    try:
        return history.points[history.place_of(name)]
    except StorageError as error:
        history.notes.append(f"[{DECIDE}] pinned: {error}")
        return None


def _against(
    history: MetricHistory,
    pinned: HistoryPoint | None,
    primary: Sequence[str],
    eval_set: Path | None,
) -> list[NewestAgainst]:
    """The newest point against the one before, and against the pinned one."""
    from decisions.alerts import clusters_of_points, compare_points
    from decisions.history_print import NewestAgainst
    from decisions.primary import lead_of
    from records.targets import read_decide

    *earlier, newest = history.points
    others = [("the point before", earlier[-1])] if earlier else []
    if pinned not in (None, newest):
        others.append(("the pinned baseline", pinned))
    clusters = clusters_of_points(history, eval_set) if others else {}
    lead, margin = lead_of(primary), read_decide().matters
    return [
        NewestAgainst(role, point, compare_points(point, newest, primary, clusters, lead, margin))
        for role, point in others
    ]


def _kinds(names: Collection[str]) -> set[str]:
    """The kinds of alerts that end with exit code 1."""
    from decisions.alerts import ALERTS

    if unknown := sorted({*names} - {*ALERTS, "any"}):
        raise click.UsageError(
            f"--fail-on {unknown[0]}: no such alert; choose from {', '.join(ALERTS)}, or any."
        )
    return {*ALERTS} if "any" in names else {*names}


def _headline(primary: Sequence[str]) -> list[tuple[str, str]]:
    """The primary metrics, and those of eval/targets.toml."""
    from records.targets import read_targets

    targets = [(section, name) for section, table in read_targets().items() for name in table]
    return [(section, name) for section, _, name in (n.partition(".") for n in primary)] + targets


def _put_out(
    history: MetricHistory,
    lines: list[MetricCourse],
    changed: list[HistoryBreak],
    rule: AlertRule,
    against: Sequence[NewestAgainst],
    asked: TrackOptions,
) -> None:
    """CSV to its file, and either JSON, CSV or the tables on stdout; ``against``: the comparisons
    of the newest point."""
    from decisions.history_print import (
        as_csv,
        as_dict,
        differences_data,
        differences_page,
        history_page,
    )
    from records.files import replace_bytes
    from terminal.print_page import print_page

    for note in history.notes if not asked.quiet else ():
        options.say(f"Note: {plain(note, 400)}")
    file = asked.csv_file
    if file is not None and not _is_dash(file):
        replace_bytes(file, as_csv(history, lines).encode("utf-8"))
    if _is_dash(file):
        click.echo(as_csv(history, lines), nl=False)
    elif asked.as_json:
        data = as_dict(history, lines, changed) | {"differences": differences_data(against)}
        options.print_json(data)
    else:
        page = history_page(
            history,
            lines,
            changed,
            max_drop=rule.max_drop,
            primary=rule.primary,
        )
        page = replace(page, blocks=[*page.blocks, *differences_page(against)])
        print_page(options.stdout_console(), page)


def _is_dash(file: Path | None) -> bool:
    return str(file) == "-"


if __name__ == "__main__":
    main()
