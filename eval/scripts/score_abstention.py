"""Score whether a run's answers abstain where they should: answered or abstained x answerable.

In: a run folder (results.jsonl) and the eval set (``answerable`` of each case). Out: a table on the
terminal, scores/abstention.jsonl (a line a case: the cell of the table, and what decided: the bot's
own ``abstained``, the answer's wording or a judge) and the section ``abstention`` of the run's
metrics.json.

\b
Examples:
  python eval/scripts/score_abstention.py
  python eval/scripts/score_abstention.py --by category --worst 10
  python eval/scripts/score_abstention.py --set decide_by=phrases --worst 5 --worst-by over_refusal
  python eval/scripts/score_abstention.py --set decide_by=judge   # after judge_answers.py
"""

from __future__ import annotations

from dataclasses import dataclass

import options
from records import opt
from scorers.score_request import ScoreRequest


@dataclass(frozen=True, kw_only=True)
class AbstentionScoring(ScoreRequest):
    """The options of score_abstention.py."""

    decide_by: str | None = opt.setting(
        "api (the bot's own field), phrases (the answer's wording), auto (the first of them), or "
        "judge (like auto, but a judge's verdict before the wording)",
        choices=("auto", "api", "phrases", "judge"),
    )


@options.script(AbstentionScoring, help=__doc__)
def main(asked: AbstentionScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("abstention", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
