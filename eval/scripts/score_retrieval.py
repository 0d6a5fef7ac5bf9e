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

from typing import TYPE_CHECKING, Any

import click

import options
from ragmetrics.catalogue import KS
from scorers.show import score_and_show, score_options

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.show import WorstCase

SHOWN = 10
"""Retrieved chunks that are listed for a bad case."""


@options.command(help=__doc__)
@score_options
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
def main(ks: tuple[int, ...], match: Any, gain: Any, min_similarity: float, **shared: Any) -> None:
    from scorers.retrieval import RetrievalScorer

    k = main_k(ks)
    score_and_show(
        lambda folder: RetrievalScorer(ks, match, gain, min_similarity),
        summary=[f"recall_any@{k}", f"recall@{k}", f"recall_all@{k}", f"ndcg@{k}", "mrr"],
        suffix=f"@{k}",
        worst_key=f"ndcg@{k}",
        show_worst=show_worst,
        **shared,
    )


def main_k(ks: tuple[int, ...]) -> int:
    """The cut-off that summaries show: 5, the usual size of a context, or the nearest one."""
    return min(ks, key=lambda k: (abs(k - 5), k))


def show_worst(console: Console, item: WorstCase) -> None:
    """What was wanted and at which rank it came, and what was retrieved."""
    from scorers.common import gold_names, in_rank_order
    from terminal.tables import plain

    evidence = item.row["evidence"]
    names = gold_names(item.case, evidence["match"])
    for name, rank in zip(names, evidence["found"], strict=True):
        at = "missed" if rank is None else f"rank {rank}"
        console.print(f"  wanted {at:>9}  {plain(name)}", soft_wrap=True)
    for rank, chunk in enumerate(in_rank_order(item.result)[:SHOWN], 1):
        place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
        mark = "✓" if rank in evidence["hits"] else " "
        name = plain(place or chunk.chunk_id)
        console.print(f"  got    {mark} {rank:>5}.  {name}", soft_wrap=True)


if __name__ == "__main__":
    main()
