"""Train the claim support model that ships with the metrics (for developers of this toolkit).

In: a folder with the open sets (`--data` or RAG_EVAL_DATA; `validation/human.py` lists them, and
`validation/languages.py` the parallel text). Out: one Python file with the coefficients for English
and a threshold for each other language; no word of the sets is in it. Measure it with
validate_metrics.py.

\b
Examples:
  python bench/research/train_support.py --data ~/open-data
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

import options
import storage

SUPPORT_MODEL = storage.ROOT / "eval" / "scripts" / "ragmetrics" / "support_model.py"


def _module(
    coefficients: Mapping[str, float],
    intercept: float,
    threshold: float,
    by_language: Mapping[str, float],
    strengths: Mapping[str, Sequence[float]],
) -> str:
    """The Python file that holds the numbers: metrics read no files."""
    lines = [
        '"""Frozen numbers of claim support. Written by train_support.py; do not edit."""',
        "",
    ]
    for name, numbers in (("COEFFICIENTS", coefficients), ("THRESHOLDS", by_language)):
        lines += [f"{name}: dict[str, float] = {{"]
        lines += [f'    "{key}": {value},' for key, value in sorted(numbers.items())]
        lines += ["}", ""]
    lines += ["STRENGTHS: dict[str, tuple[float, ...]] = {"]
    lines += [f'    "{title}": {tuple(shares)},' for title, shares in strengths.items()]
    lines += [
        "}",
        '"""By training set: claims with a strength below each tenth / claims."""',
        "",
    ]
    return "\n".join([*lines, f"INTERCEPT = {intercept}", "", f"THRESHOLD = {threshold}", ""])


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
    from research import languages, support_fit

    sets = support_fit.read_sets(data)
    if len({item.family for item in sets}) < 2:
        raise click.UsageError(f"{data} holds fewer than two families of labelled claims.")
    ranked = support_fit.left_out(sets)
    threshold = support_fit.best_threshold(sets, ranked)
    rows = support_fit.figures(sets, ranked, threshold)
    coefficients, intercept = support_fit.fit(sets)
    by_language = languages.thresholds(data)
    strengths = support_fit.strengths(sets, coefficients, intercept)
    module = _module(coefficients, intercept, threshold, by_language, strengths)
    storage.replace_bytes(output, module.encode("utf-8"))
    for key, row in rows.items():
        click.echo(f"{key}: {row['auroc']:.3f} {row['balanced_accuracy']:.3f}", err=True)
    click.echo(
        f"left out: AUROC {support_fit.mean(rows, 'auroc'):.3f}, balanced accuracy "
        f"{support_fit.mean(rows, 'balanced_accuracy'):.3f} at {threshold} -> {output}",
        err=True,
    )


if __name__ == "__main__":
    main()
