"""What every score_* script offers and prints; a script adds its scorer and its own options."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson

import options
from ragmetrics.catalogue.metric import Metric
from records.asked import asked_of, missing_remark
from records.cases import TestCase, iter_cases
from records.files import json_bytes, read_json, sha256_file
from records.labels import read_labels
from records.metrics import rounded, section_names
from records.results import RunConfig, TestResult, iter_results
from records.runs import CONFIG, METRICS, RESULTS, find_run, read_config, scores_file

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.contract import Scorer


F = TypeVar("F", bound=Callable[..., Any])

DIMENSIONS = ("category", "difficulty", "query_type", "tag", "vault", "match")


def score_options(function: F) -> F:
    """The options that all scorers share; ``score_and_show`` takes their values as they come."""
    for option in reversed(
        (
            options.run_option,
            options.eval_set_option,
            options.labels_option,
            options.results_dir_option,
            click.option(
                "--by", type=click.Choice(DIMENSIONS), multiple=True, help="Show means by slice."
            ),
            click.option(
                "--worst", type=click.IntRange(min=0), default=0, help="Show the N worst cases."
            ),
            click.option("--worst-by", default=None, help="Metric that --worst sorts by."),
            click.option(
                "--jobs", type=click.IntRange(min=1), default=None, help="Processes to use."
            ),
            options.seed_option,
            options.json_option,
            options.verbosity_options,
        )
    ):
        function = option(function)
    return function


def score_and_show(
    make_scorer: Callable[[Path], Scorer],
    *,
    summary: Sequence[str],
    worst_key: str,
    show_worst: Callable[[Console, WorstCase], None],
    run: str,
    eval_set: Path,
    labels_dir: Path,
    results_dir: Path,
    by: tuple[str, ...],
    worst: int,
    worst_by: str | None,
    jobs: int | None,
    seed: int,
    as_json: bool,
    verbose: bool,
    quiet: bool,
    suffix: str = "",
    show_more: Callable[[Console, dict[str, Any]], None] | None = None,
    needs_texts: bool = False,
) -> dict[str, Any]:
    """Score a run and print its section: as JSON, or as tables with slices and the worst cases.

    ``make_scorer`` gets the run folder; ``summary`` names the metrics that slices show (a shared
    ``suffix`` such as ``@5`` is left out of the heads); ``worst_key`` is what --worst sorts by
    unless the user says otherwise; ``show_worst`` prints what explains one bad case, ``show_more``
    what the section holds besides means. ``needs_texts``: cut chunk texts are worth a note.
    """
    from scorers.loop import score_run

    folder = find_run(results_dir, run)
    scorer = make_scorer(folder)
    key = find_metric(scorer.metrics, worst_by or worst_key)
    before = section_names(folder)
    section = score_run(folder, eval_set, scorer, labels_dir=labels_dir, seed=seed, jobs=jobs)
    if as_json:
        click.echo(json_bytes(rounded(section)), nl=False)
    else:
        console = options.stdout_console()
        show(console, folder, scorer.section, section, by, summary, suffix)
        if show_more is not None:
            show_more(console, section)
        if worst:
            bad = worst_cases(folder, scorer.section, key, worst, eval_set, labels_dir)
            print_worst(console, bad, key, show_worst, scored=section["n"][key.name])
    if not quiet:
        warn(folder, eval_set, section, needs_texts)
        warn_of_removed(folder, before)
    return section


def find_metric(metrics: Sequence[Metric], name: str) -> Metric:
    """The metric of that name. Raises click.BadParameter listing the names there are."""
    for metric in metrics:
        if metric.name == name:
            return metric
    known = ", ".join(metric.name for metric in metrics)
    raise click.BadParameter(f"{name!r} is not computed here; choose one of: {known}.")


def show(
    console: Console,
    folder: Path,
    name: str,
    section: dict[str, Any],
    by: Sequence[str],
    summary: Sequence[str],
    suffix: str = "",
) -> None:
    """The table of all metrics, then one for each dimension asked for."""
    from ragmetrics.stats.means import UNRELIABLE_BELOW
    from records.targets import read_targets
    from terminal import tables

    modes = section["by"].get("match", {})
    matched = ", ".join(f"{mode} ({part['n']})" for mode, part in modes.items())
    console.print(
        f"{name.capitalize()} of run {folder.name}" + (f", matched by {matched}" if matched else "")
    )
    tables.print_section(console, section, read_targets().get(name, {}), UNRELIABLE_BELOW)
    for dimension in by:
        console.print(f"By {dimension}" + (f", at {suffix[1:]}:" if suffix else ":"))
        tables.print_by(console, section, dimension, summary, suffix)


def print_worst(
    console: Console,
    bad: Sequence[WorstCase],
    key: Metric,
    show_one: Callable[[Console, WorstCase], None],
    *,
    scored: int,
) -> None:
    """Each bad case with its question and score, then what explains it."""
    from terminal.tables import plain

    if not bad:
        none = f"No case has a score of {key.name}; see the column n/a."
        perfect = f"No case is bad: all {scored} have the best score that {key.name} can have."
        console.print(perfect if scored else none)
        return
    which = "worst case" if len(bad) == 1 else f"{len(bad)} worst cases"
    console.print(f"The {which} by {key.name}:")
    for item in bad:
        title = f"{plain(item.case.id, 60)}  {key.name} {item.score:.3f}"
        console.print(f"\n{title}  {plain(item.case.question)}", soft_wrap=True)
        show_one(console, item)


def warn(folder: Path, eval_set: Path, section: dict[str, Any], needs_texts: bool = False) -> None:
    """Say on stderr what a reader of the numbers should know."""
    known = (folder / CONFIG).exists()
    config = read_config(folder) if known else RunConfig(folder.name)
    warn_of_missing(folder, config)
    asked_with = config.dataset.get("sha256")
    if needs_texts and config.run.get("store_full_text") is False:
        click.echo(
            "Note: this run keeps only the beginning of each chunk, so what needs its text is not "
            "applicable; ask again with run_eval.py --store-full-text.",
            err=True,
        )
    if asked_with and asked_with != sha256_file(eval_set):
        click.echo("Note: the eval set has changed since this run was made.", err=True)
    failed = max(section["failed"].values(), default=0)
    if failed:
        click.echo(f"Note: {failed} cases failed in this run and count nowhere.", err=True)


def warn_of_removed(folder: Path, before: frozenset[str]) -> None:
    """Say on stderr which sections had been scored from other results and are gone."""
    gone = sorted(before - section_names(folder))
    if gone:
        click.echo(
            f"Note: results.jsonl has changed since {', '.join(gone)} were scored; they were "
            "removed from metrics.json: score them again.",
            err=True,
        )


def warn_of_missing(folder: Path, config: RunConfig) -> None:
    """Say on stderr how many asked cases a run that was just scored has no result of."""
    asked = asked_of(config)
    header = read_json(folder / METRICS)
    remark = missing_remark(header, asked.repeats if asked else 1)
    if remark:
        name = folder.resolve().name
        asks = config.api.get("source") == "http"
        remedy = f"run_eval.py --resume --run-id {name} asks them" if asks else "make the run again"
        counts = "counts" if header["missing"] == 1 else "count"
        click.echo(f"Note: {remark} and {counts} nowhere; {remedy}.", err=True)


@dataclass(frozen=True, slots=True)
class WorstCase:
    """One bad case: its score line, what was asked, and what the bot returned."""

    score: float
    row: dict[str, Any]
    case: TestCase
    result: TestResult


def worst_cases(
    folder: Path, section: str, metric: Metric, count: int, eval_set: Path, labels_dir: Path | None
) -> list[WorstCase]:
    """The ``count`` cases with the worst score of one metric, worst first, in set order on ties.

    Reads scores/<section>.jsonl; unscored cases and those with the best score that the metric can
    have are left out. Memory: ``count`` cases.
    """
    best = metric.high if metric.higher_is_better else metric.low
    sign = 1.0 if metric.higher_is_better else -1.0
    rows: list[tuple[float, int, dict[str, Any]]] = []
    with open(scores_file(folder, section), "rb") as file:
        for place, line in enumerate(file):
            row = orjson.loads(line)
            score = row["scores"].get(metric.name)
            if score is not None and score != best:
                entry = (-sign * score, -place, row)
                if len(rows) < count:
                    heapq.heappush(rows, entry)
                else:
                    heapq.heappushpop(rows, entry)
    kept = sorted(rows, reverse=True)
    wanted = {(row["case_id"], row["repeat"]) for _, _, row in kept}
    results = {
        key: result
        for result in iter_results(folder / RESULTS)
        if (key := (result.test_case_id, result.repeat)) in wanted
    }
    labels, _ = read_labels(labels_dir, lambda problem: None)
    ids = {case_id for case_id, _ in wanted}
    cases = {
        case.id: case
        for case in iter_cases(eval_set, lambda problem: None, labels)
        if case.id in ids
    }
    return [
        WorstCase(
            -sign * badness, row, cases[row["case_id"]], results[row["case_id"], row["repeat"]]
        )
        for badness, _, row in kept
    ]
