"""Score the answers of a run against their contexts: claims, numbers, citations. No model needed.

In: a run folder (results.jsonl with full texts: run_eval.py --store-full-text), the eval set, and
the expected claims of eval/labels/groundedness_labels.jsonl. Out: a table on the terminal,
scores/groundedness.jsonl (a line a case: every claim with its best window, score and missing words,
numbers that stand nowhere, where each citation points) and the section ``groundedness`` of the
run's metrics.json.

\b
Examples:
  python eval/scripts/score_groundedness.py
  python eval/scripts/score_groundedness.py --by category --worst 5
  python eval/scripts/score_groundedness.py --worst 5 --worst-by citation_validity_form
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
    from storage import RetrievedChunk

SUMMARY = ["claim_support_rate", "mean_claim_support", "citation_joint", "answer_overlap"]
SHOWN = 6
"""Claims that are listed for a bad case; those that failed come first."""


@options.command(help=__doc__)
@score_options
@click.option(
    "--first-index",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Number of the first chunk in the bot's citation marks.",
)
@click.option(
    "--min-score",
    type=options.FiniteRange(),
    default=0.0,
    show_default=True,
    help="What the best retrieval score must exceed (retrieval_scores_ok).",
)
def main(first_index: int, min_score: float, **shared: Any) -> None:
    def make_scorer(folder: Path) -> Scorer:
        from scorers.abstention import usual_language
        from scorers.groundedness import GroundednessScorer

        return GroundednessScorer(first_index, min_score, usual_language(folder))

    score_and_show(
        make_scorer,
        summary=SUMMARY,
        worst_key="mean_claim_support",
        show_worst=show_worst,
        needs_texts=True,
        **shared,
    )


def show_worst(console: Console, item: WorstCase) -> None:
    """The claims with their best windows, numbers and citations that failed, labels missed."""
    from scorers.common import in_rank_order
    from terminal.tables import plain

    evidence = item.row["evidence"]
    chunks = {chunk.chunk_id: chunk for chunk in in_rank_order(item.result)}
    judged = [claim for claim in evidence.get("claims", []) if "skipped" not in claim]
    for claim in sorted(judged, key=lambda claim: claim["supported"])[:SHOWN]:
        for line in claim_lines(claim, chunks):
            console.print(line, soft_wrap=True)
    if len(judged) > SHOWN:
        console.print(f"  … {len(judged) - SHOWN} more claims")
    for kind, found in evidence.get("numbers", {}).items():
        console.print(f"  {kind} numbers: {plain(', '.join(found))}", soft_wrap=True)
    for cited in evidence.get("citations", []):
        if cited["chunk_id"] is None:
            console.print(f"  citation [{plain(str(cited['target']))}] names no retrieved chunk")
        elif cited.get("supported") is False:
            console.print(f"  citation [{plain(str(cited['target']))}] does not bear its claim")
    for name in ("expected_claims_missing", "forbidden_claims_found"):
        for text in evidence.get(name, []):
            console.print(f"  {name.replace('_', ' ')}: {plain(text)}", soft_wrap=True)


def claim_lines(claim: dict[str, Any], chunks: dict[str, RetrievedChunk]) -> list[str]:
    """A claim, what the contexts hold of it, and what they lack."""
    from terminal.tables import plain

    mark = "✓" if claim["supported"] else "✗"
    lines = [f"  {mark} {claim['score']:.2f}  {plain(claim['text'])}"]
    if "chunk_id" in claim:
        name = claim["chunk_id"]
        text = (chunks[name].text or "")[slice(*claim["window"])]
        place = chunks[name].rel_path or name
        lines.append(f"         best in {plain(place, 60)}: {plain(text, 160)}")
    if claim.get("missing"):
        lines.append(f"         words not there: {plain(', '.join(claim['missing']))}")
    if claim.get("vetoed_by"):
        lines.append(f"         found nowhere: {plain(', '.join(claim['vetoed_by']))}")
    if claim.get("negation_mismatch"):
        lines.append("         note: one of the two is negated")
    return lines


if __name__ == "__main__":
    main()
