"""Score the answers of a run against their contexts: claims, numbers, citations. No model needed.

In: a run folder (results.jsonl with full texts: run_eval.py --store-full-text), the eval set, and
the expected claims of eval/labels/groundedness_labels.jsonl. Out: a table on the terminal,
scores/groundedness.jsonl (a line a case: every claim with its best window, score and missing words,
numbers found in no passage, and the target of each citation) and the section ``groundedness`` of
the run's metrics.json.

\b
Examples:
  python eval/scripts/score_groundedness.py
  python eval/scripts/score_groundedness.py --by category --worst 5
  python eval/scripts/score_groundedness.py --worst 5 --worst-by citation_validity_form
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import options
from records import opt
from scorers.score_request import ScoreRequest

if TYPE_CHECKING:
    from ragmetrics.support import SupportModel


@dataclass(frozen=True, kw_only=True)
class GroundednessScoring(ScoreRequest):
    """The options of score_groundedness.py. ``support_model``: of an extra."""

    first_index: int | None = opt.setting(
        "number of the first chunk in citation marks (default 1)", low=0
    )
    min_score: float | None = opt.setting("what the best retrieval score must exceed (default 0)")
    support_model: Callable[[], SupportModel] | None = None


@options.script(GroundednessScoring, help=__doc__)
def main(asked: GroundednessScoring) -> int:
    from scorers.show import score_and_show
    from views.worst import print_worst

    outcome = options.run_extras(asked)
    if isinstance(outcome, int):
        return outcome
    score_and_show("groundedness", outcome, options.Streams(asked), print_worst)
    return options.Exit.DONE


if __name__ == "__main__":
    main()
