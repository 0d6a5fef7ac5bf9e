"""Train the claim support model that ships with the metrics (for developers of this toolkit).

In: a folder with the open sets (`--data` or RAG_EVAL_DATA; `validation/human.py` lists them, and
`validation/languages.py` the parallel text). Out: one JSON file with the coefficients for English
and a threshold for each other language; no word of the sets is in it. Measure it with
validate_metrics.py.

\b
Examples:
  python eval/scripts/train_support.py --data ~/open-data
"""

from __future__ import annotations

from pathlib import Path

import click

import options
import storage
from ragmetrics.claims import SUPPORT_MODEL


@options.command(help=__doc__)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="RAG_EVAL_DATA",
    required=True,
    help="Folder with the open sets.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=SUPPORT_MODEL,
    help="Where the model is written (default: the one that ships).",
)
def main(data: Path, output: Path) -> None:
    """Fit the model on all sets; choose its threshold with each family left out."""
    from validation import languages, support_fit

    sets = support_fit.read_sets(data)
    if len({item.family for item in sets}) < 2:
        raise click.UsageError(f"{data} holds fewer than two families of labelled claims.")
    ranked = support_fit.left_out(sets)
    threshold = support_fit.best_threshold(sets, ranked)
    rows = support_fit.figures(sets, ranked, threshold)
    coefficients, intercept = support_fit.fit(sets)
    storage.replace_json(
        output,
        {
            "schema": 1,
            "logistic": {
                "coefficients": coefficients,
                "intercept": intercept,
                "threshold": threshold,
            },
            "thresholds": languages.thresholds(data),
        },
    )
    for key, row in rows.items():
        click.echo(f"{key}: {row['auroc']:.3f} {row['balanced_accuracy']:.3f}", err=True)
    click.echo(
        f"left out: AUROC {support_fit.mean(rows, 'auroc'):.3f}, balanced accuracy "
        f"{support_fit.mean(rows, 'balanced_accuracy'):.3f} at {threshold} -> {output}",
        err=True,
    )


if __name__ == "__main__":
    main()
