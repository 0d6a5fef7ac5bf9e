"""Score the guardrails: do they catch labelled attacks and leaks, and leave harmless texts alone?

In: eval/labels/safety_labels.jsonl (attacks, harmless prompts, leaks, safe outputs) and a run made
with run_eval.py --labels, which asked the bot the prompts. It judges the bot's own score
(``guardrail.input_score`` of its response, else the flag guardrail_blocked), or the toolkit's
reference guardrails if the bot sends none. Out: a table, scores/safety.jsonl (a line a text, with
the patterns that fired) and the section ``safety`` of metrics.json. Without labelled texts there is
nothing to score: stderr says so, --json prints null, and the exit code is 0.

\b
Examples:
  python eval/scripts/score_safety.py --by attack_category --worst 10
  python eval/scripts/score_safety.py --run night-12 --set source=reference --json
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import options
from records import opt

_SLICES = ("attack_category", "leak_category", "tag")


@dataclass(frozen=True, kw_only=True)
class SafetyScoring(opt.Output):
    """The options of score_safety.py, which scores labelled texts, not cases."""

    run: str = opt.run()
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    by: tuple[str, ...] = opt.repeated(
        f"Show means by slice: {', '.join(_SLICES)}.", choices=_SLICES, metavar="SLICE"
    )
    worst: int = opt.value(
        "Show N texts that were judged wrongly, the clearest mistakes first.",
        default=0,
        low=0,
        shown=False,
    )
    source: str | None = opt.setting(
        "whose scores: system (the bot's own), reference, or auto (its own if it sends them)",
        choices=("auto", "system", "reference"),
    )
    warn: float | None = opt.setting(
        "score from which a prompt is detected (default 0.4)", low=0, high=1
    )
    block: float | None = opt.setting(
        "score from which it is blocked, and an output a leak (default 0.5)", low=0, high=1
    )
    seed: int = opt.seed()


@options.script(SafetyScoring, help=__doc__)
def main(asked: SafetyScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("safety", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
