"""What every score_* script offers and prints; a script adds its scorer and its own options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import options
import storage

if TYPE_CHECKING:
    from rich.console import Console

    from ragmetrics.metric import Metric
    from scoring import Scorer
    from worst import Worst

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
    show_worst: Callable[[Console, Worst], None],
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
    from scoring import score_run

    folder = storage.find_run(results_dir, run)
    scorer = make_scorer(folder)
    key = find_metric(scorer.metrics, worst_by or worst_key)
    before = storage.section_names(folder)
    section = score_run(folder, eval_set, scorer, labels_dir=labels_dir, seed=seed, jobs=jobs)
    if as_json:
        click.echo(storage.json_bytes(storage.rounded(section)), nl=False)
    else:
        console = options.stdout_console()
        show(console, folder, scorer.section, section, by, summary, suffix)
        if show_more is not None:
            show_more(console, section)
        if worst:
            from worst import worst_cases

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
    import tables
    from targets import read_targets

    modes = section["by"].get("match", {})
    matched = ", ".join(f"{mode} ({part['n']})" for mode, part in modes.items())
    console.print(
        f"{name.capitalize()} of run {folder.name}" + (f", matched by {matched}" if matched else "")
    )
    tables.print_section(console, section, read_targets().get(name, {}))
    for dimension in by:
        console.print(f"By {dimension}" + (f", at {suffix[1:]}:" if suffix else ":"))
        tables.print_by(console, section, dimension, summary, suffix)


def print_worst(
    console: Console,
    bad: Sequence[Worst],
    key: Metric,
    show_one: Callable[[Console, Worst], None],
    *,
    scored: int,
) -> None:
    """Each bad case with its question and score, then what explains it."""
    from tables import plain

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
    known = (folder / "config.json").exists()
    config = storage.read_config(folder) if known else storage.RunConfig(folder.name)
    warn_of_missing(folder, config)
    asked_with = config.dataset.get("sha256")
    if needs_texts and config.run.get("store_full_text") is False:
        click.echo(
            "Note: this run keeps only the beginning of each chunk, so what needs its text is not "
            "applicable; ask again with run_eval.py --store-full-text.",
            err=True,
        )
    if asked_with and asked_with != storage.sha256_file(eval_set):
        click.echo("Note: the eval set has changed since this run was made.", err=True)
    failed = max(section["failed"].values(), default=0)
    if failed:
        click.echo(f"Note: {failed} cases failed in this run and count nowhere.", err=True)


def warn_of_removed(folder: Path, before: frozenset[str]) -> None:
    """Say on stderr which sections had been scored from other results and are gone."""
    gone = sorted(before - storage.section_names(folder))
    if gone:
        click.echo(
            f"Note: results.jsonl has changed since {', '.join(gone)} were scored; they were "
            "removed from metrics.json: score them again.",
            err=True,
        )


def warn_of_missing(folder: Path, config: storage.RunConfig) -> None:
    """Say on stderr how many asked cases a run that was just scored has no result of."""
    asked = storage.asked_of(config)
    header = storage.read_json(folder / "metrics.json")
    remark = storage.missing_remark(header, asked.repeats if asked else 1)
    if remark:
        name = folder.resolve().name
        asks = config.api.get("source") == "http"
        remedy = f"run_eval.py --resume --run-id {name} asks them" if asks else "make the run again"
        counts = "counts" if header["missing"] == 1 else "count"
        click.echo(f"Note: {remark} and {counts} nowhere; {remedy}.", err=True)
