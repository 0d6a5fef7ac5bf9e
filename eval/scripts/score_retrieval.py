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

from typing import Any

import click

import options
from ragmetrics.catalogue import KS


@options.command(help=__doc__)
@options.score_options
@options.scheduler_option
@click.option(
    "--k",
    "ks",
    type=options.CutOffs(),
    default=KS,
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
    type=options.FiniteRange(0, 1),
    default=0.8,
    show_default=True,
    help="Levenshtein similarity from which texts match.",
)
def main(**values: Any) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("retrieval", values, options.Streams(values), print_worst)


if __name__ == "__main__":
    main()
