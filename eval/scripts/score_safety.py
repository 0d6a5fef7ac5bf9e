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

import options
from scorers.score_request import SafetyScoring


@options.script(SafetyScoring, help=__doc__)
def main(asked: SafetyScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("safety", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
