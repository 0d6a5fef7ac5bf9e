"""Score the retrieved context of a run: redundancy, gold facts, diversity. No model, no network.

In: a run folder (results.jsonl with full texts: run_eval.py --store-full-text), the eval set, and
the gold facts of eval/labels/context_labels.jsonl. Out: a table on the terminal,
scores/context.jsonl (a line a case: the most similar chunks, and the chunks with each fact) and the
section ``context`` of the run's metrics.json.

\b
Examples:
  python eval/scripts/score_context.py
  python eval/scripts/score_context.py --set top=5 --by query_type
  python eval/scripts/score_context.py --worst 5 --worst-by fact_coverage
"""

from __future__ import annotations

from dataclasses import dataclass

import options
from records import opt
from scorers.score_request import ScoreRequest


@dataclass(frozen=True, kw_only=True)
class ContextScoring(ScoreRequest):
    """The options of score_context.py."""

    top: int | None = opt.setting("only the first N chunks (all; those that the answer saw)", low=1)


@options.script(ContextScoring, help=__doc__)
def main(asked: ContextScoring) -> int:
    from scorers.show import score_and_show
    from views.worst import print_worst

    outcome = options.run_extras(asked)
    if isinstance(outcome, int):
        return outcome
    score_and_show("context", outcome, options.Streams(asked), print_worst)
    return options.Exit.DONE


if __name__ == "__main__":
    main()
