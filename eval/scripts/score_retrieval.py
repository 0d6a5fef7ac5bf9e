"""Score retrieval of a run: recall, precision, F1, NDCG, MAP and MRR against the gold supports.

In: a run folder (results.jsonl) and the eval set. Out: a table on the terminal,
scores/retrieval.jsonl (a line a case, with the rank where each gold support was found) and the
section ``retrieval`` of the run's metrics.json.

\b
Examples:
  python eval/scripts/score_retrieval.py
  python eval/scripts/score_retrieval.py --run night-12 --by category --worst 10
  python eval/scripts/score_retrieval.py --match doc --k 5,20 --json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage
from ragmetrics import catalogue

if TYPE_CHECKING:
    from rich.console import Console

    from worst import Worst

DIMENSIONS = ("category", "difficulty", "query_type", "tag", "vault", "match")
SHOWN_BY_SLICE = ("recall_any", "recall", "recall_all", "precision", "ndcg", "map")


@options.command(help=__doc__)
@options.run_option
@options.eval_set_option
@options.labels_option
@options.results_dir_option
@click.option(
    "--k",
    "ks",
    type=options.CutOffs(),
    default=catalogue.KS,
    show_default="1,3,5,10",
    help="Cut-offs, separated by commas.",
)
@click.option(
    "--match",
    type=click.Choice(["auto", "chunk", "anchor", "doc", "text"]),
    default="auto",
    show_default=True,
    help="What counts as a match; auto takes the first that a case has gold for.",
)
@click.option(
    "--gain",
    type=click.Choice(["linear", "exp"]),
    default="linear",
    show_default=True,
    help="NDCG's gain: the grade, or 2^grade - 1.",
)
@click.option(
    "--min-similarity",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Levenshtein similarity from which texts match.",
)
@click.option("--by", type=click.Choice(DIMENSIONS), multiple=True, help="Show means by slice.")
@click.option("--worst", type=click.IntRange(min=0), default=0, help="Show the N worst cases.")
@click.option("--worst-by", default=None, help="Metric that --worst sorts by.  [default: ndcg]")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes to use.")
@options.seed_option
@options.json_option
@options.verbosity_options
def main(
    run: str,
    eval_set: Path,
    labels_dir: Path,
    results_dir: Path,
    ks: tuple[int, ...],
    match: Any,
    gain: Any,
    min_similarity: float,
    by: tuple[str, ...],
    worst: int,
    worst_by: str | None,
    jobs: int | None,
    seed: int,
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    from scorers.retrieval import RetrievalScorer
    from scoring import score_run

    folder = storage.find_run(results_dir, run)
    scorer = RetrievalScorer(ks, match, gain, min_similarity)
    key = worst_metric(scorer.metrics, worst_by, ks)
    section = score_run(folder, eval_set, scorer, labels_dir=labels_dir, seed=seed, jobs=jobs)
    if as_json:
        click.echo(storage.json_bytes(storage.rounded(section)), nl=False)
    else:
        show(folder, section, by, main_k(ks))
    if worst and not as_json:
        from worst import worst_cases

        bad = worst_cases(folder, scorer.section, key, worst, eval_set, labels_dir)
        show_worst(options.stdout_console(), bad, key, max(ks))
    if not quiet:
        warn(folder, eval_set, section)


def main_k(ks: tuple[int, ...]) -> int:
    """The cut-off that summaries show: 5, the usual size of a context, or the nearest one."""
    return min(ks, key=lambda k: (abs(k - 5), k))


def worst_metric(
    metrics: tuple[catalogue.Metric, ...], name: str | None, ks: tuple[int, ...]
) -> catalogue.Metric:
    """The metric that --worst sorts by. Raises click.BadParameter for an unknown name."""
    name = name or f"ndcg@{main_k(ks)}"
    for metric in metrics:
        if metric.name == name:
            return metric
    known = ", ".join(metric.name for metric in metrics)
    raise click.BadParameter(f"{name!r} is not computed here; choose one of: {known}.")


def show(folder: Path, section: dict[str, Any], by: tuple[str, ...], k: int) -> None:
    """The table of all metrics, then one for each dimension asked for."""
    import tables
    from targets import read_targets

    console = options.stdout_console()
    console.print(f"Retrieval of run {folder.name}, matched by {_modes(section)}")
    tables.print_section(console, section, read_targets().get("retrieval", {}))
    names = [f"{name}@{k}" for name in SHOWN_BY_SLICE] + ["mrr"]
    for dimension in by:
        console.print(f"At {k}, by {dimension}:")
        tables.print_by(console, section, dimension, names, f"@{k}")


def _modes(section: dict[str, Any]) -> str:
    modes = section["by"].get("match", {})
    return ", ".join(f"{mode} ({part['n']})" for mode, part in modes.items()) or "nothing"


def show_worst(console: Console, bad: list[Worst], key: catalogue.Metric, k: int) -> None:
    """For each bad case: the question, what was wanted and where it came, what was retrieved."""
    from scorers.retrieval import gold_names, in_rank_order
    from tables import plain

    console.print(f"The {len(bad)} worst cases by {key.name}:")
    for item in bad:
        found = item.row["evidence"]["found"]
        hits = set(item.row["evidence"]["hits"])
        title = f"{plain(item.case.id, 60)}  {key.name} {item.score:.3f}"
        console.print(f"\n{title}  {plain(item.case.question)}", soft_wrap=True)
        names = gold_names(item.case, item.row["evidence"]["match"])
        for name, rank in zip(names, found, strict=True):
            at = "missed" if rank is None else f"rank {rank}"
            console.print(f"  wanted {at:>9}  {plain(name)}", soft_wrap=True)
        for rank, chunk in enumerate(in_rank_order(item.result)[:k], 1):
            place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
            mark = "✓" if rank in hits else " "
            name = plain(place or chunk.chunk_id)
            console.print(f"  got    {mark} {rank:>5}.  {name}", soft_wrap=True)


def warn(folder: Path, eval_set: Path, section: dict[str, Any]) -> None:
    """Say on stderr what a reader of the numbers should know."""
    asked = storage.read_config(folder).dataset.get("sha256") if _has_config(folder) else None
    if asked and asked != storage.sha256_file(eval_set):
        click.echo("Note: the eval set has changed since this run was made.", err=True)
    failed = max(section["failed"].values(), default=0)
    if failed:
        click.echo(f"Note: {failed} cases failed in this run and count nowhere.", err=True)


def _has_config(folder: Path) -> bool:
    return (folder / "config.json").exists()


if __name__ == "__main__":
    main()
