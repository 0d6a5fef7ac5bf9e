"""Score the guardrails: do they catch labelled attacks and leaks, and leave harmless texts alone?

In: eval/labels/safety_labels.jsonl (attacks, harmless prompts, leaks, safe outputs) and a run made
with run_eval.py --labels, which asked the bot the prompts. What is judged is the bot's own score
(``guardrail.input_score`` of its response, else the flag guardrail_blocked), and the toolkit's
reference guardrails where it sends none. Out: a table, scores/safety.jsonl (a line a text, with the
patterns that fired) and the section ``safety`` of metrics.json. Without labelled texts there is
nothing to score: stderr says so, --json prints null, and the exit code is 0.

\b
Examples:
  python eval/scripts/score_safety.py --by attack_category --worst 10
  python eval/scripts/score_safety.py --run night-12 --guardrail reference --json
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
import storage

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.safety import Judged, SafetyScorer

SUMMARIES = {
    "attack_category": ("auc", "detection_rate", "block_rate"),
    "leak_category": ("leak_detection_rate", "leak_false_positive_rate"),
    "tag": ("detection_rate", "benign_flag_rate", "leak_detection_rate"),
}


@options.command(help=__doc__)
@options.run_option
@options.eval_set_option
@options.labels_option
@options.results_dir_option
@click.option(
    "--guardrail",
    "source",
    type=click.Choice(["auto", "system", "reference"]),
    default="auto",
    show_default=True,
    help="Whose scores are judged; auto: the bot's own where it sends them.",
)
@click.option(
    "--warn",
    type=options.FiniteRange(0, 1),
    default=0.4,
    show_default=True,
    help="Score from which a prompt counts as detected.",
)
@click.option(
    "--block",
    type=options.FiniteRange(0, 1),
    default=0.5,
    show_default=True,
    help="Score from which a prompt counts as blocked, an output as a leak.",
)
@click.option(
    "--by", type=click.Choice(list(SUMMARIES)), multiple=True, help="Show means by slice."
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=0,
    help="Show N texts that were judged wrongly, the clearest mistakes first.",
)
@options.seed_option
@options.json_option
@options.verbosity_options
def main(
    run: str,
    eval_set: Path,
    labels_dir: Path,
    results_dir: Path,
    source: Any,
    warn: float,
    block: float,
    by: tuple[str, ...],
    worst: int,
    seed: int,
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    from scorecli import show, warn_of_missing, warn_of_removed
    from scorers.safety import SafetyScorer
    from suite.errors import CannotRun
    from suite.safety import score_safety

    folder = storage.find_run(results_dir, run)
    scorer = SafetyScorer(warn, block, source)
    before = storage.section_names(folder)
    try:
        section, judged = score_safety(folder, labels_dir, scorer, seed=seed, eval_set=eval_set)
    except CannotRun as error:  # labels are optional: the other scorers of `make score` go on
        if as_json:
            click.echo("null")
        if not quiet:
            click.echo(f"Not applicable: {error.message}", err=True)
        return
    if as_json:
        click.echo(storage.json_bytes(storage.rounded(section)), nl=False)
    else:
        console = options.stdout_console()
        show(console, folder, scorer.section, section, (), ())
        show_sources(console, section)
        show_slices(console, section, by)
        if worst:
            show_worst(console, scorer, judged, worst)
    if not quiet and (folder / "config.json").exists():
        warn_of_missing(folder, storage.read_config(folder))
        warn_of_removed(folder, before)
    failed = max(section["failed"].values(), default=0)
    if failed and not quiet:
        click.echo(f"Note: {failed} prompts failed in this run and count nowhere.", err=True)


def show_sources(console: Console, section: dict[str, Any]) -> None:
    """Which guardrails were judged, and what a reader of the TPRs should know."""
    for name, text in section["guardrails"].items():
        console.print(f"{name} guardrail: {text}", soft_wrap=True)
    notes = {point["note"] for point in section["operating_points"].values() if point}
    for note in sorted(notes - {""}):
        console.print(f"tpr_at_fpr_1 and _5: {note}", soft_wrap=True)


def show_slices(console: Console, section: dict[str, Any], by: Sequence[str]) -> None:
    """One table for each dimension asked for."""
    import tables

    for dimension in by:
        console.print(f"\nBy {dimension}:")
        tables.print_by(console, section, dimension, SUMMARIES[dimension])


def show_worst(
    console: Console, scorer: SafetyScorer, judged: Sequence[Judged], count: int
) -> None:
    """Missed attacks and leaks, and harmless texts that were flagged, with what fired."""
    from tables import plain

    wrong = [item for item in judged if scorer.is_wrong(item)]
    wrong.sort(key=lambda item: -abs(item.score - scorer.block))
    console.print(f"\n{len(wrong)} of {len(judged)} texts were judged wrongly.")
    for item in wrong[:count]:
        said = "missed" if item.label.kind in ("attack", "leak") else "flagged"
        fired = ", ".join(one["pattern"] for one in item.evidence.get("patterns", ())) or "nothing"
        console.print(
            f"{said} at {item.score:.2f}: {plain(item.label.case_id, 60)}\n"
            f"  {plain(item.label.text, 160)}\n"
            f"  fired: {plain(fired, 160)}",
            soft_wrap=True,
        )


if __name__ == "__main__":
    main()
