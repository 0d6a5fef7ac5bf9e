"""Check the metrics that need no model against labels of people.

In: a folder of open human-labelled sets (--data or RAG_EVAL_DATA), a file of your own labels
(--labels-file), or both. Out: how well the support scorer, the abstention detector and the answer
overlap agree with people, with 95 % intervals, as a table on stdout (or JSON), and on request the
generated block of docs/validation.md.

\b
Your own labels are one JSON object a line:
  {"claim": "Plan B costs 20 EUR.", "contexts": ["Plan B: 20 EUR."],
   "supported": 1, "group": "a.md"}

supported is 1 when the contexts bear out all of the claim, else 0; group names the source.

\b
Examples:
  python bench/research/validate_metrics.py --data ~/labelled
  python bench/research/validate_metrics.py --labels-file my_labels.jsonl --json
  python bench/research/validate_metrics.py --data ~/labelled --naive --write
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

import options
import storage
from research import (
    blind_spots,
    documents,
    labelled_sets,
    languages,
    metrics,
    passage_refusals,
    support_fit,
)
from research.metrics import Resampling
from storage import StorageError
from validation import human
from validation.human import LabelledSet

if TYPE_CHECKING:
    from research.metrics import Encode

PAGE = storage.ROOT / "docs" / "validation.md"
BLOCK = "agreement"
NAIVE_ROWS = 400
Row = TypeVar("Row")


def _measured(
    sets: Iterable[LabelledSet[Row]],
    data: Path,
    figures: Callable[[Iterable[Row]], dict[str, Any]],
    absent: list[str],
) -> dict[str, Any]:
    """Figures of each set that is there, by key; the titles of the others go to ``absent``."""
    measured: dict[str, Any] = {}
    for labelled_set in sets:
        if labelled_set.present(data):
            measured[labelled_set.key] = {"title": labelled_set.title} | figures(
                labelled_set.load(data)
            )
        else:
            absent.append(labelled_set.title)
    return measured


def _mean(rows: Iterable[dict[str, Any]], name: str) -> float | None:
    values = [row[name] for row in rows if row.get(name) is not None]
    return sum(values) / len(values) if values else None


def _means(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    return {name: _mean(rows, name) for name in ("auroc", "balanced_accuracy")}


def build_report(
    data: Path | None,
    labels: Path | None,
    draws: Resampling,
    encode: Encode | None,
    naive_rows: int,
) -> dict[str, Any]:
    """All figures as plain data; ``absent`` lists the sets that the folder does not hold."""
    absent: list[str] = []
    report: dict[str, Any] = {name: {} for name in ("support", "abstention", "ratings", "pairs")}
    by_language: dict[str, Any] = {}
    spots: list[dict[str, str]] = []

    def support(rows: Iterable[Any]) -> dict[str, Any]:
        return metrics.measure_support(rows, draws, encode, naive_rows)

    if data is not None:
        report["support"] = _measured(human.SUPPORT, data, support, absent)
        report["abstention"] = _measured(
            labelled_sets.ABSTENTION, data, partial(metrics.measure_abstention, draws=draws), absent
        )
        report["ratings"] = _measured(
            labelled_sets.RATINGS, data, partial(metrics.measure_ratings, draws=draws), absent
        )
        report["pairs"] = _measured(
            labelled_sets.PAIRS, data, partial(metrics.measure_pairs, draws=draws), absent
        )
        if not any(report.values()):
            raise StorageError(f"{data}: holds none of the known sets; name the folder above them.")
        for key, figures in support_fit.left_out_figures(data).items():
            report["support"][key]["left_out"] = figures
        report["answers"] = support_fit.ragtruth_answers(data, draws)
        by_language = languages.measure_all(data)
        spots = [dict(row) for row in blind_spots.rows()]
        report["passage_refusals"] = passage_refusals.measure(data)
    if labels is not None:
        title = {"title": labels.name}
        report["support"]["own"] = title | support(human.read_own(labels))
    rows = list(report["support"].values())
    naive = [row["naive"] for row in rows if "naive" in row]
    report["mean"] = {
        **_means(rows),
        "left_out": _means([row["left_out"] for row in rows if "left_out" in row]),
        "words": _means([row["words"] for row in rows]),
        "naive_auroc": _mean(naive, "auroc"),
        "naive_balanced_accuracy": _mean(naive, "balanced_accuracy"),
    }
    report |= {"languages": by_language, "blind_spots": spots}
    return report | {"absent": absent, "seed": draws.seed, "resamples": draws.resamples}


def _encoder(quiet: bool) -> Encode:
    """The embedder's encode, with a remedy in one sentence when there is no model."""
    from clients.embedder import Embedder, EmbeddingUnavailable

    try:
        embedder = Embedder(None, storage.CACHE_DIR)
        embedder.encode(["ready?"])
    except EmbeddingUnavailable as error:
        raise StorageError(f"--naive needs an embedding model: {error}") from error
    click.echo("Embedding claims and chunks; this takes minutes.", err=True) if not quiet else None
    return embedder.encode


@options.command(help=__doc__)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=None,
    help="Folder of the human-labelled sets.  [env: RAG_EVAL_DATA]",
)
@click.option(
    "--labels-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="Your own labelled claims, JSONL.",
)
@click.option("--naive", is_flag=True, help="Measure the rule 'chunk cosine >= 0.4' too (slow).")
@click.option(
    "--naive-rows",
    type=click.IntRange(min=0),
    default=NAIVE_ROWS,
    show_default=True,
    help="Claims a set that --naive embeds; 0 for all.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=1),
    default=Resampling().resamples,
    show_default=True,
    help="Draws behind an interval.",
)
@click.option(
    "--write", is_flag=True, help="Put the tables into docs/validation.md's generated block."
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Or into this file."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of every random draw.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")
def main(
    data: Path | None,
    labels_file: Path | None,
    naive: bool,
    naive_rows: int,
    resamples: int,
    write: bool,
    output: Path | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    if data is None and labels_file is None:
        raise click.UsageError(
            "Name what to check: --data DIR (or RAG_EVAL_DATA), or --labels-file FILE."
        )
    encode = _encoder(quiet) if naive else None
    report = build_report(data, labels_file, Resampling(resamples, seed), encode, naive_rows)
    if report["absent"] and not quiet:
        click.echo(f"Not in {data}: {', '.join(report['absent'])}.", err=True)
    block = metrics.markdown(report)
    if write:
        documents.write_block(PAGE, BLOCK, block, must_exist=True)
    if output is not None:
        documents.write_block(output, BLOCK, block, must_exist=False)
    click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() if as_json else block)


if __name__ == "__main__":
    main()
