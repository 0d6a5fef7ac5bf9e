"""Score whether a run's answers abstain where they should: answered or abstained x answerable.

In: a run folder (results.jsonl) and the eval set (``answerable`` of each case). Out: a table on the
terminal, scores/abstention.jsonl (a line a case: the cell of the table, and whether the bot's own
``abstained``, the wording of the answer or a judge decided) and the section ``abstention`` of the
run's metrics.json.

\b
Examples:
  python eval/scripts/score_abstention.py
  python eval/scripts/score_abstention.py --by category --worst 10
  python eval/scripts/score_abstention.py --decide-by phrases --worst 5 --worst-by over_refusal
  python eval/scripts/score_abstention.py --decide-by judge   # after judge_answers.py
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

SUMMARY = ["abstention_accuracy", "hallucination_on_unanswerable", "over_refusal"]


@options.command(help=__doc__)
@score_options
@click.option(
    "--decide-by",
    type=click.Choice(["auto", "api", "phrases", "judge"]),
    default="auto",
    show_default=True,
    help="What tells an abstention: the bot's own field, the answer's wording, or the first there; "
    "judge: as auto, but a judge's verdict before the wording.",
)
def main(decide_by: Any, **shared: Any) -> None:
    def make_scorer(folder: Path) -> Scorer:
        from scorers.abstention import AbstentionScorer, usual_language

        language = usual_language(folder)
        if decide_by != "judge":
            return AbstentionScorer(decide_by, usual_language=language)
        from scorers.judged import judge_name, replies

        return AbstentionScorer(decide_by, replies(folder), judge_name(folder), language)

    score_and_show(
        make_scorer,
        summary=SUMMARY,
        worst_key="hallucination_on_unanswerable",
        show_worst=show_worst,
        show_more=show_more,
        **shared,
    )


def show_more(console: Console, section: dict[str, Any]) -> None:
    """The four-cell table, who decided, and how often the wording says otherwise."""
    from terminal.tables import print_rows

    cells = section["cells"]
    console.print()
    print_rows(
        console,
        ("results", "answered", "abstained"),
        [
            (kind, str(cells[f"answered_{kind}"]), str(cells[f"abstained_{kind}"]))
            for kind in ("answerable", "unanswerable")
        ],
    )
    names = {"api": "the bot's own field", "phrases": "the wording", "judge": "the judge"}
    by = ", ".join(f"{names[name]} ({count})" for name, count in section["decided_by"].items())
    console.print(f"Decided by {by or 'nothing'}.")
    if section["phrases_disagree"]:
        console.print(
            f"In {section['phrases_disagree']} results the wording says otherwise than the bot's "
            "field (--decide-by phrases)."
        )


def show_worst(console: Console, item: WorstCase) -> None:
    """What the bot said, what it was taken for and why."""
    from terminal.tables import plain

    evidence = item.row["evidence"]
    answer = item.result.answer or ""
    names = {"api": "the bot says so", "phrases": "by its wording", "judge": "the judge says so"}
    cell = evidence["cell"].partition("_")[0]
    why = f", {plain(evidence['why'], 60)}" if evidence.get("why") else ""
    console.print(f"  {cell}: {names[evidence['decided_by']]}{why}", soft_wrap=True)
    console.print(f"  answer: {plain(answer) or '(empty)'}", soft_wrap=True)
    if "phrases" in evidence:
        console.print(f"  its wording says: {evidence['phrases']}")
    if "span" in evidence:
        console.print(f"  sentence: {plain(answer[slice(*evidence['span'])])}", soft_wrap=True)


if __name__ == "__main__":
    main()
