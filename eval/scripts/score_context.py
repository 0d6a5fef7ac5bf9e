"""Score the retrieved context of a run: redundancy, gold facts, diversity. No model, no network.

In: a run folder (results.jsonl with full texts: run_eval.py --store-full-text), the eval set, and
the gold facts of eval/labels/context_labels.jsonl. Out: a table on the terminal,
scores/context.jsonl (a line a case: which chunks are most alike, which fact stands in which chunks)
and the section ``context`` of the run's metrics.json.

\b
Examples:
  python eval/scripts/score_context.py
  python eval/scripts/score_context.py --top 5 --by query_type
  python eval/scripts/score_context.py --worst 5 --worst-by fact_coverage
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from scorers.show import score_and_show, score_options

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.contract import Scorer
    from scorers.show import WorstCase

SUMMARY = ["redundancy_tfidf", "fact_coverage", "fact_dispersion", "unique_token_ratio"]


@options.command(help=__doc__)
@score_options
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=None,
    show_default="all",
    help="Look at the first N retrieved chunks only (what the answer was given).",
)
def main(top: int | None, **shared: Any) -> None:
    def make_scorer(folder: Path) -> Scorer:
        from records.targets import read_bands
        from scorers.context import ContextScorer, read_frequencies

        return ContextScorer(read_frequencies(folder, top), top, read_bands("diversity"))

    score_and_show(
        make_scorer,
        summary=SUMMARY,
        worst_key="redundancy_tfidf",
        show_worst=show_worst,
        needs_texts=True,
        **shared,
    )


def show_worst(console: Console, item: WorstCase) -> None:
    """The two chunks that are most alike, and where each gold fact stands."""
    from scorers.common import in_rank_order
    from terminal.tables import plain

    chunks = {chunk.chunk_id: chunk for chunk in in_rank_order(item.result)}
    ranks = {name: rank for rank, name in enumerate(chunks, 1)}
    alike = item.row["evidence"].get("most_alike")
    if alike:
        console.print(f"  most alike, 3-gram overlap {alike['overlap']:.2f}:")
        for name in alike["chunks"]:
            chunk = chunks[name]
            place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
            console.print(f"    {ranks[name]:>3}. {plain(place or name)}", soft_wrap=True)
            console.print(f"         {plain(chunk.text or '', 100)}", soft_wrap=True)
    for fact in item.row["evidence"].get("facts", []):
        found = ", ".join(str(ranks[name]) for name in fact["chunks"])
        where = f"in chunk {found}" if found else "in no chunk"
        console.print(f"  fact {where}: {plain(fact['fact'])}", soft_wrap=True)


if __name__ == "__main__":
    main()
