"""Score the pipeline of a run end to end: outcomes, flags, citations, budgets, times, errors.

In: a run folder (results.jsonl), the eval set, and the labels of eval/labels/pipeline_labels.jsonl
(expected outcome, flags, least citations, budgets). Out: tables on the terminal,
scores/pipeline.jsonl (a line a case: the outcome and its reason, the failed checks) and the section
``pipeline`` of the run's metrics.json, with p50, p95, p99 and max of each stage, errors by kind,
tokens and cost.

\b
Examples:
  python eval/scripts/score_pipeline.py
  python eval/scripts/score_pipeline.py --by category --worst 10
  python eval/scripts/score_pipeline.py --set uncertain_below=0.3 --json
"""

from __future__ import annotations

from dataclasses import dataclass

import options
from records import opt
from scorers.score_request import ScoreRequest


@dataclass(frozen=True, kw_only=True)
class PipelineScoring(ScoreRequest):
    """The options of score_pipeline.py."""

    uncertain_below: float | None = opt.setting(
        "confidence under which a response is uncertain (default 0.5)", low=0, high=1
    )


@options.script(PipelineScoring, help=__doc__)
def main(asked: PipelineScoring) -> None:
    from scorers.show import score_and_show
    from views.worst import print_worst

    score_and_show("pipeline", asked, options.Streams(asked), print_worst)


if __name__ == "__main__":
    main()
